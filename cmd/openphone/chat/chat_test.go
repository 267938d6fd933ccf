package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// host is the other end of the socket: canned answers, and events that follow a request.
type host struct {
	answers map[string]any    // method → payload, or *failure
	after   map[string]string // method → updates, one JSON object per line, sent after the answer

	mu    sync.Mutex
	asked []string
	last  map[string]json.RawMessage // method → params
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		q, err := clawket.ParseRequest(data)
		if err != nil {
			return
		}
		h.mu.Lock()
		h.asked = append(h.asked, q.Method)
		h.last[q.Method] = q.Params
		answer, after := h.answers[q.Method], h.after[q.Method]
		h.mu.Unlock()
		res := clawket.Response{Type: clawket.TypeResponse, ID: q.ID, OK: true, Payload: answer}
		if f, ok := answer.(*failure); ok {
			res = clawket.Response{Type: clawket.TypeResponse, ID: q.ID, Error: (*clawket.Failure)(f)}
		}
		frames := []any{res}
		for _, u := range strings.Split(strings.TrimSpace(after), "\n") {
			if u != "" {
				frames = append(frames, clawket.Event{Type: clawket.TypeEvent, Event: "demo.update", Payload: json.RawMessage(u)})
			}
		}
		for _, f := range frames {
			raw, err := clawket.Marshal(f)
			if err != nil || conn.Write(r.Context(), websocket.MessageText, raw) != nil {
				return
			}
		}
	}
}

