//go:build integration

package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/sdk/modeltest"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// envMCP makes this test binary an MCP server, for Codex to start.
const envMCP = "OPENPHONE_TEST_MCP"

func TestMain(m *testing.M) {
	if os.Getenv(envMCP) != "" {
		serveMCP(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// serveMCP has two tools: tap, which acts, and ask, which asks the person behind the client.
func serveMCP(r io.Reader, w io.Writer) {
	lines := bufio.NewScanner(r)
	out := json.NewEncoder(w)
	var asking json.RawMessage
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
				Name    string `json:"name"`
			} `json:"params"`
			Result json.RawMessage `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		answer := func(result any) { _ = out.Encode(object{"jsonrpc": "2.0", "id": m.ID, "result": result}) }
		said := func(text string) object { return object{"content": []object{{"type": "text", "text": text}}} }
		empty := object{"type": "object", "properties": object{}}
		switch {
		case m.Method == "initialize":
			answer(object{"protocolVersion": m.Params.Version, "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "fake", "version": "1"}})
		case m.Method == "tools/list":
			answer(object{"tools": []object{
				{"name": "tap", "description": "Tap", "inputSchema": empty, "annotations": object{"readOnlyHint": false}},
				{"name": "ask", "description": "Ask", "inputSchema": empty, "annotations": object{"readOnlyHint": true}},
			}})
		case m.Method == "tools/call" && m.Params.Name == "ask":
			asking = m.ID
			_ = out.Encode(object{"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": object{
				"message": "Pick one", "requestedSchema": object{"type": "object", "required": []string{"color"}, "properties": object{
					"color": object{"type": "string", "enum": []string{"red", "blue"}},
				}},
			}})
		case m.Method == "tools/call":
			answer(said("tapped for real"))
		case m.Method == "" && asking != nil:
			m.ID = asking
			answer(said("heard " + string(m.Result)))
		default:
			answer(object{})
		}
	}
}

// A tool that acts is asked for, a server's own question is put to the person, and both answers reach the server.
func TestMCP(t *testing.T) {
	rules.Covers(t, "CX-15")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, fmt.Sprintf("mcp_servers.fake = { command = %q, env = { %s = \"1\" } }", exe, envMCP))
	b.model.Add(
		modeltest.Script{Match: "tap it", Steps: []modeltest.Step{modeltest.Call("mcp__fake/tap", "{}"), modeltest.Text("tapped")}},
		modeltest.Script{Match: "let it ask", Steps: []modeltest.Step{modeltest.Call("mcp__fake/ask", "{}"), modeltest.Text("asked")}},
	)
	outputOf := func(run string) string {
		e := b.sink.wait(t, "tool's end", func(e runtime.Event) bool {
			return e.RunID == run && e.ToolCall != nil && e.ToolCall.Status != runtime.ToolStatusRunning
		})
		return string(e.ToolCall.Output.Data)
	}
	ref := b.session("s")
	for _, tc := range []struct {
		allow bool
		want  string
	}{{true, "tapped for real"}, {false, "rejected"}} {
		var id string
		id, ref = b.send(ref, "tap it")
		ask := b.sink.opened(t, id)
		if a := ask.Approval; a == nil || a.ToolName != "tap" || a.Category != runtime.ApprovalCategoryPermissions || !strings.HasPrefix(a.Subject, "fake · tap") {
			t.Errorf("approval %+v", a)
		}
		answer := deny(ask.InteractionID)
		if tc.allow {
			answer = allow(ask.InteractionID)
		}
		b.resolve(ref, answer)
		if end := b.sink.ended(t, id); end.Reason != runtime.EndReasonCompleted {
			t.Errorf("end %+v", end)
		}
		if got := outputOf(id); !strings.Contains(got, tc.want) {
			t.Errorf("output %q", got)
		}
	}

	id, ref := b.send(ref, "let it ask")
	ask := b.sink.opened(t, id)
	if ask.Question == nil || len(ask.Question.Fields) != 1 || ask.Question.Fields[0].FieldID != "color" {
		t.Fatalf("question %+v", ask)
	}
	b.resolve(ref, runtime.ResolveInteractionRequest{InteractionID: ask.InteractionID, Answers: &runtime.Answers{
		Answers: []runtime.Answer{{FieldID: "color", Values: []string{"red"}}},
	}})
	b.sink.ended(t, id)
	if got := outputOf(id); !strings.Contains(got, `"color":"red"`) || !strings.Contains(got, "accept") {
		t.Errorf("output %q", got)
	}
}
