package sessions

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func message(id string, role runtime.Role, text string) runtime.Message {
	return runtime.Message{MessageID: id, Role: role, Parts: []runtime.Part{{Text: text}}}
}

func (r *rig) page(key string) *History {
	r.t.Helper()
	h, err := r.History(r.t.Context(), key, "", 40)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func TestHistoryOfNothing(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.f.onHistory = func(*runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
		t.Error("the runtime was asked about a conversation it never heard of")
		return nil, codes.New(codes.SessionLost)
	}
	if h := r.page(key); len(h.Messages) != 0 || h.ActiveRun != nil {
		t.Errorf("history %+v", h)
	}
	if _, err := r.History(t.Context(), "nobody", "", 40); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("got %v", err)
	}
}

// A prompt in history carries the phone's key only with the runtime's own proof that it is a run of ours.
func TestKeysInHistory(t *testing.T) {
	rules.Covers(t, "CX-29")
	r := newRig(t)
	key, other := r.create(), r.create()
	id := r.send(key, "mine", "my-key")
	r.emit(ended(id))
	foreign := r.send(other, "elsewhere", "other-key")
	proven, unproven, of, unknown := message("1", runtime.RoleUser, "mine"), message("2", runtime.RoleUser, "mine"),
		message("3", runtime.RoleUser, "elsewhere"), message("4", runtime.RoleUser, "x")
	reply := message("5", runtime.RoleAssistant, "reply")
	proven.RunID, of.RunID, unknown.RunID, reply.RunID = id, foreign, "desktop:1", id
	r.f.pages["native-"+key] = []runtime.Message{proven, unproven, of, unknown, reply}
	var got []string
	for _, m := range r.page(key).Messages {
		got = append(got, m.IdempotencyKey)
	}
	if diff := cmp.Diff([]string{"my-key", "", "", "", ""}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestActiveRunInHistory(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.emit(runtime.Event{RunID: id, RunStarted: &runtime.RunStarted{NativeRunID: "turn", InputMessageID: "m"}},
		text(id, "a", "one"), text(id, "b", "two"))
	got := *r.page(key).ActiveRun
	got.StartedAt = got.StartedAt.UTC().Truncate(0)
	want := ActiveRun{RunID: id, NativeRunID: "turn", InputMessageID: "m", InputKey: "k", Text: "one\n\ntwo", StartedAt: got.StartedAt, Abortable: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h, err := r.History(t.Context(), key, "older", 40)
	if err != nil || h.ActiveRun != nil {
		t.Errorf("an older page has %+v, %v", h.ActiveRun, err)
	}
	r.emit(ended(id))
	if h := r.page(key); h.ActiveRun != nil {
		t.Errorf("after its end: %+v", h.ActiveRun)
	}
}

// A page from before the end of a run would show neither the reply nor the run: it is read again.
func TestHistoryAgainstEvents(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	reads := 0
	r.f.onHistory = func(*runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
		reads++
		if reads == 1 {
			r.emit(text(id, "a", "reply"), ended(id))
			return &runtime.ReadHistoryResponse{AsOfSeq: r.seq - 1}, nil
		}
		return &runtime.ReadHistoryResponse{AsOfSeq: r.seq, Messages: []runtime.Message{message("1", runtime.RoleAssistant, "reply")}}, nil
	}
	if h := r.page(key); reads != 2 || len(h.Messages) != 1 || h.ActiveRun != nil {
		t.Errorf("%d reads, history %+v", reads, h)
	}
}

// A page that already holds the reply waits for the event that ends the run.
func TestHistoryWaitsForItsEvents(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	r.f.onHistory = func(*runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
		go r.emit(text(id, "a", "reply"), ended(id))
		return &runtime.ReadHistoryResponse{AsOfSeq: 2, Messages: []runtime.Message{message("1", runtime.RoleAssistant, "reply")}}, nil
	}
	if h := r.page(key); h.ActiveRun != nil {
		t.Error("the reply is shown twice")
	}
}

// Files an assistant named are delivered, in history and at the end of a run, and go with the conversation.
func TestFiles(t *testing.T) {
	rules.Covers(t, "ART-01", "ART-02", "ART-03")
	r := newRig(t)
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "report.txt"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.f.projects = []runtime.Project{{Path: project}}
	row, err := r.Create(t.Context(), "", projectID(project), "")
	if err != nil {
		t.Fatal(err)
	}
	key := row.Key
	if diff := cmp.Diff([]string{project}, row.Roots); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
	said := "Here: [report](report.txt)"
	id := r.send(key, said, "k")
	png := []byte("\x89PNG\r\n\x1a\n")
	final := message("m", runtime.RoleAssistant, said)
	final.Parts = append(final.Parts, runtime.Part{Data: png, ContentType: "image/png", Name: "cat.png"})
	shot := message("t", runtime.RoleTool, said)
	shot.Parts = append(shot.Parts, runtime.Part{Data: png, ContentType: "image/png"})
	r.f.pages["native-"+key] = []runtime.Message{message("u", runtime.RoleUser, said), shot, final}
	r.emit(runtime.Event{RunID: id, RunEnded: &runtime.RunEnded{Reason: runtime.EndReasonCompleted, Message: &final}})

	live := r.seen(RunFinished)[0].End.Message
	page := r.page(key)
	if len(page.Messages[0].Files)+len(page.Messages[1].Files) != 0 {
		t.Error("what a person or a tool wrote delivers files")
	}
	if diff := cmp.Diff(page.Messages[2].Files, live.Files); diff != "" || len(live.Files) != 2 {
		t.Fatalf("live and history differ (-history +live):\n%s", diff)
	}
	if live.Parts[0].Text != said || !live.Converted || live.DisplayText != "Here:" {
		t.Errorf("text %q, shown %q", live.Parts[0].Text, live.DisplayText)
	}
	for _, f := range live.Files {
		info, err := r.OpenArtifact(t.Context(), key, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.ReadArtifact(t.Context(), key, f.ID, 0)
		if err != nil || p.Total != info.Size || !p.Done {
			t.Errorf("piece %+v, %v", p, err)
		}
		if _, err := r.OpenArtifact(t.Context(), r.create(), f.ID); codes.Of(err) != codes.ArtifactUnknown {
			t.Errorf("from another conversation: %v", err)
		}
	}
	if err := r.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for _, f := range live.Files {
		if _, err := r.ReadArtifact(t.Context(), key, f.ID, 0); codes.Of(err) != codes.ArtifactUnknown {
			t.Errorf("after a reset: %v", err)
		}
	}
}
