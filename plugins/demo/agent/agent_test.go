package agent

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve/servetest"
)

var ref = runtime.SessionRef{SessionID: "s1"}

func wire() *runtimev1.SessionRef { return protomap.ToSessionRef(&ref) }

// play runs one prompt to its end.
func play(t *testing.T, h *servetest.Harness, run, prompt string) (string, []runtime.Event) {
	t.Helper()
	if _, err := h.Send(ref, run, prompt); err != nil {
		t.Fatal(err)
	}
	events := h.Until(servetest.Ended(run))
	return servetest.Text(events, run), events
}

func TestEchoKeepsEveryByte(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	prompt := "  two  spaces\n\n\ttab, umlaut ä and trailing "
	if got, _ := play(t, h, "r1", prompt); got != prompt {
		t.Errorf("reply = %q, want %q", got, prompt)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prompt, text string
		reason       runtime.EndReason
		code         string
	}{
		"say":           {`/say a\nb`, "a\nb", runtime.EndReasonCompleted, ""},
		"replace":       {"/say wrong\n/replace right", "right", runtime.EndReasonCompleted, ""},
		"parts":         {"/say one\n/part\n/say two", "onetwo", runtime.EndReasonCompleted, ""},
		"fail":          {"/say half\n/fail", "half", runtime.EndReasonFailed, "demo.failed"},
		"fail with":     {"/fail model_missing", "", runtime.EndReasonFailed, codes.ModelMissing},
		"limit":         {"/say cut\n/limit", "cut", runtime.EndReasonLimitReached, codes.RunFailed},
		"no command":    {"/nothing here\n//", "/nothing here\n//", runtime.EndReasonCompleted, ""},
		"stream":        {"/stream n=4 rate=0 size=1", piece(0, 1) + piece(1, 1) + piece(2, 1) + piece(3, 1), runtime.EndReasonCompleted, ""},
		"senseless":     {"/stream n=-5 rate=x", streamed(100), runtime.EndReasonCompleted, ""},
		"steer unasked": {"/steerwait 10\n/say on", "on", runtime.EndReasonCompleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.New(t, New(Options{}), nil)
			text, events := play(t, h, "r1", strings.ReplaceAll(tc.prompt, "rate=x", "rate=0"))
			end := events[len(events)-1].RunEnded
			if text != tc.text || end.Reason != tc.reason || end.Code != tc.code {
				t.Errorf("got %q, %v %q, want %q, %v %q", text, end.Reason, end.Code, tc.text, tc.reason, tc.code)
			}
		})
	}
}

func streamed(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(piece(i, 8))
	}
	return b.String()
}

func TestToolsAndTextKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	_, events := play(t, h, "r1", "/say a\n/tool ls\n/say b\n/toolfail rm\n/say c")
	var got []string
	for _, e := range events {
		switch {
		case e.Text != nil:
			got = append(got, e.Text.PartID+" "+e.Text.Text)
		case e.ToolCall != nil:
			got = append(got, e.ToolCall.Title+" "+e.ToolCall.Status.String())
		}
	}
	want := []string{"p1 a", "ls running", "ls succeeded", "p2 b", "rm running", "rm failed", "p3 c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	page, err := h.Conversations.ReadHistory(t.Context(), &runtimev1.ReadHistoryRequest{Session: wire(), MaxMessages: 10, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range page.GetMessages() {
		roles = append(roles, protomap.FromRole(m.GetRole()).String())
	}
	if diff := cmp.Diff([]string{"user", "assistant", "tool", "assistant", "tool", "assistant"}, roles); diff != "" {
		t.Errorf("history (-want +got)\n%s", diff)
	}
}

func TestFiveApprovalsInAnyOrder(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	if _, err := h.Send(ref, "r1", "/many 5"); err != nil {
		t.Fatal(err)
	}
	var open []*runtime.Interaction
	h.Until(func(e runtime.Event) bool {
		if e.InteractionOpened != nil {
			open = append(open, e.InteractionOpened)
		}
		return len(open) == 5
	})
	if open[4].AgentName == "" {
		t.Error("the last approval is not a nested agent's")
	}
	for n, i := range []int{3, 0, 4, 1, 2} {
		d := runtimev1.Decision_DECISION_ALLOW_ONCE
		if n%2 == 1 {
			d = runtimev1.Decision_DECISION_DENY
		}
		r, err := h.Conversations.ResolveInteraction(t.Context(), &runtimev1.ResolveInteractionRequest{Session: wire(), InteractionId: open[i].InteractionID, Answer: &runtimev1.ResolveInteractionRequest_Decision{Decision: d}})
		if err != nil || r.GetOutcome() != runtimev1.Outcome_OUTCOME_DISPATCHED {
			t.Fatalf("ResolveInteraction = %v, %v", r, err)
		}
	}
	want := "command 1 denied\ncommand 2 denied\ncommand 3 allowed\ncommand 4 allowed\ncommand 5 allowed\n"
	if got := servetest.Text(h.Until(servetest.Ended("r1")), "r1"); got != want {
		t.Errorf("reply %q, want %q", got, want)
	}
}

