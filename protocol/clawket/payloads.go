package clawket

import "encoding/json"

// Health is the answer to connect and health. Flags are 1 or true, or absent: absent switches the feature off.
type Health struct {
	Backend                 string         `json:"backend"`
	BridgeVersion           string         `json:"bridgeVersion,omitempty"`
	SessionCatalogSync      int            `json:"sessionCatalogSync,omitempty"`
	SessionCatalogPageIndex int            `json:"sessionCatalogPageIndex,omitempty"`
	SessionActivity         int            `json:"sessionActivity,omitempty"`
	Artifacts               bool           `json:"artifacts,omitempty"`
	PromptStatus            bool           `json:"promptStatus,omitempty"`
	Vision                  *bool          `json:"vision,omitempty"`
	Projects                *bool          `json:"projects,omitempty"`
	ProfileVersion          int            `json:"profileVersion,omitempty"`
	FastMode                bool           `json:"fastMode,omitempty"`
	SessionPermissions      bool           `json:"sessionPermissions,omitempty"`
	SessionArchive          bool           `json:"sessionArchive,omitempty"`
	ModelReady              *bool          `json:"modelReady,omitempty"`
	Model                   string         `json:"model,omitempty"`
	Project                 string         `json:"project,omitempty"`
	DesktopConnected        *bool          `json:"desktopConnected,omitempty"`
	Protocol                int            `json:"protocol,omitempty"`
	Capabilities            map[string]any `json:"capabilities,omitempty"`
}

// Agent describes the one agent of a backend.
type Agent struct {
	ConnectionID   string `json:"connectionId"`
	AgentID        string `json:"agentId"`
	Name           string `json:"name"`
	IsMain         bool   `json:"isMain"`
	MainSessionKey string `json:"mainSessionKey"`
	EntryMode      string `json:"entryMode,omitempty"`
}

// Actions are the changes a phone may make; all but archive are always said.
type Actions struct {
	Archive *bool `json:"archive,omitempty"`
	Delete  bool  `json:"delete"`
	Pin     bool  `json:"pin"`
	Rename  bool  `json:"rename"`
	Reset   bool  `json:"reset"`
}

