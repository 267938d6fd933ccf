package agent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxDelivered is the largest generated image that is handed to a phone, in bytes.
const maxDelivered = 5 << 20

// toolCall projects an item that is shown as a tool call, live and in history alike; nil for every other item.
func toolCall(i appserver.Item) *runtime.ToolCall {
	c := &runtime.ToolCall{CallID: i.ID, StartedAt: millis(i.StartedAtMs), FinishedAt: millis(i.CompletedAtMs)}
	if i.DurationMs != nil {
		c.Duration = time.Duration(*i.DurationMs * float64(time.Millisecond))
	}
	c.Status = toolStatus(string(i.Status))
	switch i.Type {
	case "commandExecution":
		c.Name, c.Kind, c.Title = "exec", "command", i.InnerCommand()
		c.Input = jsonPayload(map[string]any{"command": i.InnerCommand(), "cwd": string(i.Cwd)})
		if i.Output != nil {
			c.Output = text(string(*i.Output))
		}
		if i.ExitCode != nil && *i.ExitCode != 0 {
			c.Status = runtime.ToolStatusFailed
		}
	case "fileChange":
		c.Name, c.Kind, c.Title = "apply_patch", "file", changedFiles(i.Changes)
		c.Input = jsonPayload(map[string]any{"changes": boundedChanges(i.Changes)})
	case "mcpToolCall":
		c.Name, c.Kind, c.Title = string(i.Tool), "mcp", string(i.Server)+" · "+string(i.Tool)
		c.Input = runtime.JSON(rawOr(i.Arguments, "{}"))
		c.Output = mcpOutput(i)
		if isSet(i.Error) {
			c.Status = runtime.ToolStatusFailed
		}
	case "dynamicToolCall":
		c.Name, c.Kind = string(i.Tool), "tool"
		c.Input = runtime.JSON(rawOr(i.Arguments, "{}"))
		c.Output = text(contentText(i.ContentItems))
		if i.Success != nil && !*i.Success {
			c.Status = runtime.ToolStatusFailed
		}
	case "webSearch":
		c.Name, c.Kind, c.Title = "web_search", "search", string(i.Query)
		c.Input = jsonPayload(map[string]any{"query": string(i.Query)})
		if isSet(i.Action) {
			c.Status = runtime.ToolStatusSucceeded
		}
	case "imageView":
		c.Name, c.Kind, c.Status = "view_image", "image", runtime.ToolStatusSucceeded
		c.Input = jsonPayload(map[string]any{"path": string(i.Path)})
	case "imageGeneration":
		c.Name, c.Kind = "image_generation", "image"
		if isSet(i.Failure) {
			c.Status = runtime.ToolStatusFailed
		}
	case "collabAgentToolCall", "subAgentActivity":
		c.Name, c.Kind = "agent", "agent"
	default:
		return nil
	}
	if c.Name == "" {
		c.Name = i.Type
	}
	return c
}

func toolStatus(s string) runtime.ToolStatus {
	switch s {
	case "inProgress":
		return runtime.ToolStatusRunning
	case "completed":
		return runtime.ToolStatusSucceeded
	case "failed", "declined", "interrupted":
		return runtime.ToolStatusFailed
	}
	return runtime.ToolStatusUnknown
}

func changedFiles(changes []appserver.Change) string {
	names := make([]string, 0, len(changes))
	for _, c := range changes {
		names = append(names, c.Path)
	}
	return strings.Join(names, ", ")
}

// boundedChanges keeps every file and as much of the diffs as a phone can use.
func boundedChanges(changes []appserver.Change) []map[string]any {
	left := maxOutput
	list := make([]map[string]any, 0, len(changes))
	for _, c := range changes {
		row := map[string]any{"path": c.Path, "kind": string(c.Kind.Type), "diff": cut(c.Diff, left)}
		if c.Kind.MovePath != "" {
			row["movePath"] = string(c.Kind.MovePath)
		}
		left = max(0, left-len(c.Diff))
		list = append(list, row)
	}
	return list
}

// describeChanges is the whole of a file change for a person's consent: each target with its full diff.
func describeChanges(changes []appserver.Change) string {
	var b strings.Builder
	for n, c := range changes {
		if n > 0 {
			b.WriteString("\n")
		}
		b.WriteString(string(c.Kind.Type) + " " + c.Path)
		if c.Kind.MovePath != "" {
			b.WriteString(" -> " + string(c.Kind.MovePath))
		}
		b.WriteString("\n" + strings.TrimSuffix(c.Diff, "\n") + "\n")
	}
	return b.String()
}

func mcpOutput(i appserver.Item) runtime.Payload {
	if isSet(i.Error) {
		var e struct {
			Message appserver.String `json:"message"`
		}
		_ = json.Unmarshal(i.Error, &e)
		return text(string(e.Message))
	}
	var r struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if json.Unmarshal(i.Result, &r) != nil {
		return runtime.Payload{}
	}
	if s := contentText(r.Content); s != "" {
		return text(s)
	}
	if isSet(r.Structured) {
		return text(string(r.Structured))
	}
	return runtime.Payload{}
}

// contentText joins the texts of a tool's content; files stay out.
func contentText(raw json.RawMessage) string {
	var list []struct {
		Text appserver.String `json:"text"`
	}
	_ = json.Unmarshal(raw, &list)
	var texts []string
	for _, c := range list {
		if c.Text != "" {
			texts = append(texts, string(c.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// delivered is the image an assistant hands over with a finished generation; nil for everything else.
func delivered(i appserver.Item) *runtime.Part {
	if i.Type != "imageGeneration" || i.Status != "completed" || isSet(i.Failure) {
		return nil
	}
	var encoded string
	if json.Unmarshal(i.Result, &encoded) != nil || base64.StdEncoding.DecodedLen(len(encoded)) > maxDelivered+2 {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) > maxDelivered {
		return nil
	}
	kind := http.DetectContentType(data)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, kind) {
		return nil
	}
	size := uint64(len(data))
	return &runtime.Part{Data: data, ContentType: kind, Name: "image." + strings.TrimPrefix(kind, "image/"), Size: &size}
}

func text(s string) runtime.Payload {
	if s == "" {
		return runtime.Payload{}
	}
	return runtime.Payload{ContentType: "text/plain", Data: []byte(cut(s, maxOutput))}
}

// cut keeps at most n characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	seen := 0
	for at := range s {
		if seen == n {
			return s[:at]
		}
		seen++
	}
	return s
}

func jsonPayload(v any) runtime.Payload {
	b, err := json.Marshal(v)
	if err != nil {
		return runtime.Payload{}
	}
	return runtime.JSON(b)
}

func rawOr(raw json.RawMessage, other string) []byte {
	if isSet(raw) {
		return raw
	}
	return []byte(other)
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

func millis(ms *float64) time.Time {
	if ms == nil || *ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(*ms))
}

func seconds(s *float64) time.Time {
	if s == nil || *s <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(*s * 1000))
}
