package sessions

// KillPoints are the places in the life of a prompt at which the fault tests end the host, in the order a send passes
// them. What must hold for each: the runtime gets the prompt at most once, and every accepted prompt ends as exactly
// one of done, stopped, failed, or interrupted with a notice.
var KillPoints = []KillPoint{
	{killReceived, "the prompt was read, nothing was looked up", "no receipt"},
	{killLookedUp, "its key is new and the conversation is free", "no receipt"},
	{killPreparing, "PrepareRun is about to be called", "no receipt"},
	{killPrepared, "PrepareRun agreed; the plugin holds the prompt", "no receipt"},
	{killAccepting, "the receipt is about to be written", "no receipt"},
	{killAccepted, "the receipt is on disk, nobody was told", "recorded; never dispatched"},
	{killAnnounced, "phones were told that the run started", "recorded; never dispatched"},
	{killCommitting, "CommitRun is about to be called", "recorded; never dispatched"},
	{killCommitted, "CommitRun answered, the answer is not on disk", "recorded; dispatched once"},
	{killNoted, "the answer of CommitRun is on disk", "recorded; dispatched once"},
	{killEnding, "the run ended, its end is not on disk", "recorded; the end is asked for again"},
	{killEnded, "the end is on disk, phones were not told", "recorded; the end is read from history"},
}

// KillPoint is one of them.
type KillPoint struct {
	Name string // value of the environment variable OPENPHONE_FAULT, in builds for tests
	When string // what has happened by then
	Then string // what is true after the next start
}

// Names of KillPoints.
const (
	killReceived   = "send.received"
	killLookedUp   = "send.looked_up"
	killPreparing  = "prepare.before"
	killPrepared   = "prepare.after"
	killAccepting  = "accept.before"
	killAccepted   = "accept.after"
	killAnnounced  = "send.announced"
	killCommitting = "commit.before"
	killCommitted  = "commit.after"
	killNoted      = "outcome.noted"
	killEnding     = "end.before"
	killEnded      = "end.after"
)
