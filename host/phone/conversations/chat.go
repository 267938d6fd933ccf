package conversations

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// imageTypes are what a prompt may carry.
var imageTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/webp": true, "image/gif": true}

// accepted is the answer to a prompt: the receipt is durable. Events of the run may come before it.
type accepted struct {
	RunID string `json:"runId"`
}

// send checks the shape of a prompt; everything with a memory is the service's.
func (d *Dialect) send(ctx context.Context, c *call) (any, error) {
	in, err := d.prompt(c)
	if err != nil {
		return nil, err
	}
	runID, err := d.svc.Send(ctx, *in)
	if err != nil {
		return nil, err
	}
	return accepted{RunID: runID}, nil
}

func (d *Dialect) prompt(c *call) (*sessions.SendInput, error) {
	t := &d.traits
	in := &sessions.SendInput{SessionKey: c.sessionKey()}
	if c.given("text") {
		in.Text = c.anyText("text")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	in.IdempotencyKey = c.text("idempotencyKey", clawket.MaxKeyUnits)
	if c.failed || t.keyNotBlank && blank(in.IdempotencyKey) {
		return nil, codes.New(codes.KeyInvalid)
	}
	if jsonframe.Units(in.Text) > t.textUnits {
		return nil, codes.New(codes.PromptTooLong, "limit", strconv.Itoa(t.textUnits))
	}
	var err error
	if in.Attachments, err = d.images(c); err != nil {
		return nil, err
	}
	if in.Text == "" && len(in.Attachments) == 0 || t.keyNotBlank && blank(in.Text) && len(in.Attachments) == 0 {
		return nil, codes.New(codes.PromptEmpty)
	}
	if t.noThinking && c.given("thinkingLevel") || t.noSkill && c.given("skillId") {
		return nil, codes.New(codes.ParamsInvalid)
	}
	in.Thinking = c.optional("thinkingLevel", clawket.MaxKeyUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	if in.Fingerprint, err = t.fingerprint(c); err != nil {
		return nil, codes.New(codes.ParamsInvalid).Because(err)
	}
	return in, nil
}

// images reads the attachments of a prompt: inline pictures and nothing else.
func (d *Dialect) images(c *call) ([]sessions.Attachment, error) {
	if !c.given("attachments") {
		return nil, nil
	}
	var list []json.RawMessage
	if c.read("attachments", '[', &list); c.failed {
		return nil, codes.New(codes.AttachmentMalformed)
	}
	if len(list) > d.traits.images {
		return nil, codes.New(codes.AttachmentsTooMany, "limit", strconv.Itoa(d.traits.images))
	}
	var out []sessions.Attachment
	total := 0
	for _, raw := range list {
		fields, err := clawket.Fields(raw)
		if err != nil || fields == nil {
			return nil, codes.New(codes.AttachmentMalformed)
		}
		p := params{fields: fields}
		kind, mime, content, name := p.anyText("type"), p.anyText("mimeType"), p.anyText("content"), p.optional("name", clawket.MaxFrame)
		if p.failed {
			return nil, codes.New(codes.AttachmentMalformed)
		}
		if kind != "image" || !imageTypes[mime] {
			return nil, codes.New(codes.AttachmentUnsupported)
		}
		if total += len(content); d.traits.imageBase64 > 0 && total > d.traits.imageBase64 {
			return nil, codes.New(codes.AttachmentTooLarge)
		}
		data, ok := decodeBase64(content)
		if !ok {
			return nil, codes.New(codes.AttachmentMalformed)
		}
		out = append(out, sessions.Attachment{MIME: mime, Name: baseName(name), Data: data})
	}
	return out, nil
}

// decodeBase64 takes the standard alphabet with or without its padding, and nothing between.
func decodeBase64(s string) ([]byte, bool) {
	if s == "" || strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil || len(data) == 0 || len(s)-len(strings.TrimRight(s, "=")) > 2 {
		return nil, false
	}
	return data, true
}

// baseName leaves of a name what comes after any directory.
func baseName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	return jsonframe.CutUnits(name, clawket.MaxKeyUnits)
}

// promptStatus tells whether there is a receipt. It proves nothing about execution (SYNC-12).
func (d *Dialect) promptStatus(ctx context.Context, c *call) (any, error) {
	key, id := c.sessionKey(), c.text("idempotencyKey", clawket.MaxKeyUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	runID, recorded, err := d.svc.PromptStatus(ctx, key, id)
	if err != nil && (codes.Of(err) != codes.SessionUnknown || d.traits.statusFails) {
		return nil, err
	}
	if err != nil || !recorded {
		return map[string]string{"status": "unknown"}, nil
	}
	return map[string]string{"status": "recorded", "runId": runID}, nil
}

// abort asks for the end of a reply; the end itself is an event.
func (d *Dialect) abort(ctx context.Context, c *call) (any, error) {
	key, runID := c.sessionKey(), c.optional("runId", clawket.MaxKeyUnits)
	if err := c.err(); err != nil {
		return nil, err
	}
	ran, err := d.svc.Abort(ctx, key, runID)
	if err != nil {
		return nil, err
	}
	if !d.traits.abortCompleted {
		return acknowledged{OK: true}, nil
	}
	if !ran {
		return nil, codes.New(codes.RunNotActive)
	}
	return map[string]bool{"ok": true, "completed": false}, nil
}

func (d *Dialect) steer(ctx context.Context, c *call) (any, error) {
	key, runID, text := c.sessionKey(), c.text("runId", clawket.MaxKeyUnits), c.anyText("text")
	if err := c.err(); err != nil {
		return nil, err
	}
	if blank(text) {
		return nil, codes.New(codes.PromptEmpty)
	}
	if jsonframe.Units(text) > d.traits.textUnits {
		return nil, codes.New(codes.PromptTooLong, "limit", strconv.Itoa(d.traits.textUnits))
	}
	return done(d.svc.Steer(ctx, key, runID, text))
}
