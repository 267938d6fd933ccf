package conversations

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// history reads one page. A page whose JSON is too large is read again with half as many messages; a single message that
// is too large is an error, never cut.
func (d *Dialect) history(ctx context.Context, c *call) (any, error) {
	key, wrapped := c.sessionKey(), c.optional("cursor", clawket.MaxFrame)
	given := c.given("cursor")
	// Old readers of some backends want the pictures of the assistant in the page itself (ART-04).
	inline := d.traits.inlineImages && !c.optionalFlag("artifacts")
	if err := c.err(); err != nil {
		return nil, err
	}
	cursor := ""
	if given {
		var err error
		if cursor, err = d.unwrapCursor(wrapped); err != nil {
			return nil, err
		}
	}
	for size := d.traits.pageSize; ; size /= 2 {
		h, err := d.svc.History(ctx, key, cursor, size)
		if err != nil {
			return nil, err
		}
		page, err := d.page(key, h, inline)
		if err != nil {
			return nil, err
		}
		text, err := jsonframe.Marshal(page)
		if err != nil {
			return nil, err
		}
		if len(text) <= clawket.MaxHistory {
			return json.RawMessage(text), nil
		}
		if size == 1 || len(h.Messages) <= 1 {
			return nil, codes.New(codes.MessageTooLarge)
		}
		size = min(size, len(h.Messages))
	}
}

func (d *Dialect) page(key string, h *sessions.History, inline bool) (*clawket.History, error) {
	next, err := d.wrapCursor(h.NextCursor)
	if err != nil {
		return nil, err
	}
	out := &clawket.History{
		Key: key, Messages: make([]clawket.Message, 0, len(h.Messages)), NextCursor: next, HasActiveRun: h.ActiveRun != nil,
		SessionID: h.SessionID, ThinkingLevel: h.Thinking,
	}
	for i := range h.Messages {
		if m := &h.Messages[i]; m.Role != runtime.RoleUnspecified {
			out.Messages = append(out.Messages, d.message(m, inline))
		}
	}
	if r := h.ActiveRun; r != nil {
		abortable := r.Abortable
		out.ActiveRun = &clawket.ActiveRun{RunID: r.RunID, Text: r.Text, StartedAtMS: millis(r.StartedAt), SessionAbortable: &abortable}
		if d.traits.turns {
			a := out.ActiveRun
			a.TurnID, a.InputMessageID, a.InputMessageKey = r.NativeRunID, r.InputMessageID, r.InputKey
			a.MessageTimestampMS = millis(r.StartedAt)
		}
	}
	return out, nil
}

func (d *Dialect) message(m *sessions.HistoryMessage, inline bool) clawket.Message {
	out := clawket.Message{
		ID: m.MessageID, Role: m.Role.String(), Text: d.text(m), TimestampMS: millis(m.CreatedAt), IdempotencyKey: m.IdempotencyKey,
		Provider: m.ProviderID, Model: m.ModelID,
	}
	if d.traits.turns {
		out.TurnID = m.NativeRunID
	}
	if d.traits.usage {
		out.Usage = usage(m.Usage)
	}
	if m.Role == runtime.RoleTool && m.ToolCall != nil {
		out.Tool = d.tool(m.ToolCall)
		out.ID = d.toolID(m.ToolCall.CallID)
	}
	if m.Role == runtime.RoleAssistant {
		out.Attachments, out.ArtifactDisplayText = delivered(m, inline)
	} else {
		out.Attachments = received(m.Parts)
	}
	return out
}

// text joins the text of a message like the parts of a running reply, or gives the sentence of a notice.
func (d *Dialect) text(m *sessions.HistoryMessage) string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
	}
	if b.Len() == 0 && m.NoticeCode != "" {
		return d.sentence(m.NoticeCode, nil)
	}
	return b.String()
}

// toolID is the id of a tool's row, the same live and in history.
func (d *Dialect) toolID(callID string) string {
	if d.traits.plainToolIDs {
		return callID
	}
	return "toolcall_" + callID
}

// delivered are the files and pictures an assistant's message handed over.
func delivered(m *sessions.HistoryMessage, inline bool) (list []clawket.Attachment, display *string) {
	byID := false
	for _, f := range m.Files {
		a := clawket.Attachment{Type: "file", MIMEType: f.MIME, Name: f.Name, ArtifactID: f.ID}
		if f.Image {
			a.Type = "image"
			if inline && len(f.Data) > 0 {
				a.ArtifactID, a.Content = "", base64.StdEncoding.EncodeToString(f.Data)
			}
		}
		byID = byID || a.ArtifactID != ""
		list = append(list, a)
	}
	if byID && m.Converted {
		display = &m.DisplayText
	}
	return list, display
}

// received are the pictures a person sent along.
func received(parts []runtime.Part) (list []clawket.Attachment) {
	for _, p := range parts {
		if p.ContentType == "" {
			continue
		}
		a := clawket.Attachment{Type: "file", MIMEType: p.ContentType, Name: p.Name}
		if strings.HasPrefix(p.ContentType, "image/") {
			a.Type = "image"
			if len(p.Data) > 0 {
				a.Content = base64.StdEncoding.EncodeToString(p.Data)
			}
		}
		list = append(list, a)
	}
	return list
}

func usage(u *runtime.Usage) *clawket.Usage {
	if u == nil || *u == (runtime.Usage{}) {
		return nil
	}
	return &clawket.Usage{
		Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens,
		CacheWrite: u.CacheWriteTokens, Total: u.TotalTokens, CostUSD: u.CostUSD,
	}
}
