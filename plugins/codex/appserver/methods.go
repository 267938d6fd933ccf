package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// Bounds of the model catalog.
const (
	modelPage  = 100  // models asked for at once
	modelPages = 20   // pages read
	maxModels  = 2000 // models kept
)

// errCatalog says that a list broke its own rules: a repeated cursor, too many pages or rows.
var errCatalog = errors.New("appserver: list out of bounds")

// Server is what initialize tells.
type Server struct {
	UserAgent string `json:"userAgent"`
	CodexHome string `json:"codexHome"`
}

// Version is the native version inside the user agent; empty if it has another form.
func (s Server) Version() string {
	_, rest, ok := strings.Cut(s.UserAgent, "/")
	if !ok {
		return ""
	}
	v, _, _ := strings.Cut(rest, " ")
	return v
}

// Initialize makes the handshake. Nothing else can be called before.
func (c *Client) Initialize(ctx context.Context, name, title, version string) (Server, error) {
	var s Server
	params := map[string]any{
		"clientInfo":   map[string]any{"name": name, "title": title, "version": version},
		"capabilities": map[string]any{"experimentalApi": true},
	}
	if err := c.call(ctx, "initialize", params, &s); err != nil {
		return s, err
	}
	return s, c.send(ctx, struct {
		Method string `json:"method"`
	}{"initialized"})
}

// Models reads the whole catalog of this executable, without hidden ones. A repeated cursor is refused.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	var all []Model
	seen := map[string]bool{}
	cursor := ""
	for range modelPages {
		params := map[string]any{"limit": modelPage}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var page struct {
			Data []Model `json:"data"`
			Next *string `json:"nextCursor"`
		}
		if err := c.call(ctx, "model/list", params, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if !m.Hidden {
				all = append(all, m)
			}
		}
		if len(all) > maxModels {
			return nil, errCatalog
		}
		if page.Next == nil || *page.Next == "" {
			return all, nil
		}
		if cursor = *page.Next; seen[cursor] {
			return nil, errCatalog
		}
		seen[cursor] = true
	}
	return nil, errCatalog
}

// Account tells who is signed in, from what is stored on the computer.
func (c *Client) Account(ctx context.Context) (*account, error) {
	a := &account{}
	return a, c.call(ctx, "account/read", map[string]any{"refreshToken": false}, a)
}

// ThreadParams are the choices of thread/start, thread/resume and thread/fork. Permissions is a profile id. Empty
// fields are left to the runtime.
type ThreadParams struct {
	ThreadID          string         `json:"threadId,omitempty"`
	Cwd               string         `json:"cwd,omitempty"`
	Model             string         `json:"model,omitempty"`
	ServiceTier       *string        `json:"serviceTier,omitempty"`
	ApprovalPolicy    any            `json:"approvalPolicy,omitempty"`
	ApprovalsReviewer string         `json:"approvalsReviewer,omitempty"`
	Permissions       string         `json:"permissions,omitempty"`
	Config            map[string]any `json:"config,omitempty"`
	ExcludeTurns      bool           `json:"excludeTurns,omitempty"`
}

// ThreadStart begins an empty thread. It has no record before its first turn.
func (c *Client) ThreadStart(ctx context.Context, p ThreadParams) (ThreadResult, error) {
	var r ThreadResult
	err := c.call(ctx, "thread/start", p, &r)
	return r, err
}

// ThreadResume loads a thread and takes its writer lock. On a loaded thread it only reads: all choices are ignored.
func (c *Client) ThreadResume(ctx context.Context, p ThreadParams) (ThreadResult, error) {
	var r ThreadResult
	err := c.call(ctx, "thread/resume", p, &r)
	return r, err
}

// ThreadFork copies a thread into a new one.
func (c *Client) ThreadFork(ctx context.Context, p ThreadParams) (ThreadResult, error) {
	var r ThreadResult
	err := c.call(ctx, "thread/fork", p, &r)
	return r, err
}

// ThreadRead reads what is known of a thread, without its history and without its lock.
func (c *Client) ThreadRead(ctx context.Context, threadID string) (Thread, error) {
	var r struct {
		Thread Thread `json:"thread"`
	}
	err := c.call(ctx, "thread/read", map[string]any{"threadId": threadID}, &r)
	return r.Thread, err
}

// ThreadListParams choose a page of thread/list.
type ThreadListParams struct {
	Cursor   *string `json:"cursor,omitempty"`
	Limit    int     `json:"limit,omitempty"`
	Archived bool    `json:"archived"`
	Cwd      string  `json:"cwd,omitempty"`

	ModelProviders []string `json:"modelProviders"` // empty, not null: all
	SourceKinds    []string `json:"sourceKinds,omitempty"`
	SortKey        string   `json:"sortKey,omitempty"`
	StateDBOnly    bool     `json:"useStateDbOnly,omitempty"`
}

