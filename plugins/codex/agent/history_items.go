package agent

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// userParts is a user's message as parts: texts and inline images, in order. Files named by path stay where they are.
func userParts(it appserver.Item) []runtime.Part {
	var parts []runtime.Part
	for _, in := range it.Inputs() {
		switch in.Type {
		case "text":
			if in.Text != "" {
				parts = append(parts, runtime.Part{Text: in.Text})
			}
		case "image":
			if data, mime, ok := dataURL(in.URL); ok {
				parts = append(parts, runtime.Part{Data: data, ContentType: mime})
			}
		}
	}
	return parts
}

// dataURL reads data:<mime>;base64,<data>.
func dataURL(url string) (data []byte, mime string, ok bool) {
	rest, found := strings.CutPrefix(url, "data:")
	if !found {
		return nil, "", false
	}
	mime, body, found := strings.Cut(rest, ";base64,")
	if !found {
		return nil, "", false
	}
	data, err := base64.StdEncoding.DecodeString(body)
	return data, mime, err == nil
}

// hasImage reports that a user's message carried an image of any kind.
func hasImage(it appserver.Item) bool {
	for _, in := range it.Inputs() {
		if in.Type == "image" || in.Type == "localImage" {
			return true
		}
	}
	return false
}

// messageOf is an item as a message; ok is false for items nobody is shown in a history: thoughts and bookkeeping.
func messageOf(turn appserver.Turn, it appserver.Item) (m runtime.Message, ok bool) {
	m = runtime.Message{MessageID: it.ID, CreatedAt: millis(it.StartedAtMs)}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = millis(it.CompletedAtMs)
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = seconds(turn.StartedAt)
	}
	switch it.Type {
	case "userMessage":
		m.Role, m.Parts = runtime.RoleUser, userParts(it)
		if id := string(it.ClientID); len(id) <= maxClientID {
			m.RunID = id // the client message id is the id of the run that sent it (CX-29)
		}
		return m, true
	case "agentMessage", "plan":
		m.Role, m.Parts = runtime.RoleAssistant, []runtime.Part{{Text: string(it.Text)}}
		return m, it.Text != ""
	}
	if image := delivered(it); image != nil {
		m.Role, m.Parts = runtime.RoleAssistant, []runtime.Part{*image}
		return m, true
	}
	call := toolCall(it)
	if call == nil {
		return m, false
	}
	if call.Status == runtime.ToolStatusRunning && turn.Terminal() {
		call.Status = runtime.ToolStatusUnknown // its turn is over and nobody recorded how it ended
	}
	m.MessageID, m.Role, m.ToolCall = "toolcall_"+it.ID, runtime.RoleTool, call
	return m, true
}

// cutUnits keeps the first n UTF-16 units of s, whole characters only.
func cutUnits(s string, n int) string {
	if len(s) <= n {
		return s
	}
	units := 0
	for i, r := range s {
		if units += utf16.RuneLen(r); units > n {
			return s[:i]
		}
	}
	return s
}
