package modeltest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T, scripts ...Script) *Server {
	t.Helper()
	s := New(Options{Scripts: scripts})
	t.Cleanup(s.Close)
	return s
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// post sends a body and gives the status and the whole answer; a broken connection is an error.
func post(t *testing.T, ctx context.Context, s *Server, path, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// events are the JSON objects of a stream.
func events(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var list []map[string]any
	sc := bufio.NewScanner(strings.NewReader(stream))
	for sc.Scan() {
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		list = append(list, e)
	}
	return list
}

func types(list []map[string]any) []string {
	var names []string
	for _, e := range list {
		names = append(names, e["type"].(string))
	}
	return names
}

func responsesBody(prompt string, more ...string) string {
	q, _ := json.Marshal(prompt)
	items := append([]string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>cwd</environment_context>"}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":` + string(q) + `}]}`,
	}, more...)
	return `{"model":"gpt-5.5","stream":true,"input":[` + strings.Join(items, ",") + `]}`
}

func TestResponsesStream(t *testing.T) {
	s := start(t, Script{Match: "hello", Steps: []Step{Reasoning("why ", "not"), Text(" Zwei\n\n", "  ", "Zeilen ✅"), Call("exec_command", `{"cmd":"ls"}`), Text("done")}})
	_, stream, err := post(t, deadline(t), s, "/v1/responses", responsesBody("hello there"))
	if err != nil {
		t.Fatal(err)
	}
	list := events(t, stream)
	want := []string{
		"response.created", "response.output_item.added", "response.reasoning_summary_part.added",
		"response.reasoning_summary_text.delta", "response.reasoning_summary_text.delta", "response.output_item.done",
		"response.output_item.added", "response.output_text.delta", "response.output_text.delta", "response.output_text.delta",
		"response.output_item.done", "response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(want, types(list)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var text strings.Builder
	for _, e := range list {
		if e["type"] == "response.output_text.delta" {
			text.WriteString(e["delta"].(string))
		}
	}
	if got := text.String(); got != " Zwei\n\n  Zeilen ✅" {
		t.Errorf("text = %q", got)
	}
	if s.Count("hello there") != 1 {
		t.Errorf("count = %d", s.Count("hello there"))
	}
}

func TestContinuationAfterToolOutputs(t *testing.T) {
	s := start(t, Script{Match: "go", Once: true, Steps: []Step{Call("a", `{}`), Custom("apply_patch", "*** x"), Text("middle"), Call("b", `{}`)}})
	call := `{"type":"function_call","call_id":"c","name":"a","arguments":"{}"}`
	out := `{"type":"function_call_output","call_id":"c","output":"one"}`
	for _, tt := range []struct {
		name string
		more []string
		want string
	}{
		{"prompt", nil, "*** x"},
		{"outputs of both calls", []string{call, call, out, out}, "middle"},
		{"outputs of the second round", []string{call, call, out, out, call, out}, `"ok"`},
		{"the prompt again, script used up", nil, "echo: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stream, err := post(t, deadline(t), s, "/v1/responses", responsesBody("go", tt.more...))
			if err != nil || !strings.Contains(stream, tt.want) {
				t.Errorf("err %v, no %q in\n%s", err, tt.want, stream)
			}
		})
	}
	if s.Count("go") != 2 {
		t.Errorf("count = %d, want the two requests that asked", s.Count("go"))
	}
	if got := s.Requests()[1].Outputs; len(got) != 2 || got[0] != "one" {
		t.Errorf("outputs = %q", got)
	}
}

func TestChatStreamAndWhole(t *testing.T) {
	s := start(t, Script{Match: "x", Steps: []Step{Reasoning("hm"), Text("a", " b"), Call("mcp__phone/tap", `{"x":1}`)}})
	body := `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":`
	_, stream, err := post(t, deadline(t), s, "/v1/chat/completions", body+"true}")
	if err != nil || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Fatalf("err %v, stream %q", err, stream)
	}
	if !strings.Contains(stream, `"name":"mcp__phone__tap"`) || !strings.Contains(stream, `"finish_reason":"tool_calls"`) {
		t.Errorf("stream lacks the call:\n%s", stream)
	}
	_, whole, err := post(t, deadline(t), s, "/v1/chat/completions", body+"false}")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Choices []struct {
			Message struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
				ToolCalls []any  `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(whole), &got); err != nil {
		t.Fatal(err)
	}
	m := got.Choices[0].Message
	if m.Content != "a b" || m.Reasoning != "hm" || len(m.ToolCalls) != 1 {
		t.Errorf("message = %+v", m)
	}
}

func TestMessagesStream(t *testing.T) {
	s := start(t, Script{Match: "x", Steps: []Step{Reasoning("hm"), Text("a"), Call("tap", `{"x":1}`), Text("end")}})
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>r</system-reminder>"},{"type":"text","text":"x"}]}`
	_, stream, err := post(t, deadline(t), s, "/v1/messages", body+`]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if diff := cmp.Diff(want, types(events(t, stream))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	_, stream, err = post(t, deadline(t), s, "/v1/messages", body+`,{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","content":"r"},{"type":"text","text":"note"}]}]}`)
	if err != nil || !strings.Contains(stream, `"text":"end"`) {
		t.Errorf("err %v, continuation:\n%s", err, stream)
	}
	if s.Count("x") != 1 {
		t.Errorf("count = %d", s.Count("x"))
	}
}

func TestErrorsAndCuts(t *testing.T) {
	s := start(t,
		Script{Match: "401", Steps: []Step{Delay(time.Millisecond), Error(401, `{"error":"no"}`)}},
		Script{Match: "failed", Steps: []Step{Text("a"), Failed("rate_limit_exceeded", "m")}},
		Script{Match: "cut", Steps: []Step{Text("a"), Cut()}},
	)
	status, body, err := post(t, deadline(t), s, "/v1/responses", responsesBody("401"))
	if status != 401 || body != `{"error":"no"}` || err != nil {
		t.Errorf("401: %d %q %v", status, body, err)
	}
	_, body, _ = post(t, deadline(t), s, "/v1/responses", responsesBody("failed"))
	if got := types(events(t, body)); got[len(got)-1] != "response.failed" {
		t.Errorf("failed: %q", got)
	}
	if _, body, err = post(t, deadline(t), s, "/v1/responses", responsesBody("cut")); err == nil {
		t.Errorf("cut: no error, %q", body)
	}
	if status, _, _ = post(t, deadline(t), s, "/v1/responses", "{"); status != http.StatusBadRequest {
		t.Errorf("bad body: %d", status)
	}
}

func TestGateAndClosedConnection(t *testing.T) {
	s := start(t, Script{Match: "wait", Steps: []Step{Text("a"), Gate("g"), Text("b")}}, Script{Match: "hang", Steps: []Step{Text("a"), Hang()}})
	ctx := deadline(t)
	done := make(chan string, 1)
	go func() {
		_, body, _ := post(t, ctx, s, "/v1/responses", responsesBody("wait"))
		done <- body
	}()
	if err := s.WaitGate(ctx, "g", 1); err != nil {
		t.Fatal(err)
	}
	s.Release("g")
	if body := <-done; !strings.Contains(body, `"text":"ab"`) {
		t.Errorf("body = %q", body)
	}
	hung, cancel := context.WithCancel(ctx)
	go func() {
		_, _, _ = post(t, hung, s, "/v1/responses", responsesBody("hang"))
		done <- ""
	}()
	if err := s.WaitRequest(ctx, "hang"); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if err := s.WaitClosed(ctx, "hang"); err != nil {
		t.Fatal(err)
	}
}

func TestParse(t *testing.T) {
	scripts, err := Parse(strings.NewReader(`
# a comment
when list the files
  think "hm"
  text "a\n" " b"
  break
  call phone/tap {"x":1}
  custom apply_patch "*** Begin\n"
once
  error 429 {"error":{}}
  failed code "m"
  cut
  delay 5ms
  hang
  gate g
  raw "data: x\n\n"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Script{
		{Match: "list the files", Steps: []Step{Reasoning("hm"), Text("a\n", " b"), Break(), Call("phone/tap", `{"x":1}`), Custom("apply_patch", "*** Begin\n")}},
		{Once: true, Steps: []Step{Error(429, `{"error":{}}`), Failed("code", "m"), Cut(), Delay(5 * time.Millisecond), Hang(), Gate("g"), Raw("data: x\n\n")}},
	}
	if diff := cmp.Diff(want, scripts, cmp.AllowUnexported(Step{})); diff != "" {
		t.Errorf("scripts (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"text \"a\"", "when\n text a", "when\n call f {", "when\n error 200 x", "when\n nonsense", "when\n delay x"} {
		if _, err := Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q parsed", bad)
		}
	}
}
