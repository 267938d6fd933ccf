package conversations

import (
	"encoding/json"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func toolStatus(s runtime.ToolStatus) string {
	switch s {
	case runtime.ToolStatusRunning:
		return "running"
	case runtime.ToolStatusSucceeded:
		return "success"
	case runtime.ToolStatusFailed:
		return "error"
	}
	return "unknown"
}

// tool is a call as a row of history.
func (d *Dialect) tool(t *runtime.ToolCall) *clawket.Tool {
	out := &clawket.Tool{
		Name: t.Name, Status: toolStatus(t.Status), CallID: t.CallID, Input: d.toolInput(t.Input), Output: toolOutput(t.Output),
		Summary: t.Title, StartedAtMS: millis(t.StartedAt), FinishedAtMS: millis(t.FinishedAt),
		// An explicit "unknown" must not be read as finished; only these backends' readers know the mark.
		StatusReported: d.traits.turns && t.Status == runtime.ToolStatusUnknown,
	}
	if t.Duration > 0 {
		ms := t.Duration.Milliseconds()
		out.DurationMS = &ms
	}
	return out
}

// toolInput gives the arguments as they are, if they are JSON, and otherwise as text.
func (d *Dialect) toolInput(p runtime.Payload) json.RawMessage {
	if len(p.Data) == 0 {
		return nil
	}
	raw := document(p)
	if d.traits.boxedInput && jsonframe.Units(string(raw)) > clawket.MaxToolUnits {
		raw, _ = jsonframe.Marshal(map[string]string{"preview": jsonframe.CutUnits(string(raw), clawket.MaxToolUnits)})
	}
	return raw
}

// toolOutput is the result as text, cut for history.
func toolOutput(p runtime.Payload) string {
	text := string(p.Data)
	var s string
	if isJSON(p) && json.Unmarshal(p.Data, &s) == nil {
		text = s
	}
	return jsonframe.CutUnits(strings.ToValidUTF8(text, "\uFFFD"), clawket.MaxToolUnits)
}

// liveOutput is the result as it is, cut when it is longer than history would show.
func liveOutput(p runtime.Payload) json.RawMessage {
	if len(p.Data) == 0 {
		return nil
	}
	if isJSON(p) && len(p.Data) <= clawket.MaxToolUnits && json.Valid(p.Data) {
		return document(p)
	}
	raw, _ := jsonframe.Marshal(toolOutput(p))
	return raw
}

func isJSON(p runtime.Payload) bool {
	return p.ContentType == "application/json" || strings.HasSuffix(p.ContentType, "+json")
}

// document is a payload as a JSON value.
func document(p runtime.Payload) json.RawMessage {
	if isJSON(p) && json.Valid(p.Data) {
		return p.Data
	}
	raw, _ := jsonframe.Marshal(string(p.Data))
	return raw
}