// ThreadPage is a page of threads. Rows are raw so that one that cannot be read does not lose the page.
type ThreadPage struct {
	Data []json.RawMessage `json:"data"`
	Next *string           `json:"nextCursor"`
}

// ThreadList reads a page of the catalog.
func (c *Client) ThreadList(ctx context.Context, p ThreadListParams) (ThreadPage, error) {
	if p.ModelProviders == nil {
		p.ModelProviders = []string{}
	}
	var r ThreadPage
	err := c.call(ctx, "thread/list", p, &r)
	return r, err
}

// PageParams choose a page of a thread's history.
type PageParams struct {
	ThreadID  string `json:"threadId"`
	TurnID    string `json:"turnId,omitempty"` // items only
	Cursor    string `json:"cursor,omitempty"`
	Limit     int    `json:"limit,omitempty"`
	Direction string `json:"sortDirection,omitempty"` // asc, desc
	ItemsView string `json:"itemsView,omitempty"`     // turns only: notLoaded, summary, full
}

// TurnPage is a page of turns.
type TurnPage struct {
	Data []Turn  `json:"data"`
	Next *string `json:"nextCursor"`
}

// Turns reads a page of turns, newest first unless asked otherwise. It loads and locks nothing.
func (c *Client) Turns(ctx context.Context, p PageParams) (TurnPage, error) {
	var r TurnPage
	err := c.call(ctx, "thread/turns/list", p, &r)
	return r, err
}

// ItemRow is one item with its place.
type ItemRow struct {
	TurnID        string   `json:"turnId"`
	Item          Item     `json:"item"`
	StartedAtMs   *float64 `json:"startedAtMs"`
	CompletedAtMs *float64 `json:"completedAtMs"`
}

// ItemPage is a page of items.
type ItemPage struct {
	Data []ItemRow `json:"data"`
	Next *string   `json:"nextCursor"`
}

// Items reads a page of items. Threads of older versions do not support it (RefusalEmptyHistory).
func (c *Client) Items(ctx context.Context, p PageParams) (ItemPage, error) {
	var r ItemPage
	err := c.call(ctx, "thread/items/list", p, &r)
	return r, err
}

func (c *Client) onThread(ctx context.Context, method, threadID string) error {
	return c.call(ctx, method, map[string]any{"threadId": threadID}, nil)
}

// ThreadName gives a thread its name. It makes a record of an empty thread, and works on a thread others own.
func (c *Client) ThreadName(ctx context.Context, threadID, name string) error {
	return c.call(ctx, "thread/name/set", map[string]any{"threadId": threadID, "name": name}, nil)
}

// ThreadArchive archives a thread; it would interrupt a running turn.
func (c *Client) ThreadArchive(ctx context.Context, threadID string) error {
	return c.onThread(ctx, "thread/archive", threadID)
}

// ThreadUnarchive takes a thread out of the archive.
func (c *Client) ThreadUnarchive(ctx context.Context, threadID string) error {
	return c.onThread(ctx, "thread/unarchive", threadID)
}

// ThreadUnsubscribe lets go of a loaded thread; its lock is free after the unload delay.
func (c *Client) ThreadUnsubscribe(ctx context.Context, threadID string) error {
	return c.onThread(ctx, "thread/unsubscribe", threadID)
}

// Update is a subset of settings. ServiceTier is raw so that null can be said. Permissions is a profile id and is
// never sent together with a sandbox policy.
type Update struct {
	ThreadID          string             `json:"threadId"`
	Model             string             `json:"model,omitempty"`
	Effort            string             `json:"effort,omitempty"`
	ServiceTier       json.RawMessage    `json:"serviceTier,omitempty"`
	ApprovalPolicy    any                `json:"approvalPolicy,omitempty"`
	ApprovalsReviewer string             `json:"approvalsReviewer,omitempty"`
	Permissions       string             `json:"permissions,omitempty"`
	CollaborationMode *CollaborationMode `json:"collaborationMode,omitempty"`
}

// SettingsUpdate asks for settings. Its answer proves nothing: the confirmation is thread/settings/updated, and there
// is none when nothing changes.
func (c *Client) SettingsUpdate(ctx context.Context, u Update) error {
	return c.call(ctx, "thread/settings/update", u, nil)
}

