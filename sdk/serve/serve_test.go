package serve_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve/servetest"
)

var session = &runtimev1.SessionRef{SessionId: "s"}

func prepareRequest(run, text string) *runtimev1.PrepareRunRequest {
	return &runtimev1.PrepareRunRequest{Session: session, RunId: run, Input: []*runtimev1.Part{{Content: &runtimev1.Part_Text{Text: text}}}}
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := codes.Of(rpcerr.Decode(err)); err == nil || got != want {
		t.Errorf("code %q (%v), want %q", got, err, want)
	}
}

func TestCapabilitiesComeFromTheInterfaces(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, &fake{}, nil)
	d, err := h.Runtime.Describe(t.Context(), &runtimev1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.GetDescription().GetCapabilities(); len(got) > 0 {
		t.Errorf("a plugin of the core alone advertises %v, which it claims and does not have", got)
	}
	_, err = h.Conversations.ListSkills(t.Context(), &runtimev1.ListSkillsRequest{})
	if status.Code(err) != grpccodes.Unimplemented {
		t.Errorf("an absent method answers %v, want Unimplemented", err)
	}
	wantCode(t, err, codes.MethodUnsupported)
}

func TestStatusIsNarrowedToTheDescription(t *testing.T) {
	t.Parallel()
	f := &fake{status: &runtime.Status{Condition: runtime.ConditionReady, Capabilities: []runtime.Capability{runtime.CapabilityDrain, runtime.CapabilitySteer}}}
	h := servetest.New(t, drainer{f}, nil)
	s, err := h.Runtime.Health(t.Context(), &runtimev1.HealthRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := []runtimev1.Capability{runtimev1.Capability_CAPABILITY_DRAIN}
	if diff := cmp.Diff(want, s.GetStatus().GetCapabilities()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOneRunIdOneRun(t *testing.T) {
	t.Parallel()
	f := &fake{}
	h := servetest.New(t, f, nil)
	ctx := t.Context()
	for range 3 {
		if _, err := h.Conversations.PrepareRun(ctx, prepareRequest("r1", "hello")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.Conversations.PrepareRun(ctx, prepareRequest("r1", "something else"))
	wantCode(t, err, codes.OperationConflict)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			r, err := h.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: "r1"})
			if err != nil || r.GetOutcome() != runtimev1.Outcome_OUTCOME_DISPATCHED || r.GetNativeRunId() != "n-r1" {
				t.Errorf("CommitRun = %v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if _, err := h.Conversations.AbandonRun(ctx, &runtimev1.AbandonRunRequest{RunId: "r1"}); err != nil {
		t.Fatal(err)
	}
	if p, c, a := f.counts(); p != 1 || c != 1 || a != 0 {
		t.Errorf("the runtime saw %d preparations, %d commits, %d abandonments, want 1, 1, 0", p, c, a)
	}
}

func TestOnlyPreparedRunsAreCommitted(t *testing.T) {
	t.Parallel()
	f := &fake{}
	h := servetest.New(t, f, nil)
	ctx := t.Context()
	if _, err := h.Conversations.PrepareRun(ctx, prepareRequest("gone", "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Conversations.AbandonRun(ctx, &runtimev1.AbandonRunRequest{RunId: "gone"}); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"never", "gone"} {
		r, err := h.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: run})
		if err != nil || r.GetOutcome() != runtimev1.Outcome_OUTCOME_NOT_DISPATCHED || r.GetCode() != codes.RunNotDispatched {
			t.Errorf("CommitRun(%s) = %v, %v, want not dispatched", run, r, err)
		}
	}
	if _, c, a := f.counts(); c != 0 || a != 1 {
		t.Errorf("the runtime saw %d commits and %d abandonments, want 0 and 1", c, a)
	}
}

func TestRefusedPreparationCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	refuse := true
	f := &fake{prepare: func(_ context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		if refuse {
			return nil, codes.New(codes.SessionInUse).With(codes.Unknown)
		}
		return &runtime.PrepareRunResponse{Session: r.Session}, nil
	}}
	h := servetest.New(t, f, nil)
	_, err := h.Conversations.PrepareRun(t.Context(), prepareRequest("r", "x"))
	wantCode(t, err, codes.SessionInUse)
	if o := rpcerr.Decode(err).Outcome; o != codes.NotDispatched {
		t.Errorf("a refusal to prepare has the outcome %q, want not dispatched", o)
	}
	refuse = false
	if _, err := h.Conversations.PrepareRun(t.Context(), prepareRequest("r", "x")); err != nil {
		t.Errorf("PrepareRun again: %v", err)
	}
}

func TestAbandonWhilePreparing(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	f := &fake{prepare: func(ctx context.Context, r *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		close(begun)
		<-ctx.Done() // the abandonment cancels it, and the runtime succeeds all the same
		return &runtime.PrepareRunResponse{Session: r.Session}, nil
	}}
	h := servetest.New(t, f, nil)
	errs := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := h.Conversations.PrepareRun(context.Background(), prepareRequest("r", "x"))
		errs <- err
	})
	<-begun
	if _, err := h.Conversations.AbandonRun(t.Context(), &runtimev1.AbandonRunRequest{RunId: "r"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-errs, codes.RunNotDispatched)
	wg.Wait()
	if _, _, a := f.counts(); a != 1 {
		t.Errorf("the runtime was told %d times to let go, want once", a)
	}
}

func TestFailedCommitIsUnknownForEver(t *testing.T) {
	t.Parallel()
	f := &fake{commit: func(context.Context, *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		return nil, codes.New(codes.RuntimeUnreachable).With(codes.NotDispatched)
	}}
	h := servetest.New(t, f, nil)
	if _, err := h.Conversations.PrepareRun(t.Context(), prepareRequest("r", "x")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := h.Conversations.CommitRun(t.Context(), &runtimev1.CommitRunRequest{RunId: "r"})
		wantCode(t, err, codes.RuntimeUnreachable)
		if o := rpcerr.Decode(err).Outcome; o != codes.Unknown {
			t.Errorf("a failed commit has the outcome %q, want unknown", o)
		}
	}
	if _, c, _ := f.counts(); c != 1 {
		t.Errorf("the runtime saw %d commits, want 1", c)
	}
}

func TestPanicIsAnErrorAndTheProcessLives(t *testing.T) {
	t.Parallel()
	f := &fake{
		prepare: func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
			panic("secret text")
		},
	}
	h := servetest.New(t, f, nil)
	for range 2 { // the second one does not wait for the first for ever
		_, err := h.Conversations.PrepareRun(t.Context(), prepareRequest("r", "x"))
		wantCode(t, err, codes.Internal)
		if m := status.Convert(err).Message(); m != codes.Internal {
			t.Errorf("the caller is told %q", m)
		}
	}
	if _, err := h.Runtime.Health(t.Context(), &runtimev1.HealthRequest{}); err != nil {
		t.Errorf("Health after a panic: %v", err)
	}
}