func talk(t *testing.T, h *host, o Options, input ...string) (string, error) {
	t.Helper()
	h.last = map[string]json.RawMessage{}
	base := map[string]any{
		"connect": clawket.Health{Backend: "demo"}, "sessions.create": clawket.Session{Key: "S"},
		"chat.send": map[string]string{"runId": "R"},
	}
	for m, a := range base {
		if _, ok := h.answers[m]; !ok {
			if h.answers == nil {
				h.answers = map[string]any{}
			}
			h.answers[m] = a
		}
	}
	server := httptest.NewServer(h)
	defer server.Close()
	lines := make(chan string, len(input))
	for _, l := range input {
		lines <- l
	}
	close(lines)
	var out bytes.Buffer
	o.URL, o.Backend, o.Token, o.Out = "ws"+strings.TrimPrefix(server.URL, "http"), "demo", "t", &out
	if o.Lines == nil {
		o.Lines = lines
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := Run(ctx, o)
	return out.String(), err
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		host  *host
		input []string
		want  string
		sent  map[string]string // method → params that must have been sent
		err   error
	}{
		{
			name: "text, thoughts and a tool, as deltas", input: []string{"hi"},
			host: &host{after: map[string]string{"chat.send": `
{"type":"run_started","sessionKey":"S","runId":"R"}
{"type":"agent_thought_chunk","sessionKey":"S","runId":"R","text":"let me\nsee"}
{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":"I ","textMode":"delta"}
{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":"look.","textMode":"delta"}
{"type":"agent_message_chunk","sessionKey":"OTHER","runId":"R","text":"not mine","textMode":"delta"}
{"type":"tool_call","sessionKey":"S","runId":"R","toolCallId":"c","title":"exec","rawInput":{"command":"ls   -la"}}
{"type":"tool_call_update","sessionKey":"S","runId":"R","toolCallId":"c","status":"success","durationMs":1500}
{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":" Done.","textMode":"delta"}
{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn","message":{"role":"assistant","content":"I look. Done."}}
`}},
			want: "> hi\n· let me\n· see\nI look.\n→ exec ls -la\n✓ exec (1.5 s)\n Done.\n",
		},
		{
			name: "snapshots, one of them rewritten", input: []string{"hi"},
			host: &host{after: map[string]string{"chat.send": `
{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":"Hel","textMode":"snapshot"}
{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":"Hello","textMode":"snapshot"}
{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":"Good day","textMode":"snapshot"}
{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn","message":{"role":"assistant","content":"Good day"}}
`}},
			want: "> hi\nHello\n(rewritten)\nGood day\n",
		},
		{
			name: "a command is allowed", input: []string{"do it", "y"},
			host: &host{after: map[string]string{
				"chat.send":         `{"type":"approval_requested","sessionKey":"S","approval":{"kind":"exec","id":"A","command":"rm -rf build","category":"command","cwd":"/p","decisions":["allow-once","deny"]}}`,
				"approvals.resolve": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn","message":{"role":"assistant","content":"Gone."}}`,
			}},
			want: "> do it\n? The agent wants to run a command\n  rm -rf build\n  in /p\nAllow once? [y/N] y\nGone.\n",
			sent: map[string]string{"approvals.resolve": `{"decision":"allow-once","id":"A"}`},
		},
		{
			name: "a file change is shown as a diff, and silence denies", input: []string{"do it"},
			host: &host{after: map[string]string{
				"chat.send":         `{"type":"approval_requested","sessionKey":"S","approval":{"kind":"exec","id":"A","command":"[{\"path\":\"a.txt\",\"diff\":\"-old\\n+new\\n\"}]","category":"file","decisions":[]}}`,
				"approvals.resolve": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn"}`,
			}},
			want: "> do it\n? The agent wants to change files\n  a.txt\n  -old\n  +new\nAllow once? [y/N] \n(no answer: denied)\n",
			sent: map[string]string{"approvals.resolve": `{"decision":"deny","id":"A"}`},
		},
		{
			name: "a form is asked field by field, a wrong number again", input: []string{"ask me", "9", "2", "my own"},
			host: &host{after: map[string]string{
				"chat.send": `{"type":"question_requested","sessionKey":"S","question":{"id":"Q","kind":"form","title":"Choose","fields":[
{"id":"f1","title":"Colour","options":[{"label":"red"},{"label":"blue","description":"calm"}],"allowCustom":false},
{"id":"f2","title":"Name","options":[],"allowCustom":true}]}}`,
				"questions.respond": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn"}`,
			}},
			want: "> ask me\n? Choose\n  Colour\n  1. red\n  2. blue — calm\n1-2: 9\n? Choose\n  Colour\n  1. red\n  2. blue — calm\n1-2: 2\n  Name\nanswer: my own\n",
			sent: map[string]string{"questions.respond": `{"answers":{"f1":["blue"],"f2":["my own"]},"questionId":"Q","sessionKey":"S"}`},
		},
		{
			name: "a prompt of two lines", input: []string{`one\`, "two"},
			host: &host{after: map[string]string{"chat.send": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn","message":{"role":"assistant","content":"ok"}}`}},
			want: "> one\\\n  two\nok\n",
		},
		{
			name: "somebody else answers", input: []string{"do it"},
			host: &host{after: map[string]string{"chat.send": `
{"type":"approval_requested","sessionKey":"S","approval":{"kind":"exec","id":"A","command":"ls","category":"command","decisions":[]}}
{"type":"approval_resolved","sessionKey":"S","approvalId":"A","decision":"deny"}
{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"cancelled"}
`}},
			want: "> do it\n? The agent wants to run a command\n  ls\nAllow once? [y/N] \n(no longer open: deny)\n(stopped)\n",
		},
		{
			name: "a refusal is said and fails the program", input: []string{"hi"}, err: ErrRunFailed,
			host: &host{answers: map[string]any{"chat.send": &failure{Code: "demo_error", Message: "A reply is still running in this conversation."}}},
			want: "> hi\n! A reply is still running in this conversation.\n",
		},
		{
			name: "a failed run says why", input: []string{"hi"}, err: ErrRunFailed,
			host: &host{after: map[string]string{"chat.send": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"error","terminalMessage":{"id":"x","role":"system","text":"Sign in again on the computer."}}`}},
			want: "> hi\n! Sign in again on the computer.\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for m, u := range c.host.after {
				var one []string // one update per line, whatever the test's own line feeds
				dec := json.NewDecoder(strings.NewReader(u))
				for dec.More() {
					var raw json.RawMessage
					if err := dec.Decode(&raw); err != nil {
						t.Fatal(err)
					}
					var b bytes.Buffer
					_ = json.Compact(&b, raw)
					one = append(one, b.String())
				}
				c.host.after[m] = strings.Join(one, "\n")
			}
			got, err := talk(t, c.host, Options{}, c.input...)
			if err != c.err {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			for m, want := range c.sent {
				if got := string(c.host.last[m]); got != want {
					t.Errorf("%s sent %s, want %s", m, got, want)
				}
			}
		})
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	h := &host{
		answers: map[string]any{
			"sessions.list": []clawket.Session{{Key: "idle"}, {Key: "S", HasActiveRun: true}},
			"chat.history":  clawket.History{Key: "S", HasActiveRun: true, ActiveRun: &clawket.ActiveRun{RunID: "R", Text: "one two"}},
			"approvals.list": []clawket.SessionApproval{{SessionKey: "S", Approval: clawket.Approval{
				Kind: "exec", ID: "A", Command: "ls", Category: "command",
			}}},
			"questions.list": []clawket.Question{},
		},
		after: map[string]string{
			// a phone that joins has already been sent the end of what the page shows
			"sessions.list":     `{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":" two","textMode":"delta"}` + "\n" + `{"type":"agent_message_chunk","sessionKey":"S","runId":"R","text":" three","textMode":"delta"}`,
			"approvals.resolve": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"end_turn","message":{"role":"assistant","content":"one two three"}}`,
		},
	}
	got, err := talk(t, h, Options{Follow: true}, "n")
	if err != nil {
		t.Fatal(err)
	}
	want := "one two three\n? The agent wants to run a command\n  ls\nAllow once? [y/N] n\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	h := &host{after: map[string]string{
		"chat.send":  `{"type":"run_started","sessionKey":"S","runId":"R"}`,
		"chat.abort": `{"type":"run_finished","sessionKey":"S","runId":"R","stopReason":"cancelled"}`,
	}}
	lines, interrupts := make(chan string), make(chan os.Signal)
	var wg sync.WaitGroup
	wg.Go(func() {
		lines <- "hi"
		interrupts <- os.Interrupt // stops the reply
		interrupts <- os.Interrupt // leaves
	})
	got, err := talk(t, h, Options{Lines: lines, Interrupts: interrupts})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "(stopping; Ctrl-C again leaves)\n") || !strings.HasPrefix(got, "> hi\n") {
		t.Errorf("got %q", got)
	}
	if got := string(h.last["chat.abort"]); got != `{"runId":"R","sessionKey":"S"}` {
		t.Errorf("abort sent %s", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	yes := true
	dir := t.TempDir()
	png := filepath.Join(dir, "a.png")
	if err := os.WriteFile(png, []byte("\x89PNG\r\n\x1a\n0000"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(text, []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := func() map[string]any {
		return map[string]any{
			"connect":       clawket.Health{Backend: "demo", Projects: &yes},
			"projects.list": []clawket.Project{{ID: "p1", Name: "site", Path: "/src/site"}},
			"models.list":   clawket.Models{Models: []clawket.Model{{ID: "m1", Provider: "acme"}}},
			"models.select": map[string]bool{"ok": true},
			"sessions.list": []clawket.Session{{Key: "aa1"}, {Key: "aa2"}},
			"chat.send":     &failure{Message: "no"},
		}
	}
	for _, c := range []struct {
		name   string
		o      Options
		err    string
		method string
		params string
	}{
		{"project by name", Options{Project: "site"}, "", "sessions.create", `{"projectId":"p1"}`},
		{"unknown project", Options{Project: "other"}, `there is no project "other": choose one of site`, "", ""},
		{"model with its provider", Options{Model: "m1"}, "", "models.select", `{"model":"m1","provider":"acme","scope":"session","sessionKey":"S"}`},
		{"unknown model", Options{Model: "m2"}, `there is no model "m2": choose one of m1`, "", ""},
		{"ambiguous conversation", Options{Session: "aa"}, "more than one conversation fits", "", ""},
		{"unknown conversation", Options{Session: "bb"}, `there is no conversation "bb"`, "", ""},
		{"nothing to follow", Options{Follow: true}, "no reply is running", "", ""},
		{"not an image", Options{Images: []string{text}}, "is not an image", "", ""},
		{"missing image", Options{Images: []string{png + "x"}}, "no such file", "", ""},
		{"image", Options{Images: []string{png}}, ErrRunFailed.Error(), "chat.send", `"attachments":[{"type":"image","mimeType":"image/png","content":"iVBORw0KGgowMDAw","name":"a.png"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &host{answers: answers()}
			var input []string
			if c.method == "chat.send" {
				input = []string{"look"}
			}
			_, err := talk(t, h, c.o, input...)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if got := string(h.last[c.method]); !strings.Contains(got, c.params) {
				t.Errorf("%s sent %s, want %s", c.method, got, c.params)
			}
		})
	}
}
