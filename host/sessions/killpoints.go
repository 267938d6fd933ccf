package sessions

// KillPoints are the places in the life of a prompt at which the fault tests end the host, in the order a send passes
// them. What must hold for each: the runtime gets the prompt at most once, and every accepted prompt ends as exactly
// one of done, stopped, failed, or interrupted with a notice.
var KillPoints = []KillPoint{
	{KillReceived, "the prompt was read, nothing was looked up", "no receipt"},
	{KillLookedUp, "its key is new and the conversation is free", "no receipt"},
	{KillPreparing, "PrepareRun is about to be called", "no receipt"},
	{KillPrepared, "PrepareRun agreed; the plugin holds the prompt", "no receipt"},
	{KillAccepting, "the receipt is about to be written", "no receipt"},
	{KillAccepted, "the receipt is on disk, nobody was told", "recorded; never dispatched"},
	{KillAnnounced, "phones were told that the run started", "recorded; never dispatched"},
	{KillCommitting, "CommitRun is about to be called", "recorded; never dispatched"},
	{KillCommitted, "CommitRun answered, the answer is not on disk", "recorded; dispatched once"},
	{KillNoted, "the answer of CommitRun is on disk", "recorded; dispatched once"},
	{KillEnding, "the run ended, its end is not on disk", "recorded; the end is asked for again"},
	{KillEnded, "the end is on disk, phones were not told", "recorded; the end is read from history"},
}

// KillPoint is one of them.
type KillPoint struct {
	Name string // value of the environment variable OPENPHONE_FAULT, in builds for tests
	When string // what has happened by then
	Then string // what is true after the next start
}

// Names of KillPoints.
const (
	KillReceived   = "send.received"
	KillLookedUp   = "send.looked_up"
	KillPreparing  = "prepare.before"
	KillPrepared   = "prepare.after"
	KillAccepting  = "accept.before"
	KillAccepted   = "accept.after"
	KillAnnounced  = "send.announced"
	KillCommitting = "commit.before"
	KillCommitted  = "commit.after"
	KillNoted      = "outcome.noted"
	KillEnding     = "end.before"
	KillEnded      = "end.after"
)