func TestDrainClosesTheDoorFirst(t *testing.T) {
	t.Parallel()
	f := &fake{methods: []runtime.Method{{Name: "fake.read", Scope: runtime.MethodScopeRead}, {Name: "fake.write", Scope: runtime.MethodScopeWrite}}}
	h := servetest.New(t, drainer{f}, nil)
	ctx := t.Context()
	if _, err := h.Conversations.PrepareRun(ctx, prepareRequest("held", "x")); err != nil {
		t.Fatal(err)
	}
	d, err := h.Runtime.Drain(ctx, &runtimev1.DrainRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if d.GetOtherWork() != 1 {
		t.Errorf("other work %d, want the one prepared prompt", d.GetOtherWork())
	}
	_, err = h.Conversations.PrepareRun(ctx, prepareRequest("late", "x"))
	wantCode(t, err, codes.Draining)
	_, err = h.Management.Call(ctx, &runtimev1.CallRequest{Method: "fake.write"})
	wantCode(t, err, codes.Draining)
	if _, err := h.Management.Call(ctx, &runtimev1.CallRequest{Method: "fake.read"}); err != nil {
		t.Errorf("a reading method while draining: %v", err)
	}
	_, err = h.Management.Call(ctx, &runtimev1.CallRequest{Method: "fake.secret"})
	wantCode(t, err, codes.MethodUnknown)
	if _, err := h.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: "held"}); err != nil {
		t.Errorf("what was prepared before may still be committed: %v", err)
	}
	if _, err := h.Runtime.Drain(ctx, &runtimev1.DrainRequest{Reopen: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Conversations.PrepareRun(ctx, prepareRequest("late", "x")); err != nil {
		t.Errorf("PrepareRun after reopening: %v", err)
	}
}

func TestListSessionsIsCutIntoBatchesAndAnUnjudgedScanIsIncomplete(t *testing.T) {
	t.Parallel()
	h := servetest.New(t, &fake{}, nil)
	stream, err := h.Conversations.ListSessions(t.Context(), &runtimev1.ListSessionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	var end *runtimev1.ScanEnd
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if end = m.GetEnd(); end == nil {
			sizes = append(sizes, len(m.GetSessions()))
		}
	}
	if diff := cmp.Diff([]int{500, 500, 200}, sizes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if end == nil || end.GetComplete() {
		t.Errorf("end %v, want one that is not complete", end)
	}
}

func TestInvalidUTF8DoesNotBreakAnAnswer(t *testing.T) {
	t.Parallel()
	bad := "a\xc3\x28b"
	f := &fake{history: &runtime.ReadHistoryResponse{Messages: []runtime.Message{{MessageID: "m", Parts: []runtime.Part{{Text: bad}, {Data: []byte(bad)}}}}}}
	h := servetest.New(t, f, nil)
	r, err := h.Conversations.ReadHistory(t.Context(), &runtimev1.ReadHistoryRequest{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	parts := r.GetMessages()[0].GetParts()
	if parts[0].GetText() != "a\uFFFD(b" || string(parts[1].GetData()) != bad {
		t.Errorf("text %q and data %q, want the text mended and the data as it was", parts[0].GetText(), parts[1].GetData())
	}
}
