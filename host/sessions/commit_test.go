package sessions

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func committing(o runtime.Outcome, code string, err error) func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
	return func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		if err != nil {
			return nil, err
		}
		return &runtime.CommitRunResponse{Outcome: o, Code: code}, nil
	}
}

func TestOutcomes(t *testing.T) {
	rules.Covers(t, "CX-02")
	for _, x := range []struct {
		name   string
		commit func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error)
		open   bool   // the run goes on
		notice string // that is raised
		code   string // it ends with
	}{
		{"dispatched", committing(runtime.OutcomeDispatched, "", nil), true, "", ""},
		{"not dispatched", committing(runtime.OutcomeNotDispatched, codes.ModelMissing, nil), false, "", codes.ModelMissing},
		{"not dispatched without a reason", committing(runtime.OutcomeNotDispatched, "", nil), false, "", codes.RunNotDispatched},
		{"unknown", committing(runtime.OutcomeUnknown, "", nil), true, codes.OutcomeUnknown, ""},
		{"unspecified is unknown", committing(runtime.OutcomeUnspecified, "", nil), true, codes.OutcomeUnknown, ""},
		{"a newer outcome is unknown", committing(17, "", nil), true, codes.OutcomeUnknown, ""},
		{"an error is unknown", committing(0, "", errors.New("broken pipe")), true, codes.OutcomeUnknown, ""},
		{"a coded error without a word about it is unknown", committing(0, "", codes.New(codes.DeadlineExceeded)), true, codes.OutcomeUnknown, ""},
		{"never left the host", committing(0, "", codes.New(codes.RuntimeUnavailable)), false, "", codes.RuntimeUnavailable},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRig(t)
			key := r.create()
			r.f.onCommit = x.commit
			id := r.send(key, "x", "k")
			if x.code != "" {
				r.until("the end", func() bool { return len(r.seen(RunFinished)) == 1 })
				if e := r.seen(RunFinished)[0].End; e.Code != x.code || e.NoticeText == "" || e.Reason != runtime.EndReasonFailed {
					t.Errorf("ended as %+v", e)
				}
			}
			if x.notice != "" {
				r.until("the notice", func() bool { return len(r.seen(NoticeRaised)) == 1 })
				if n := r.seen(NoticeRaised)[0]; n.Notice.Code != x.notice || n.RunID != id {
					t.Errorf("noticed %+v", n)
				}
			}
			_, err := r.Send(t.Context(), prompt(key, "y", "k-2"))
			if x.open && codes.Of(err) != codes.RunActive {
				t.Errorf("a second prompt got %v", err)
			}
			if !x.open && err != nil {
				t.Errorf("the conversation is not free: %v", err)
			}
			if got, recorded, _ := r.PromptStatus(t.Context(), key, "k"); got != id || !recorded {
				t.Error("the receipt is gone")
			}
		})
	}
}

// Events of a run may come before CommitRun answers, its end too (CX-18); the answer then ends and starts nothing.
func TestEndOvertakesTheAnswer(t *testing.T) {
	rules.Covers(t, "CX-18")
	for _, o := range []runtime.Outcome{runtime.OutcomeDispatched, runtime.OutcomeUnknown, runtime.OutcomeNotDispatched} {
		t.Run(o.String(), func(t *testing.T) {
			r := newRig(t)
			key := r.create()
			r.f.onCommit = func(_ context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
				r.emit(text(q.RunID, "p", "done"), ended(q.RunID))
				return &runtime.CommitRunResponse{Outcome: o, NativeRunID: "n"}, nil
			}
			id := r.send(key, "x", "k")
			if u := r.seen(RunFinished); len(u) != 1 || u[0].RunID != id || u[0].End.Reason != runtime.EndReasonCompleted {
				t.Errorf("ends: %+v", u)
			}
			if n := len(r.seen(NoticeRaised)); n != 0 {
				t.Errorf("%d notices", n)
			}
		})
	}
}

// The runtime spoke of the run, so an answer that says it has not got it ends nothing.
func TestEventsProveADispatch(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.f.onCommit = func(_ context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		r.emit(text(q.RunID, "p", "I am here"))
		return &runtime.CommitRunResponse{Outcome: runtime.OutcomeNotDispatched}, nil
	}
	id := r.send(key, "x", "k")
	r.emit(ended(id))
	if u := r.seen(RunFinished); len(u) != 1 || u[0].End.Reason != runtime.EndReasonCompleted {
		t.Errorf("ends: %+v", u)
	}
}

func TestEndIsWrittenBeforeItIsTold(t *testing.T) {
	r := newRig(t)
	key := r.create()
	id := r.send(key, "x", "k")
	checked := false
	cancel := r.Subscribe(func(u Update) {
		if u.Kind != RunFinished {
			return
		}
		checked = true
		rec, _, err := r.db.Run(t.Context(), "fake", id)
		if err != nil || !rec.Ended {
			t.Errorf("told before it was written: %+v, %v", rec, err)
		}
	})
	defer cancel()
	r.emit(ended(id), ended(id), text(id, "p", "late"))
	if !checked {
		t.Error("no end was told")
	}
	if n := len(r.seen(RunFinished)); n != 1 {
		t.Errorf("%d ends", n)
	}
	if n := len(r.seen(TextChunk)); n != 0 {
		t.Error("text after the end")
	}
}

func TestEndCodes(t *testing.T) {
	r := newRig(t)
	r.f.description.Phrases = []runtime.Phrase{{Code: "fake.sulking", Text: "The fake sulks about {what}."}}
	for _, x := range []struct {
		name       string
		end        runtime.RunEnded
		code, text string
	}{
		{"completed", runtime.RunEnded{Reason: runtime.EndReasonCompleted}, "", ""},
		{"cut", runtime.RunEnded{Reason: runtime.EndReasonLimitReached}, "", ""},
		{"failed", runtime.RunEnded{Reason: runtime.EndReasonFailed}, codes.RunFailed, codes.Lookup(codes.RunFailed).Message},
		{"nobody knows", runtime.RunEnded{}, codes.OutcomeUnknown, codes.Lookup(codes.OutcomeUnknown).Message},
		{"a phrase of the plugin", runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: "fake.sulking"}, "fake.sulking", "The fake sulks about -."},
		{"an unknown code", runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: "x.y"}, "x.y", codes.Lookup("x.y").Message},
	} {
		t.Run(x.name, func(t *testing.T) {
			r.clear()
			id := r.send(r.create(), "x", x.name)
			r.emit(runtime.Event{RunID: id, RunEnded: &x.end})
			e := r.seen(RunFinished)[0].End
			if diff := cmp.Diff([2]string{x.code, x.text}, [2]string{e.Code, e.NoticeText}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
