package appserver

import (
	"encoding/json"
	"strings"
)

// String takes a JSON string and reads everything else as empty, so that one odd field does not lose a whole row.
type String string

// UnmarshalJSON never fails.
func (s *String) UnmarshalJSON(b []byte) error {
	var v string
	if json.Unmarshal(b, &v) != nil {
		v = ""
	}
	*s = String(v)
	return nil
}

// Status of a thread: notLoaded, idle, systemError or active with flags.
type Status struct {
	Type        String   `json:"type"`
	ActiveFlags []String `json:"activeFlags"`
}

// Thread is one conversation. Clocks are Unix seconds.
type Thread struct {
	ID             string  `json:"id"`
	Preview        String  `json:"preview"`
	Ephemeral      bool    `json:"ephemeral"`
	HistoryMode    String  `json:"historyMode"`
	ModelProvider  String  `json:"modelProvider"`
	Model          String  `json:"model"`
	Effort         String  `json:"reasoningEffort"`
	CreatedAt      float64 `json:"createdAt"`
	UpdatedAt      float64 `json:"updatedAt"`
	RecencyAt      float64 `json:"recencyAt"`
	Status         Status  `json:"status"`
	Path           String  `json:"path"`
	Cwd            String  `json:"cwd"`
	Name           String  `json:"name"`
	ForkedFromID   String  `json:"forkedFromId"`
	ParentThreadID String  `json:"parentThreadId"`
	Turns          []Turn  `json:"turns"`
}

// Turn is one request and its reply. Clocks are Unix seconds.
type Turn struct {
	ID          string     `json:"id"`
	Status      String     `json:"status"` // inProgress, completed, interrupted, failed
	Items       []Item     `json:"items"`
	ItemsView   String     `json:"itemsView"`
	Error       *TurnError `json:"error"`
	StartedAt   *float64   `json:"startedAt"`
	CompletedAt *float64   `json:"completedAt"`
}

// Terminal reports that the turn is over; unknown statuses are not.
func (t Turn) Terminal() bool {
	return t.Status == "completed" || t.Status == "interrupted" || t.Status == "failed"
}

