package store

import "time"

// Session is the durable part of a conversation the host created or continued: metadata only, never a transcript
// (STORE-03).
type Session struct {
	Runtime        string // instance id
	SessionID      string
	NativeID       string // empty: never submitted
	ProjectPath    string
	Title          string
	TitleExplicit  bool // a person gave it; otherwise it is the first prompt's first 80 characters or the runtime's
	Preview        string
	ModelID        string
	ProviderID     string
	ParentID       string
	Imported       bool // a native conversation continued from a phone
	Archived       bool
	Revision       uint64 // counts management writes; fences late reads (CX-06)
	CreatedAt      time.Time
	UpdatedAt      time.Time
	LastActivityAt time.Time // zero: never
}

// Run is the receipt of one accepted prompt and what became of it.
type Run struct {
	Runtime       string
	SessionID     string
	RunID         string
	Key           string // the phone's idempotency key, as sent
	Fingerprint   string // 64 hex digits
	NativeRunID   string
	Outcome       int32 // runtime.Outcome of CommitRun; 0: never called or never answered
	Ended         bool
	EndReason     int32  // runtime.EndReason
	EndCode       string // why it did not end well
	ThinkingLevel string
	AcceptedAt    time.Time
	EndedAt       time.Time
}

// Interaction is the durable record of one question or approval: who asked, how it ended, never its text.
type Interaction struct {
	Runtime       string
	InteractionID string
	SessionID     string
	RunID         string
	Approval      bool
	SubjectHash   string // sha256 of what was consented to, hex
	State         string // pending, answering, closed, lost
	Closure       int32  // runtime.Closure
	AnsweredBy    string
	OpenedAt      time.Time
	ClosedAt      time.Time
}

// Phone is one pairing.
type Phone struct {
	ID        string
	Label     string
	TokenHash string // sha256 of the token, hex; the token itself is never kept
	CreatedAt time.Time
	FirstUsed time.Time // zero: not used yet; a token unused for 10 min after CreatedAt is void
	LastUsed  time.Time
	RevokedAt time.Time
}

// Attention is something a plugin wants a person to know; it asks nothing.
type Attention struct {
	Runtime     string
	AttentionID string // the plugin's name of it
	SessionID   string // empty, with NativeID empty too: the runtime as a whole
	NativeID    string
	Kind        int32 // runtime.AttentionKind
	Code        string
	Parameters  map[string]string // of the code's sentence; names and numbers only
	ExpiresAt   time.Time         // zero: until it is cleared
}

// Pin is the checksum a plugin file must have to be started.
type Pin struct {
	Name     string // file name without extension
	SHA256   string // hex
	PinnedAt time.Time
}
