package conversations

import (
	"encoding/json"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// fingerprintWhole is the sha256 of a prompt's params with their members in the order received, as the other
// implementations write them. Receipts are compared with what was written before a restart, so neither this form nor
// the next may ever change.
func fingerprintWhole(c *call) (string, error) {
	list, err := jsonframe.Members(c.raw)
	if err != nil {
		return "", err
	}
	return fingerprint(list)
}

// fingerprintContent covers text and attachments only.
func fingerprintContent(c *call) (string, error) {
	text, attachments := json.RawMessage(`""`), json.RawMessage("[]")
	if c.given("text") {
		text = c.fields["text"]
	}
	if c.given("attachments") {
		attachments = c.fields["attachments"]
	}
	return fingerprint([]jsonframe.Member{{Name: "text", Value: text}, {Name: "attachments", Value: attachments}})
}

func fingerprint(list []jsonframe.Member) (string, error) {
	text := []byte("{")
	for i, m := range list {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := jsonframe.Marshal(m.Name)
		if err != nil {
			return "", err
		}
		value, err := jsonframe.Canonical(m.Value)
		if err != nil {
			return "", err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return hash(string(append(text, '}'))), nil
}