// TurnError is why a turn failed. Its texts hold provider bodies, addresses and keys: they are compared, never shown.
type TurnError struct {
	Message String          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

// Kind is the name of the error and the HTTP status inside, if there is one.
func (e *TurnError) Kind() (kind string, httpStatus int) {
	if json.Unmarshal(e.Info, &kind) == nil {
		return kind, 0
	}
	var o map[string]struct {
		HTTPStatusCode int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.Info, &o) == nil && len(o) == 1 {
		for k, v := range o {
			return k, v.HTTPStatusCode
		}
	}
	return "", 0
}

// UserInput is a part of a prompt.
type UserInput struct {
	Type         string            `json:"type"`
	Text         string            `json:"text,omitempty"`
	TextElements []json.RawMessage `json:"text_elements,omitempty"`
	URL          string            `json:"url,omitempty"`
	Path         string            `json:"path,omitempty"`
	Name         string            `json:"name,omitempty"`
}

// MarshalJSON gives text inputs their text_elements array, which other clients of the thread rely on.
func (u UserInput) MarshalJSON() ([]byte, error) {
	if u.Type == "text" {
		return json.Marshal(struct {
			Type         string            `json:"type"`
			Text         string            `json:"text"`
			TextElements []json.RawMessage `json:"text_elements"`
		}{"text", u.Text, append([]json.RawMessage{}, u.TextElements...)})
	}
	type plain UserInput
	return json.Marshal(plain(u))
}

// Change is one file of a fileChange item. Diff is the content of an added file, otherwise hunks.
type Change struct {
	Path string `json:"path"`
	Kind struct {
		Type     String `json:"type"` // add, delete, update
		MovePath String `json:"move_path"`
	} `json:"kind"`
	Diff string `json:"diff"`
}

// Item is one element of a turn; which fields are set depends on Type. Clocks are Unix milliseconds.
type Item struct {
	ID            string   `json:"id"`
	Type          string   `json:"type"`
	StartedAtMs   *float64 `json:"startedAtMs"`
	CompletedAtMs *float64 `json:"completedAtMs"`

	ClientID String          `json:"clientId"` // userMessage
	Content  json.RawMessage `json:"content"`  // userMessage: []UserInput; reasoning: []string
	Text     String          `json:"text"`     // agentMessage, plan
	Phase    String          `json:"phase"`    // agentMessage
	Summary  []String        `json:"summary"`  // reasoning

	Command        String          `json:"command"` // commandExecution
	Cwd            String          `json:"cwd"`
	Status         String          `json:"status"` // inProgress, completed, failed, declined
	CommandActions []CommandAction `json:"commandActions"`
	Output         *String         `json:"aggregatedOutput"`
	ExitCode       *float64        `json:"exitCode"`
	DurationMs     *float64        `json:"durationMs"`

	Changes []Change `json:"changes"` // fileChange

	Server       String          `json:"server"` // mcpToolCall
	Namespace    String          `json:"namespace"`
	Tool         String          `json:"tool"`
	Arguments    json.RawMessage `json:"arguments"`
	Result       json.RawMessage `json:"result"` // mcpToolCall: object; imageGeneration: base64
	Error        json.RawMessage `json:"error"`
	ContentItems json.RawMessage `json:"contentItems"` // dynamicToolCall
	Success      *bool           `json:"success"`

	Query   String          `json:"query"`  // webSearch
	Action  json.RawMessage `json:"action"` // webSearch
	Path    String          `json:"path"`   // imageView
	Failure json.RawMessage `json:"failure"`
}

// CommandAction is the inner command of a wrapped one.
type CommandAction struct {
	Type    String `json:"type"`
	Command String `json:"command"`
}

// Inputs reads the parts of a userMessage.
func (i Item) Inputs() []UserInput {
	var list []UserInput
	_ = json.Unmarshal(i.Content, &list)
	return list
}

// Reasoning reads the raw reasoning texts of a reasoning item.
func (i Item) Reasoning() []string {
	var list []string
	_ = json.Unmarshal(i.Content, &list)
	return list
}

// InnerCommand is the command as a person would type it.
func (i Item) InnerCommand() string {
	list := make([]string, 0, len(i.CommandActions))
	for _, a := range i.CommandActions {
		if a.Command != "" {
			list = append(list, string(a.Command))
		}
	}
	if len(list) > 0 {
		return strings.Join(list, " && ")
	}
	return string(i.Command)
}

// Profile names a permission profile.
type Profile struct {
	ID      string  `json:"id"`
	Extends *string `json:"extends"`
}

// Sandbox is an effective sandbox policy.
type Sandbox struct {
	Type                string   `json:"type"` // dangerFullAccess, readOnly, workspaceWrite, externalSandbox
	WritableRoots       []string `json:"writableRoots,omitempty"`
	NetworkAccess       any      `json:"networkAccess,omitempty"` // a boolean; externalSandbox says it in words
	ExcludeTmpdirEnvVar bool     `json:"excludeTmpdirEnvVar,omitempty"`
	ExcludeSlashTmp     bool     `json:"excludeSlashTmp,omitempty"`
}

// CollaborationMode is the mode with its settings.
type CollaborationMode struct {
	Mode     string                `json:"mode"` // default, plan
	Settings CollaborationSettings `json:"settings"`
}

// CollaborationSettings belong to a mode.
type CollaborationSettings struct {
	Model                 string  `json:"model"`
	ReasoningEffort       *string `json:"reasoning_effort"`
	DeveloperInstructions *string `json:"developer_instructions"`
}

// Settings are the effective settings of a thread, under the names of thread/settings/updated. ApprovalPolicy is a
// word or an object and is compared as JSON text.
type Settings struct {
	Cwd               string             `json:"cwd"`
	Model             String             `json:"model"`
	ModelProvider     String             `json:"modelProvider"`
	ServiceTier       *string            `json:"serviceTier"`
	Effort            *string            `json:"effort"`
	ApprovalPolicy    json.RawMessage    `json:"approvalPolicy"`
	ApprovalsReviewer string             `json:"approvalsReviewer"`
	SandboxPolicy     Sandbox            `json:"sandboxPolicy"`
	Profile           *Profile           `json:"activePermissionProfile"`
	CollaborationMode *CollaborationMode `json:"collaborationMode"`
}

// ThreadResult is the answer of thread/start, thread/resume and thread/fork.
type ThreadResult struct {
	Thread            Thread             `json:"thread"`
	Model             String             `json:"model"`
	ModelProvider     String             `json:"modelProvider"`
	ServiceTier       *string            `json:"serviceTier"`
	Cwd               string             `json:"cwd"`
	ApprovalPolicy    json.RawMessage    `json:"approvalPolicy"`
	ApprovalsReviewer string             `json:"approvalsReviewer"`
	Sandbox           Sandbox            `json:"sandbox"`
	Profile           *Profile           `json:"activePermissionProfile"`
	ReasoningEffort   *string            `json:"reasoningEffort"`
	CollaborationMode *CollaborationMode `json:"collaborationMode"`
}

// Settings gives the facts under the names of the settings notification.
func (r ThreadResult) Settings() Settings {
	return Settings{
		Cwd: r.Cwd, Model: r.Model, ModelProvider: r.ModelProvider, ServiceTier: r.ServiceTier,
		Effort: r.ReasoningEffort, ApprovalPolicy: r.ApprovalPolicy, ApprovalsReviewer: r.ApprovalsReviewer,
		SandboxPolicy: r.Sandbox, Profile: r.Profile, CollaborationMode: r.CollaborationMode,
	}
}

// Model is one model of the executable's catalog.
type Model struct {
	ID               string   `json:"id"`
	Model            string   `json:"model"`
	DisplayName      String   `json:"displayName"`
	Hidden           bool     `json:"hidden"`
	IsDefault        bool     `json:"isDefault"`
	Efforts          []Effort `json:"supportedReasoningEfforts"`
	DefaultEffort    String   `json:"defaultReasoningEffort"`
	InputModalities  []String `json:"inputModalities"`
	ServiceTiers     []Tier   `json:"serviceTiers"`
	DefaultTier      String   `json:"defaultServiceTier"`
	AdditionalSpeeds []String `json:"additionalSpeedTiers"`
}

// Effort is one reasoning level.
type Effort struct {
	Effort String `json:"reasoningEffort"`
}

// Tier is one service tier.
type Tier struct {
	ID String `json:"id"`
}

// account is the answer of account/read.
type account struct {
	Account *struct {
		Type String `json:"type"`
		Plan String `json:"planType"`
	} `json:"account"`
	RequiresOpenaiAuth bool `json:"requiresOpenaiAuth"`
}

// SignedIn reports that the provider can be used with what is stored: an account is there, or none is needed. It is no
// proof that the provider accepts it.
func (a *account) SignedIn() bool { return a.Account != nil || !a.RequiresOpenaiAuth }

// TokenUsage counts tokens.
type TokenUsage struct {
	TotalTokens           uint64 `json:"totalTokens"`
	InputTokens           uint64 `json:"inputTokens"`
	CachedInputTokens     uint64 `json:"cachedInputTokens"`
	CacheWriteInputTokens uint64 `json:"cacheWriteInputTokens"`
	OutputTokens          uint64 `json:"outputTokens"`
}
