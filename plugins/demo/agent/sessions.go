package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	rowBatch       = 100
	attachmentStep = 256 << 10
	maxPreview     = 2000 // characters of a LastMessage
)

func ptr[T any](v T) *T { return &v }

// ref gives the full reference of a conversation.
func (c *conversation) ref() runtime.SessionRef {
	return runtime.SessionRef{SessionID: c.hostID, NativeID: c.id, ProjectPath: c.project}
}

// row is a conversation as the catalog shows it. Called with the agent's lock held.
func (a *Agent) row(c *conversation, preview bool) runtime.Session {
	s := runtime.Session{
		Ref: c.ref(), Kind: runtime.SessionKindDirect, Title: c.title, Continuation: runtime.ContinuationAllowed,
		Actions:   []runtime.SessionAction{runtime.SessionActionRename, runtime.SessionActionReset, runtime.SessionActionDelete, runtime.SessionActionArchive},
		UpdatedAt: c.updated, Archived: ptr(c.archived), ParentNativeID: c.parent, ModelID: c.modelID(), ProviderID: provider, ContextTokens: ptr(uint64(contextTokens)),
	}
	act := a.activity(s.Ref)
	s.Activity, s.Attention = act.Activity, act.Attention
	if c.project != "" {
		s.Roots = []string{c.project}
	}
	if preview {
		s.LastMessage = c.last()
	}
	return s
}

// last is the newest thing a person or the agent said; its role is unspecified when there is none.
func (c *conversation) last() *runtime.LastMessage {
	for i := len(c.messages) - 1; i >= 0; i-- {
		m := c.messages[i]
		if m.Role != runtime.RoleUser && m.Role != runtime.RoleAssistant {
			continue
		}
		l := &runtime.LastMessage{Role: m.Role, CreatedAt: m.CreatedAt}
		for _, p := range m.Parts {
			l.Text += p.Text
			l.HasImage = l.HasImage || strings.HasPrefix(p.ContentType, "image/")
		}
		if utf8.RuneCountInString(l.Text) > maxPreview {
			l.Text = string([]rune(l.Text)[:maxPreview])
		}
		return l
	}
	return &runtime.LastMessage{}
}

