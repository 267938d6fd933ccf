package clawket

import "time"

// Limits of the wire. They are facts both sides rely on, not settings.
const (
	// MaxFrame is the largest text frame in either direction.
	MaxFrame = 8 << 20
	// MaxQueued is how much may wait for a slow reader before it is dropped.
	MaxQueued = 8 << 20
	// MaxSockets is how many sockets a listener holds open, authenticated or not (SYNC-08).
	MaxSockets = 32
	// MaxRequests is how many requests of one socket may wait for an answer.
	MaxRequests = 16
	// MaxIDUnits bounds the id of a request, in UTF-16 units.
	MaxIDUnits = 200
	// MaxKeyUnits bounds an idempotency key, in UTF-16 units.
	MaxKeyUnits = 200
	// MaxSessionKeyUnits bounds the key of a conversation, in UTF-16 units.
	MaxSessionKeyUnits = 1024
	// MaxActivityKeys is how many conversations one sessions.activity may ask about.
	MaxActivityKeys = 32
	// MaxActivityKeyUnits bounds each of them, in UTF-16 units.
	MaxActivityKeyUnits = 200
	// MaxHistory bounds the JSON of one page of history.
	MaxHistory = 7 << 20
	// MaxTokenLength bounds what is looked at as a token.
	MaxTokenLength = 512
	// ArtifactPiece is the size of one piece of a file; offsets are multiples of it.
	ArtifactPiece = 131072
	// MaxToolUnits is where the input and output of a tool are cut, in UTF-16 units.
	MaxToolUnits = 32000
	// MaxAnswerUnits bounds the answer to a question, in UTF-16 units.
	MaxAnswerUnits = 64000
	// MaxSkills is how many skills a list shows.
	MaxSkills = 500
)

// Times of the wire.
const (
	// AuthDeadline is how long a socket may stay without a valid connect.
	AuthDeadline = 10 * time.Second
	// Heartbeat is the pause between two pings and ticks of an authenticated socket.
	Heartbeat = 30 * time.Second
	// ActivityLease is how long a phone's last sessions.activity asks for pushes (SYNC-15).
	ActivityLease = 45 * time.Second
	// TickWatch is how long a phone waits for a tick before it reconnects.
	TickWatch = 90 * time.Second
)

// Close codes of a socket.
const (
	CloseNormal      = 1000
	CloseGoingAway   = 1001
	CloseUnsupported = 1003
	CloseInvalidText = 1007
	ClosePolicy      = 1008
	CloseTooBig      = 1009
	CloseOverloaded  = 1013
)

// Reasons that go with a close code.
const (
	ReasonUnauthorized   = "unauthorized"
	ReasonAuthRequired   = "authentication_required"
	ReasonTooMany        = "too_many_requests"
	ReasonFrameTooLarge  = "frame_too_large"
	ReasonFrameInvalid   = "frame_invalid"
	ReasonHostRestarting = "restarting"
)

// Path is the request target of a backend's socket; nothing may be added to it.
func Path(backend string) string { return "/v1/" + backend + "/ws" }

// EventName is the name under which a backend's updates travel.
func EventName(backend string) string { return backend + ".update" }

// ErrorCode is the code of every failed method of a backend.
func ErrorCode(backend string) string { return backend + "_error" }

// CodeBusy answers a request that was never dispatched because too many are waiting; relay only.
const CodeBusy = "BRIDGE_BUSY"

// Methods of the conversations dialect.
const (
	MethodConnect          = "connect"
	MethodHealth           = "health"
	MethodAgentsList       = "agents.list"
	MethodProjectsList     = "projects.list"
	MethodSessionsList     = "sessions.list"
	MethodSessionsSync     = "sessions.sync"
	MethodSessionsActivity = "sessions.activity"
	MethodSessionsCreate   = "sessions.create"
	MethodSessionsRename   = "sessions.rename"
	MethodSessionsReset    = "sessions.reset"
	MethodSessionsDelete   = "sessions.delete"
	MethodSessionsArchive  = "sessions.archive"
	MethodSessionsArchived = "sessions.archived"
	MethodChatHistory      = "chat.history"
	MethodChatSend         = "chat.send"
	MethodChatAbort        = "chat.abort"
	MethodChatSteer        = "chat.steer"
	MethodChatPromptStatus = "chat.promptStatus"
	MethodQuestionsList    = "questions.list"
	MethodQuestionsRespond = "questions.respond"
	MethodApprovalsList    = "approvals.list"
	MethodApprovalsResolve = "approvals.resolve"
	MethodModelsList       = "models.list"
	MethodModelsSelect     = "models.select"
	MethodModelsThinking   = "models.thinking"
	MethodModelsFast       = "models.fast"
	MethodModelsPermission = "models.permissions"
	MethodSkillsList       = "skills.list"
	MethodArtifactsOpen    = "clawket.artifacts.open"
	MethodArtifactsRead    = "clawket.artifacts.read"
	MethodUpdateStart      = "bridge.update.start"
	MethodUpdateStatus     = "bridge.update.status"
)

// Types of updates.
const (
	UpdateRunStarted        = "run_started"
	UpdateMessageChunk      = "agent_message_chunk"
	UpdateThoughtChunk      = "agent_thought_chunk"
	UpdateToolCall          = "tool_call"
	UpdateToolCallUpdate    = "tool_call_update"
	UpdateRunFinished       = "run_finished"
	UpdateQuestionRequested = "question_requested"
	UpdateQuestionResolved  = "question_resolved"
	UpdateApprovalRequested = "approval_requested"
	UpdateApprovalResolved  = "approval_resolved"
	UpdateSessionInfo       = "session_info_update"
	UpdateSessionActivity   = "session_activity_update"
	UpdateCompaction        = "compaction"
	UpdateSystemEvent       = "system_event"
	UpdateError             = "error"
)

// How the text of a chunk is to be read.
const (
	TextSnapshot = "snapshot" // the whole text of the run so far
	TextDelta    = "delta"    // append exactly
)

// Why a run ended.
const (
	StopEndTurn   = "end_turn"
	StopCancelled = "cancelled"
	StopError     = "error"
	StopMaxTokens = "max_tokens"
)

// Decisions about an approval.
const (
	DecisionAllowOnce = "allow-once"
	DecisionDeny      = "deny"
	DecisionExpired   = "expired" // only told, never asked
)
