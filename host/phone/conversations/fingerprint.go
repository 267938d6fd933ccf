package conversations

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// fingerprintWhole is the sha256 of the request's params as they came, members in the order received, in the form the
// other implementations write JSON.
func fingerprintWhole(c *call) (string, error) {
	var b strings.Builder
	if err := restate(&b, json.NewDecoder(bytes.NewReader(c.raw))); err != nil {
		return "", err
	}
	return hash(b.String()), nil
}

// fingerprintContent covers text and attachments only.
func fingerprintContent(c *call) (string, error) {
	var b strings.Builder
	b.WriteString(`{"text":`)
	if err := restate(&b, json.NewDecoder(bytes.NewReader(c.fields["text"]))); err != nil {
		return "", err
	}
	b.WriteString(`,"attachments":`)
	if c.given("attachments") {
		if err := restate(&b, json.NewDecoder(bytes.NewReader(c.fields["attachments"]))); err != nil {
			return "", err
		}
	} else {
		b.WriteString("[]")
	}
	b.WriteString("}")
	return hash(b.String()), nil
}

// restate writes the next JSON value without white space and with no escapes beyond the necessary ones. Receipts are
// compared with what it wrote before a restart, so its output must never change.
func restate(b *strings.Builder, d *json.Decoder) error {
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return restateScalar(b, t)
	}
	b.WriteRune(rune(delim))
	for first := true; d.More(); first = false {
		if !first {
			b.WriteByte(',')
		}
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			if err := restateScalar(b, name); err != nil {
				return err
			}
			b.WriteByte(':')
		}
		if err := restate(b, d); err != nil {
			return err
		}
	}
	if t, err = d.Token(); err != nil {
		return err
	}
	b.WriteRune(rune(t.(json.Delim)))
	return nil
}

func restateScalar(b *strings.Builder, t json.Token) error {
	text, err := clawket.Marshal(t)
	if err != nil {
		return err
	}
	b.Write(text)
	return nil
}