// ListSessions implements runtime.Runtime. Everything is in memory, so the scan is always complete.
func (a *Agent) ListSessions(ctx context.Context, r *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
	a.maybeHang("list")
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	end := &runtime.ScanEnd{Complete: true, AsOfSeq: a.sink.Seq()}
	var rows []runtime.Session
	for i, c := range s.list(r.Archived) {
		rows = append(rows, a.row(c, i < int(r.Previews)))
	}
	a.mu.Unlock()
	for len(rows) > 0 {
		n := min(len(rows), rowBatch)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := send(rows[:n]); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	return end, nil
}

// CreateSession implements runtime.Creator: only copies are made here, an empty conversation needs no record.
func (a *Agent) CreateSession(_ context.Context, r *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error) {
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	src, err := s.find(r.Source)
	if err != nil {
		return nil, err
	}
	if src == nil {
		return nil, codes.New(codes.SessionLost)
	}
	id := nativeOf(r.Session)
	if c := s.sessions[id]; c != nil { // asked again
		return &runtime.CreateSessionResponse{Session: ptr(a.row(c, false))}, nil
	}
	if err := s.append(record{T: "session", Session: id, HostID: r.Session.SessionID, Project: src.project, Parent: src.id, Title: r.Title}); err != nil {
		return nil, err
	}
	for _, m := range src.messages {
		m.RunID = "" // the proof belongs to the original
		if err := s.append(record{T: "message", Session: id, Message: &m}); err != nil {
			return nil, err
		}
	}
	return &runtime.CreateSessionResponse{Session: ptr(a.row(s.sessions[id], false))}, nil
}

// Creates implements runtime.Creator.
func (a *Agent) Creates() (every, branches bool) { return false, true }

// UpdateSession implements runtime.Updater. A conversation that had no prompt stays unwritten: the host keeps its title.
func (a *Agent) UpdateSession(_ context.Context, r *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
	a.maybeHang("update")
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := s.find(r.Session)
	if err != nil {
		return nil, err
	}
	if c == nil {
		row := runtime.Session{Ref: r.Session, Archived: r.Archived}
		if r.Title != nil {
			row.Title = *r.Title
		}
		return &runtime.UpdateSessionResponse{Session: &row}, nil
	}
	if r.Title != nil {
		if err := s.append(record{T: "title", Session: c.id, Title: *r.Title}); err != nil {
			return nil, err
		}
	}
	if r.Archived != nil {
		if err := s.append(record{T: "archived", Session: c.id, On: *r.Archived}); err != nil {
			return nil, err
		}
	}
	return &runtime.UpdateSessionResponse{Session: ptr(a.row(c, false))}, nil
}

// Updates implements runtime.Updater.
func (a *Agent) Updates() (title, archived bool) { return true, true }

// DetachSession implements runtime.Detacher. A reset or deleted conversation is archived, never removed.
func (a *Agent) DetachSession(_ context.Context, r *runtime.DetachSessionRequest) error {
	s, err := a.opened()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.live {
		if x.ref.NativeID == nativeOf(r.Session) {
			return codes.New(codes.SessionBusy)
		}
	}
	c, err := s.find(r.Session)
	if err != nil || c == nil || r.Mode == runtime.DetachModeRelease {
		return err
	}
	return s.append(record{T: "archived", Session: c.id, On: true})
}

// ReadHistory implements runtime.Runtime. A cursor is the number of messages older than the page it begins with.
func (a *Agent) ReadHistory(_ context.Context, r *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	a.maybeHang("history")
	s, err := a.opened()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, err := s.find(r.Session)
	if err != nil {
		return nil, err
	}
	page := &runtime.ReadHistoryResponse{AsOfSeq: a.sink.Seq()}
	if c == nil {
		if r.Cursor != "" {
			return nil, codes.New(codes.CursorInvalid)
		}
		return page, nil
	}
	to := len(c.messages)
	if r.Cursor != "" {
		if to, err = c.position(r.Cursor); err != nil {
			return nil, err
		}
	}
	from, size := to, uint64(0)
	for from > 0 && to-from < int(r.MaxMessages) {
		n := messageSize(&c.messages[from-1])
		if size+n > r.MaxBytes {
			break
		}
		size += n
		from--
	}
	if from == to && to > 0 {
		return nil, codes.New(codes.MessageTooLarge)
	}
	page.Messages = append(page.Messages, c.messages[from:to]...)
	if from > 0 {
		page.NextCursor = c.cursor(from)
	}
	return page, nil
}

func (c *conversation) cursor(n int) string { return strconv.Itoa(n) + "." + c.check(n) }

// check ties a cursor to its conversation.
func (c *conversation) check(n int) string {
	sum := sha256.Sum256([]byte(c.id + "/" + strconv.Itoa(n)))
	return hex.EncodeToString(sum[:4])
}

func (c *conversation) position(cursor string) (int, error) {
	num, check, ok := strings.Cut(cursor, ".")
	n, err := strconv.Atoi(num)
	if !ok || err != nil || n < 1 || n > len(c.messages) || check != c.check(n) {
		return 0, codes.New(codes.CursorInvalid)
	}
	return n, nil
}

func messageSize(m *runtime.Message) uint64 {
	n := 200
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Data) + 100
	}
	if m.ToolCall != nil {
		n += len(m.ToolCall.Input.Data) + len(m.ToolCall.Output.Data)
	}
	return uint64(n)
}

// ReadAttachment implements runtime.AttachmentReader: only what the conversation itself names can be read.
func (a *Agent) ReadAttachment(ctx context.Context, r *runtime.ReadAttachmentRequest, send func(*runtime.ReadAttachmentResponse) error) error {
	a.maybeHang("attachment")
	s, err := a.opened()
	if err != nil {
		return err
	}
	a.mu.Lock()
	c, err := s.find(r.Session)
	var part *runtime.Part
	if c != nil {
		part = c.attachment(r.AttachmentID)
	}
	a.mu.Unlock()
	if err != nil {
		return err
	}
	if part == nil {
		return codes.New(codes.AttachmentUnknown)
	}
	data, err := os.ReadFile(filepath.Join(s.dir, filesName, part.AttachmentID))
	if err != nil {
		return codes.New(codes.AttachmentUnknown).Because(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != part.AttachmentID {
		return codes.New(codes.AttachmentChanged)
	}
	file := runtime.Part{ContentType: part.ContentType, Name: part.Name, Size: ptr(uint64(len(data)))}
	if err := send(&runtime.ReadAttachmentResponse{File: &file}); err != nil {
		return err
	}
	for r := bytes.NewReader(data); r.Len() > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := make([]byte, min(r.Len(), attachmentStep))
		_, _ = r.Read(piece)
		if err := send(&runtime.ReadAttachmentResponse{Data: piece}); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversation) attachment(id string) *runtime.Part {
	for _, m := range c.messages {
		for i := range m.Parts {
			if m.Parts[i].AttachmentID == id && id != "" {
				return &m.Parts[i]
			}
		}
	}
	return nil
}