// TurnParams are a prompt. ClientID comes back as clientId of the user message.
type TurnParams struct {
	ThreadID          string      `json:"threadId"`
	Input             []UserInput `json:"input"`
	ClientID          string      `json:"clientUserMessageId,omitempty"`
	ApprovalPolicy    any         `json:"approvalPolicy,omitempty"`
	ApprovalsReviewer string      `json:"approvalsReviewer,omitempty"`
	Permissions       string      `json:"permissions,omitempty"`
	Effort            string      `json:"effort,omitempty"`
}

// TurnStart sends a prompt. While a turn is active it steers that one and names it: callers check first, and compare.
func (c *Client) TurnStart(ctx context.Context, p TurnParams) (Turn, error) {
	var r struct {
		Turn Turn `json:"turn"`
	}
	err := c.call(ctx, "turn/start", p, &r)
	return r.Turn, err
}

// TurnSteer adds to exactly this running turn.
func (c *Client) TurnSteer(ctx context.Context, threadID, turnID string, input []UserInput) error {
	return c.call(ctx, "turn/steer", map[string]any{
		"threadId": threadID, "expectedTurnId": turnID, "input": input,
	}, nil)
}

// TurnInterrupt asks for the end of exactly this turn. The answer is an acknowledgement only.
func (c *Client) TurnInterrupt(ctx context.Context, threadID, turnID string) error {
	return c.call(ctx, "turn/interrupt", map[string]any{"threadId": threadID, "turnId": turnID}, nil)
}

// ConfigRead reads the effective configuration of a directory with its layers; cwd may be empty.
func (c *Client) ConfigRead(ctx context.Context, cwd string) (json.RawMessage, error) {
	params := map[string]any{"includeLayers": true}
	if cwd != "" {
		params["cwd"] = cwd
	}
	var r json.RawMessage
	err := c.call(ctx, "config/read", params, &r)
	return r, err
}

// ConfigEdit is one change of the user's configuration; a nil Value removes the key.
type ConfigEdit struct {
	KeyPath       string `json:"keyPath"`
	Value         any    `json:"value"`
	MergeStrategy string `json:"mergeStrategy"` // replace, upsert
}

// ConfigWrite changes the user's configuration if it still has the expected version.
func (c *Client) ConfigWrite(ctx context.Context, edits []ConfigEdit, expectedVersion string) error {
	return c.call(ctx, "config/batchWrite", map[string]any{
		"edits": edits, "expectedVersion": expectedVersion, "reloadUserConfig": false,
	}, nil)
}

// Skills lists the skills of a directory. The row's cwd echoes the request.
func (c *Client) Skills(ctx context.Context, cwd string, reload bool) (json.RawMessage, error) {
	var r json.RawMessage
	err := c.call(ctx, "skills/list", map[string]any{"cwds": []string{cwd}, "forceReload": reload}, &r)
	return r, err
}

// SkillWrite switches a skill on or off by the path of its file. It reports success for unknown ones too.
func (c *Client) SkillWrite(ctx context.Context, path string, enabled bool) error {
	return c.call(ctx, "skills/config/write", map[string]any{"path": path, "enabled": enabled}, nil)
}

// MCPServers reads a page of the configured MCP servers.
func (c *Client) MCPServers(ctx context.Context, detail, cursor string, limit int) (json.RawMessage, error) {
	params := map[string]any{"detail": detail, "limit": limit}
	if cursor != "" {
		params["cursor"] = cursor
	}
	var r json.RawMessage
	err := c.call(ctx, "mcpServerStatus/list", params, &r)
	return r, err
}

// RateLimits reads the limits of the signed-in account; an error means unknown.
func (c *Client) RateLimits(ctx context.Context) (json.RawMessage, error) {
	var r json.RawMessage
	err := c.call(ctx, "account/rateLimits/read", nil, &r)
	return r, err
}

// Usage reads the account's use; an error means unknown.
func (c *Client) Usage(ctx context.Context) (json.RawMessage, error) {
	var r json.RawMessage
	err := c.call(ctx, "account/usage/read", nil, &r)
	return r, err
}

// Plugins lists the runtime's own plugins in a directory.
func (c *Client) Plugins(ctx context.Context, cwd string) (json.RawMessage, error) {
	params := map[string]any{}
	if cwd != "" {
		params["cwds"] = []string{cwd}
	}
	var r json.RawMessage
	err := c.call(ctx, "plugin/installed", params, &r)
	return r, err
}

// Requirements reads what the computer's administrator demands.
func (c *Client) Requirements(ctx context.Context) (json.RawMessage, error) {
	var r json.RawMessage
	err := c.call(ctx, "configRequirements/read", nil, &r)
	return r, err
}
