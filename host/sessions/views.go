package sessions

import (
	"strings"
	"time"

	"github.com/openphone-host/openphone/host/sessions/preview"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// promptPreview is the preview a prompt makes.
func promptPreview(in SendInput) string { return preview.Of(in.Text, len(in.Attachments) > 0) }

// messagePreview is the preview a reply makes; empty: none.
func messagePreview(m *runtime.Message) string {
	if m == nil {
		return ""
	}
	text, image := textOf(*m)
	return preview.Of(text, image)
}

// textOf is the text of a message and whether it holds an image.
func textOf(m runtime.Message) (text string, image bool) {
	var b strings.Builder
	for _, p := range m.Parts {
		switch {
		case strings.HasPrefix(p.ContentType, "image/"):
			image = true
		case p.Text != "":
			if b.Len() > 0 {
				b.WriteString(separator)
			}
			b.WriteString(p.Text)
		}
	}
	return b.String(), image
}

// lastMessage is what a reply makes of the last message of a native conversation.
func lastMessage(m *runtime.Message, at time.Time, old *runtime.LastMessage) *runtime.LastMessage {
	if m == nil {
		return old
	}
	text, image := textOf(*m)
	return &runtime.LastMessage{Role: runtime.RoleAssistant, Text: firstCharacters(text, 2000), HasImage: image, CreatedAt: at}
}