func TestFormAnswers(t *testing.T) {
	t.Parallel()
	answer := func(field string, values ...string) *runtimev1.Answer {
		return &runtimev1.Answer{FieldId: field, Values: values}
	}
	good := []*runtimev1.Answer{answer("colours", "red", "green"), answer("sure", "true"), answer("name", "Ada"), answer("story", "Once\nupon")}
	for name, tc := range map[string]struct {
		answers []*runtimev1.Answer
		want    string
	}{
		"good":          {good, "form: red, green; true; Ada; Once\nupon\n"},
		"one missing":   {good[:3], ""},
		"one too many":  {append(good[:4:4], answer("extra", "x")), ""},
		"no boolean":    {append([]*runtimev1.Answer{good[0], answer("sure", "yes")}, good[2:]...), ""},
		"two in a line": {append([]*runtimev1.Answer{good[0], good[1], answer("name", "a\nb")}, good[3]), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.New(t, New(Options{}), nil)
			if _, err := h.Send(ref, "r1", "/form"); err != nil {
				t.Fatal(err)
			}
			list := h.Until(func(e runtime.Event) bool { return e.InteractionOpened != nil })
			id := list[len(list)-1].InteractionOpened.InteractionID
			r, err := h.Conversations.ResolveInteraction(t.Context(), &runtimev1.ResolveInteractionRequest{Session: wire(), InteractionId: id, Answer: &runtimev1.ResolveInteractionRequest_Answers{Answers: &runtimev1.Answers{Answers: tc.answers}}})
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if r.GetCode() != codes.AnswerInvalid {
					t.Errorf("answered %v %q, want answer_invalid", r.GetOutcome(), r.GetCode())
				}
				return
			}
			if got := servetest.Text(h.Until(servetest.Ended("r1")), "r1"); got != tc.want {
				t.Errorf("reply %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSteering(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ prompt, text, back string }{
		"used":   {"/say a\n/steerwait 5000\n/say b", "asteered: more!b", ""},
		"unused": {"/say a\n/ignoresteer\n/wait 200\n/say b", "ab", "more!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := servetest.New(t, New(Options{}), nil)
			if _, err := h.Send(ref, "r1", tc.prompt); err != nil {
				t.Fatal(err)
			}
			events := h.Until(func(e runtime.Event) bool { return e.Text != nil })
			r, err := h.Conversations.SteerRun(t.Context(), &runtimev1.SteerRunRequest{Session: wire(), RunId: "r1", Text: "more!"})
			if err != nil || r.GetOutcome() != runtimev1.Outcome_OUTCOME_DISPATCHED {
				t.Fatalf("SteerRun = %v, %v", r, err)
			}
			events = append(events, h.Until(servetest.Ended("r1"))...)
			if got := servetest.Text(events, "r1"); got != tc.text {
				t.Errorf("reply %q, want %q", got, tc.text)
			}
			if got := events[len(events)-1].RunEnded.UnappliedInput; got != tc.back {
				t.Errorf("given back %q, want %q", got, tc.back)
			}
		})
	}
}

func TestFilesAndPictures(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	_, events := play(t, h, "r1", "/say here\n/image\n/file notes.txt 700000")
	m := events[len(events)-1].RunEnded.Message
	if m == nil || len(m.Parts) != 3 {
		t.Fatalf("final message %+v, want text, picture and file", m)
	}
	if _, err := png.Decode(bytes.NewReader(m.Parts[1].Data)); err != nil {
		t.Errorf("the picture: %v", err)
	}
	stream, err := h.Conversations.ReadAttachment(t.Context(), &runtimev1.ReadAttachmentRequest{Session: wire(), AttachmentId: m.Parts[2].AttachmentID})
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for {
		p, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		size += len(p.GetData())
	}
	if size != 700000 {
		t.Errorf("read %d bytes, want 700000", size)
	}
}

// restart ends one agent without its consent and begins another on the same directory.
func restart(t *testing.T, dir string) *servetest.Harness {
	t.Helper()
	return servetest.NewIn(t, New(Options{}), nil, dir)
}

func reconcile(t *testing.T, h *servetest.Harness, run string) *runtimev1.RunState {
	t.Helper()
	r, err := h.Runtime.Reconcile(t.Context(), &runtimev1.ReconcileRequest{Runs: []*runtimev1.OpenRun{{Session: wire(), RunId: run}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetRuns()[0]
}

func TestWhatTheJournalProves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := servetest.NewIn(t, New(Options{}), nil, dir)
	play(t, h, "done", "/say done")
	if _, err := h.Send(ref, "cut", "/say half\n/wait 60000"); err != nil {
		t.Fatal(err)
	}
	h.Until(func(e runtime.Event) bool { return e.RunID == "cut" && e.Text != nil })
	h.Close()
	g := restart(t, dir)
	if st := reconcile(t, g, "done"); st.GetEnd().GetReason() != runtimev1.EndReason_END_REASON_COMPLETED {
		t.Errorf("done: %v", st)
	}
	if st := reconcile(t, g, "cut"); st.GetEnd().GetCode() != codes.Interrupted {
		t.Errorf("cut: %v, want ended as interrupted", st)
	}
	if st := reconcile(t, g, "none"); st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_NEVER_SEEN {
		t.Errorf("none: %v, want never seen", st)
	}
	if got, _ := play(t, g, "next", "/say next"); got != "next" {
		t.Errorf("the next prompt says %q", got)
	}
}

func TestASurvivingRunGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := servetest.NewIn(t, New(Options{}), nil, dir)
	if _, err := h.Send(ref, "r1", "/survive\n/stream n=20 rate=100\n/ask Sure?|yes|no\n/say end"); err != nil {
		t.Fatal(err)
	}
	h.Until(func(e runtime.Event) bool { return e.Text != nil })
	h.Close()
	g := restart(t, dir)
	if st := reconcile(t, g, "r1"); st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_RUNNING {
		t.Fatalf("phase %v, want running", st.GetPhase())
	}
	events := g.Until(func(e runtime.Event) bool { return e.InteractionOpened != nil })
	id := events[len(events)-1].InteractionOpened.InteractionID
	if _, err := g.Conversations.ResolveInteraction(t.Context(), &runtimev1.ResolveInteractionRequest{Session: wire(), InteractionId: id, Answer: &runtimev1.ResolveInteractionRequest_Answers{Answers: &runtimev1.Answers{Answers: []*runtimev1.Answer{{FieldId: "answer", Values: []string{"yes"}}}}}}); err != nil {
		t.Fatal(err)
	}
	events = append(events, g.Until(servetest.Ended("r1"))...)
	if got, want := servetest.Text(events, "r1"), streamed(20)+"answer: yes\nend"; got != want {
		t.Errorf("reply %q, want %q", got, want)
	}
	if first := events[1]; first.Text == nil || !first.Text.Replace {
		t.Errorf("the second event of the new process is %+v, want the text so far, replacing", first)
	}
}

func TestTwoProcessesShareOneJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := servetest.NewIn(t, New(Options{}), nil, dir)
	play(t, old, "r1", "/say one")
	next := servetest.NewIn(t, New(Options{}), nil, dir)
	play(t, old, "r2", "/say two")
	page, err := next.Conversations.ReadHistory(t.Context(), &runtimev1.ReadHistoryRequest{Session: wire(), MaxMessages: 10, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page.GetMessages()); n != 4 {
		t.Errorf("the new process sees %d messages, want 4", n)
	}
}

func TestATornLineIsSkipped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := servetest.NewIn(t, New(Options{}), nil, dir)
	play(t, h, "r1", "/say one")
	h.Close()
	f, err := os.OpenFile(dir+"/"+journalName, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"t":"message","session":"d-`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	g := restart(t, dir)
	play(t, g, "r2", "/say two")
	g.Close()
	k := restart(t, dir)
	if st := reconcile(t, k, "r2"); st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_ENDED {
		t.Errorf("the run after the torn line is %v", st.GetPhase())
	}
}

func TestHistoryInPages(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	play(t, h, "r1", "/fill 47")
	var sizes []int
	cursor := ""
	for {
		p, err := h.Conversations.ReadHistory(t.Context(), &runtimev1.ReadHistoryRequest{Session: wire(), Cursor: cursor, MaxMessages: 40, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(p.GetMessages()))
		if cursor = p.GetNextCursor(); cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]int{40, 40, 15}, sizes); diff != "" {
		t.Errorf("pages (-want +got)\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, New(Options{}), nil)
	_, err := h.Send(ref, "r1", "/refuse")
	if got := rpcerr.Decode(err); got == nil || got.Code != "demo.refused" || got.Outcome != codes.NotDispatched {
		t.Errorf("refused with %v", got)
	}
	r, err := h.Send(ref, "r2", "/notdispatched")
	if err != nil || r.GetOutcome() != runtimev1.Outcome_OUTCOME_NOT_DISPATCHED {
		t.Errorf("CommitRun = %v, %v, want not dispatched", r, err)
	}
	u, err := h.Send(ref, "r3", "/unknown\n/say anyway")
	if err != nil || u.GetOutcome() != runtimev1.Outcome_OUTCOME_UNKNOWN {
		t.Errorf("CommitRun = %v, %v, want unknown", u, err)
	}
	if got := servetest.Text(h.Until(servetest.Ended("r3")), "r3"); got != "anyway" {
		t.Errorf("the unknown run said %q", got)
	}
}

func TestReadmeListsEveryCommand(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		row := fmt.Sprintf("| `/%s` | %s |", strings.TrimSpace(c.name+" "+strings.ReplaceAll(c.args, "|", `\|`)), c.help)
		if !strings.Contains(string(b), row) {
			t.Errorf("README.md has no row %s", row)
		}
	}
}
