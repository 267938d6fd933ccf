package conversations

import (
	"encoding/base64"
	"encoding/json"
	"regexp"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// maxCursor is the longest cursor a phone may send, in characters.
const maxCursor = 4096

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)

// itemsCursor is the Codex form. End is what older hosts added; it pointed into their own page and means nothing here.
type itemsCursor struct {
	Kind   string `json:"kind"`
	Native string `json:"native,omitempty"`
	End    *int64 `json:"end,omitempty"`
}

// wrapCursor turns the runtime's cursor into what the backend's readers expect: decimal text for Claude and Pi, whose
// plugins count messages, and the wrapped form for everything else.
func (d *Dialect) wrapCursor(native string) (string, error) {
	if native == "" {
		return "", nil
	}
	if d.traits.decimalCursor && decimal.MatchString(native) {
		return native, nil
	}
	text, err := jsonframe.Marshal(itemsCursor{Kind: "items", Native: native})
	if err != nil {
		return "", err
	}
	wrapped := base64.RawURLEncoding.EncodeToString(text)
	if len(wrapped) > maxCursor {
		return "", codes.New(codes.ReplyInvalid)
	}
	return wrapped, nil
}

func (d *Dialect) unwrapCursor(wrapped string) (string, error) {
	bad := codes.New(codes.CursorInvalid)
	if len(wrapped) > maxCursor {
		return "", bad
	}
	if d.traits.decimalCursor && decimal.MatchString(wrapped) {
		return wrapped, nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(wrapped)
	if err != nil {
		return "", bad
	}
	var c itemsCursor
	if json.Unmarshal(text, &c) != nil || c.Kind != "" && c.Kind != "items" || c.Native == "" {
		return "", bad
	}
	return c.Native, nil
}