// Project is a directory conversations can be started in.
type Project struct {
	Available bool   `json:"available"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Path      string `json:"path"`
}

// Session is one row of the catalog. An unknown optional text is left out: null would make a phone refuse the whole list.
type Session struct {
	AgentID                   string   `json:"agentId"`
	AllowedActions            Actions  `json:"allowedActions"`
	Archived                  *bool    `json:"archived,omitempty"`
	Attention                 *string  `json:"attention"`
	CanContinue               *bool    `json:"canContinue,omitempty"`
	Channel                   string   `json:"channel,omitempty"`
	ConnectionID              string   `json:"connectionId"`
	ContinuationBlockedReason string   `json:"continuationBlockedReason,omitempty"`
	HasActiveRun              bool     `json:"hasActiveRun"`
	Key                       string   `json:"key"`
	Kind                      string   `json:"kind"`
	LastActivityAt            *int64   `json:"lastActivityAt"`
	Model                     string   `json:"model,omitempty"`
	ModelProvider             string   `json:"modelProvider,omitempty"`
	ParentSessionKey          string   `json:"parentSessionKey,omitempty"`
	Preview                   string   `json:"preview,omitempty"`
	Project                   *Project `json:"project,omitempty"`
	SessionID                 string   `json:"sessionId,omitempty"`
	Source                    string   `json:"source,omitempty"`
	Title                     string   `json:"title"`
	UpdatedAt                 *int64   `json:"updatedAt"`
}

// Activity is what one conversation does.
type Activity struct {
	Key       string  `json:"key"`
	State     string  `json:"state"`
	Attention *string `json:"attention"`
}

// Attachment is a file of a message, inline or by id.
type Attachment struct {
	Type       string `json:"type"`
	MIMEType   string `json:"mimeType"`
	Content    string `json:"content,omitempty"`
	Name       string `json:"name,omitempty"`
	ArtifactID string `json:"artifactId,omitempty"`
}

// Tool is a tool call in history.
type Tool struct {
	Name           string          `json:"name"`
	Status         string          `json:"status"`
	CallID         string          `json:"callId,omitempty"`
	Input          json.RawMessage `json:"input,omitempty"`
	Output         string          `json:"output,omitempty"`
	Summary        string          `json:"summary,omitempty"`
	DurationMS     *int64          `json:"durationMs,omitempty"`
	StartedAtMS    int64           `json:"startedAtMs,omitempty"`
	FinishedAtMS   int64           `json:"finishedAtMs,omitempty"`
	StatusReported bool            `json:"statusReported,omitempty"`
}

// Usage counts tokens and money.
type Usage struct {
	Input      *uint64  `json:"input,omitempty"`
	Output     *uint64  `json:"output,omitempty"`
	CacheRead  *uint64  `json:"cacheRead,omitempty"`
	CacheWrite *uint64  `json:"cacheWrite,omitempty"`
	Total      *uint64  `json:"total,omitempty"`
	CostUSD    *float64 `json:"costUsd,omitempty"`
}

// Message is one row of a conversation.
type Message struct {
	ID                  string       `json:"id"`
	Role                string       `json:"role"`
	Text                string       `json:"text"`
	TimestampMS         int64        `json:"timestampMs,omitempty"`
	IdempotencyKey      string       `json:"idempotencyKey,omitempty"`
	TurnID              string       `json:"turnId,omitempty"`
	Attachments         []Attachment `json:"attachments,omitempty"`
	ArtifactDisplayText *string      `json:"artifactDisplayText,omitempty"`
	Provider            string       `json:"provider,omitempty"`
	Model               string       `json:"model,omitempty"`
	Usage               *Usage       `json:"usage,omitempty"`
	Tool                *Tool        `json:"tool,omitempty"`
}

// ActiveRun is a reply in the making.
type ActiveRun struct {
	RunID              string `json:"runId"`
	Text               string `json:"text"`
	StartedAtMS        int64  `json:"startedAtMs,omitempty"`
	SessionAbortable   *bool  `json:"sessionAbortable,omitempty"`
	TurnID             string `json:"turnId,omitempty"`
	InputMessageID     string `json:"inputMessageId,omitempty"`
	InputMessageKey    string `json:"inputMessageKey,omitempty"`
	MessageTimestampMS int64  `json:"messageTimestampMs,omitempty"`
}

// History is one page, oldest message first.
type History struct {
	Key           string     `json:"key"`
	Messages      []Message  `json:"messages"`
	NextCursor    string     `json:"nextCursor,omitempty"`
	HasActiveRun  bool       `json:"hasActiveRun"`
	ActiveRun     *ActiveRun `json:"activeRun,omitempty"`
	SessionID     string     `json:"sessionId,omitempty"`
	ThinkingLevel string     `json:"thinkingLevel,omitempty"`
}

// FinalMessage is the reply of a finished run.
type FinalMessage struct {
	Role                string       `json:"role"`
	Content             string       `json:"content"`
	Attachments         []Attachment `json:"attachments,omitempty"`
	ArtifactDisplayText *string      `json:"artifactDisplayText,omitempty"`
	Provider            string       `json:"provider,omitempty"`
	Model               string       `json:"model,omitempty"`
	TimestampMS         int64        `json:"timestampMs,omitempty"`
}

// TerminalMessage is the notice a failed run ends with; history shows it under the same id.
type TerminalMessage struct {
	ID          string `json:"id"`
	Role        string `json:"role"`
	Text        string `json:"text"`
	TimestampMS int64  `json:"timestampMs,omitempty"`
}

// QuestionOption is one choice of a field.
type QuestionOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// QuestionField is one thing to fill in.
type QuestionField struct {
	ID          string           `json:"id"`
	Title       string           `json:"title"`
	Header      string           `json:"header,omitempty"`
	Options     []QuestionOption `json:"options"`
	AllowCustom bool             `json:"allowCustom"`
	MultiSelect bool             `json:"multiSelect,omitempty"`
}

// Kinds of questions.
const (
	QuestionForm    = "form"
	QuestionSelect  = "select"
	QuestionConfirm = "confirm"
	QuestionInput   = "input"
	QuestionEditor  = "editor"
)

// Question is an open question.
type Question struct {
	ID          string          `json:"id"`
	Kind        string          `json:"kind"`
	Title       string          `json:"title"`
	Message     string          `json:"message,omitempty"`
	Options     []string        `json:"options,omitempty"`
	Placeholder string          `json:"placeholder,omitempty"`
	Prefill     string          `json:"prefill,omitempty"`
	Fields      []QuestionField `json:"fields,omitempty"`
	ExpiresAtMS *int64          `json:"expiresAtMs"`
}

// Approval is one action that waits for consent.
type Approval struct {
	Kind        string   `json:"kind"`
	ID          string   `json:"id"`
	Command     string   `json:"command"`
	Category    string   `json:"category"`
	Reason      string   `json:"reason,omitempty"`
	Cwd         string   `json:"cwd,omitempty"`
	Host        string   `json:"host,omitempty"`
	Decisions   []string `json:"decisions"`
	ExpiresAtMS *int64   `json:"expiresAtMs"`
}

// SessionApproval is an approval with its conversation.
type SessionApproval struct {
	SessionKey string   `json:"sessionKey"`
	Approval   Approval `json:"approval"`
}

// Update is any update as a client reads it and as the host writes it; which fields are set depends on Type.
type Update struct {
	Type            string           `json:"type"`
	SessionKey      string           `json:"sessionKey,omitempty"`
	RunID           string           `json:"runId,omitempty"`
	TurnID          string           `json:"turnId,omitempty"`
	InputMessageID  string           `json:"inputMessageId,omitempty"`
	InputMessageKey string           `json:"inputMessageKey,omitempty"`
	Text            *string          `json:"text,omitempty"`
	TextMode        string           `json:"textMode,omitempty"`
	TimestampMS     int64            `json:"timestampMs,omitempty"`
	ToolCallID      string           `json:"toolCallId,omitempty"`
	Title           string           `json:"title,omitempty"`
	Kind            string           `json:"kind,omitempty"`
	RawInput        json.RawMessage  `json:"rawInput,omitempty"`
	RawOutput       json.RawMessage  `json:"rawOutput,omitempty"`
	Status          string           `json:"status,omitempty"`
	StartedAtMS     int64            `json:"startedAtMs,omitempty"`
	FinishedAtMS    int64            `json:"finishedAtMs,omitempty"`
	DurationMS      *int64           `json:"durationMs,omitempty"`
	StopReason      string           `json:"stopReason,omitempty"`
	Message         json.RawMessage  `json:"message,omitempty"` // FinalMessage, or the text of an error
	TerminalMessage *TerminalMessage `json:"terminalMessage,omitempty"`
	Usage           *Usage           `json:"usage,omitempty"`
	UnappliedInput  string           `json:"unappliedInput,omitempty"`
	Question        *Question        `json:"question,omitempty"`
	QuestionID      string           `json:"questionId,omitempty"`
	Approval        *Approval        `json:"approval,omitempty"`
	ApprovalID      string           `json:"approvalId,omitempty"`
	Decision        string           `json:"decision,omitempty"`
	Session         json.RawMessage  `json:"session,omitempty"` // Session, or {key, attention}
	Activity        *Activity        `json:"activity,omitempty"`
	Phase           string           `json:"phase,omitempty"`
	Code            string           `json:"code,omitempty"`
}

// Skill is something a person can call upon by name.
type Skill struct {
	Name               string            `json:"name"`
	Description        string            `json:"description"`
	Invocation         string            `json:"invocation"`
	Source             string            `json:"source"`
	Bundled            bool              `json:"bundled"`
	FilePath           string            `json:"filePath"`
	BaseDir            string            `json:"baseDir"`
	SkillKey           string            `json:"skillKey"`
	Always             bool              `json:"always"`
	Disabled           bool              `json:"disabled"`
	BlockedByAllowlist bool              `json:"blockedByAllowlist"`
	Eligible           bool              `json:"eligible"`
	Deletable          bool              `json:"deletable"`
	Requirements       map[string]string `json:"requirements"`
	Missing            map[string]string `json:"missing"`
	ConfigChecks       []string          `json:"configChecks"`
	Install            []string          `json:"install"`
}

// Skills is the answer to skills.list.
type Skills struct {
	WorkspaceDir     string  `json:"workspaceDir"`
	ManagedSkillsDir string  `json:"managedSkillsDir"`
	Skills           []Skill `json:"skills"`
}

// Artifact describes a file that can be read.
type Artifact struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	MIMEType string `json:"mimeType"`
}

// Piece is a piece of a file.
type Piece struct {
	Offset int64  `json:"offset"`
	Total  int64  `json:"total"`
	Data   string `json:"data"` // base64
	Done   bool   `json:"done"`
}

// Model is one model on offer; which fields are set depends on the backend.
type Model struct {
	ID              string      `json:"id"`
	Name            string      `json:"name"`
	Provider        string      `json:"provider"`
	ContextWindow   uint64      `json:"contextWindow,omitempty"`
	Reasoning       *bool       `json:"reasoning,omitempty"`
	ReasoningLevels []string    `json:"reasoningLevels,omitempty"`
	Input           []string    `json:"input,omitempty"`
	Cost            *ModelPrice `json:"cost,omitempty"`
	SortOrder       *int        `json:"sortOrder,omitempty"`
	ResolvedModel   string      `json:"resolvedModel,omitempty"`
}

// ModelPrice is US dollars per million tokens.
type ModelPrice struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// FastMode is the speed switch.
type FastMode struct {
	Enabled   *bool `json:"enabled"`
	Available bool  `json:"available"`
}

// Permissions is the permission sheet.
type Permissions struct {
	Mode                 *string  `json:"mode"`
	Available            bool     `json:"available"`
	AvailableModes       []string `json:"availableModes"`
	Scope                string   `json:"scope"`
	RequiresConfirmation bool     `json:"requiresConfirmation"`
}

// Models is the answer to models.list and to every setter.
type Models struct {
	OK              bool         `json:"ok,omitempty"`
	Scope           string       `json:"scope,omitempty"`
	CurrentModel    string       `json:"currentModel"`
	CurrentProvider string       `json:"currentProvider"`
	CurrentBaseURL  string       `json:"currentBaseUrl"`
	Models          []Model      `json:"models"`
	ThinkingLevel   string       `json:"thinkingLevel,omitempty"`
	FastMode        *FastMode    `json:"fastMode,omitempty"`
	Permissions     *Permissions `json:"permissions,omitempty"`
	Note            string       `json:"note,omitempty"`
}

// Page is the answer to sessions.sync as a client reads it; which fields are set depends on Kind.
type Page struct {
	Kind         string    `json:"kind"`
	Epoch        string    `json:"epoch"`
	Revision     string    `json:"revision"`
	BaseRevision string    `json:"baseRevision"`
	Offset       int       `json:"offset"`
	Total        int       `json:"total"`
	Sessions     []Session `json:"sessions"`
	NextOffset   *int      `json:"nextOffset"`
	PageOffsets  []int     `json:"pageOffsets"`
	Upserts      []Session `json:"upserts"`
	RemovedKeys  []string  `json:"removedKeys"`
	Order        []string  `json:"order"`
}
