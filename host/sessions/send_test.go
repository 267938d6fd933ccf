package sessions

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestPromptWalks(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.clear()
	id := r.send(key, "hello", "k-1")
	r.emit(text(id, "p", "Hel"), text(id, "p", "lo"), ended(id))
	want := []UpdateKind{SessionChanged, RunStarted, RunStarted, TextChunk, TextChunk, RunFinished, SessionChanged}
	if diff := cmp.Diff(want, r.kinds()); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	if row := r.seen(SessionChanged)[0].Row; !row.HasActiveRun {
		t.Error("the first row of a run does not say that it runs")
	}
	end := r.seen(RunFinished)[0].End
	if end.Message == nil || end.Message.Parts[0].Text != "Hello" {
		t.Errorf("the reply is %+v", end.Message)
	}
	if diff := cmp.Diff([]string{id}, r.f.runs()); diff != "" {
		t.Errorf("dispatched (-want +got):\n%s", diff)
	}
	rows, err := r.List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Title != "hello" || rows[0].HasActiveRun || rows[0].Preview != "Hello" {
		t.Errorf("rows are %+v", rows)
	}
}

// A prompt sent in the same millisecond as its conversation needs no creation to wait for: it arrives, first and once.
func TestPromptRightAfterCreation(t *testing.T) {
	rules.Covers(t, "FAULT-01")
	r := newRig(t)
	for range 20 {
		key := r.create()
		id, err := r.Send(t.Context(), prompt(key, "first", "k"))
		if err != nil {
			t.Fatal(err)
		}
		r.dispatched(id)
		r.f.mu.Lock()
		p := r.f.prepared[id]
		r.f.mu.Unlock()
		if p == nil || p.Session.SessionID != key || p.Session.NativeID != "" || p.Input[0].Text != "first" {
			t.Fatalf("prepared %+v", p)
		}
	}
	if n := len(r.f.runs()); n != 20 {
		t.Errorf("%d prompts were dispatched, want 20", n)
	}
}

// Every frame twice, at the same time or later, before and after a restart: one run, and its receipt for everybody.
func TestSamePromptAgain(t *testing.T) {
	rules.Covers(t, "FAULT-04", "SYNC-12")
	r := newRig(t)
	key := r.create()
	entered, release := make(chan struct{}, 8), make(chan struct{})
	r.f.onPrepare = func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		entered <- struct{}{}
		<-release
		return nil, nil
	}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			id, err := r.Send(t.Context(), prompt(key, "hello", "k-1"))
			if err != nil {
				t.Errorf("copy %d: %v", i, err)
			}
			ids[i] = id
		})
	}
	<-entered
	close(release)
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("the copies got %q", ids)
		}
	}
	r.dispatched(ids[0])
	again := func(when string) {
		t.Helper()
		if id, err := r.Send(t.Context(), prompt(key, "hello", "k-1")); err != nil || id != ids[0] {
			t.Errorf("%s: the same prompt got %q, %v", when, id, err)
		}
		if _, err := r.Send(t.Context(), prompt(key, "other", "k-1")); codes.Of(err) != codes.OperationConflict {
			t.Errorf("%s: the same key with another text got %v", when, err)
		}
		if id, recorded, err := r.PromptStatus(t.Context(), key, "k-1"); id != ids[0] || !recorded || err != nil {
			t.Errorf("%s: the status is %q, %t, %v", when, id, recorded, err)
		}
	}
	again("while it runs")
	r.emit(ended(ids[0]))
	again("after its end")
	r.restart()
	r.up()
	again("after a restart")
	if err := r.Reset(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	again("after a reset")
	if err := r.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	again("after deletion")
	if diff := cmp.Diff(ids[:1], r.f.runs()); diff != "" {
		t.Errorf("dispatched (-want +got):\n%s", diff)
	}
}

func TestPromptStatusOfNothing(t *testing.T) {
	r := newRig(t)
	key := r.create()
	if _, recorded, err := r.PromptStatus(t.Context(), key, "__proto__"); recorded || err != nil {
		t.Errorf("got %t, %v", recorded, err)
	}
	if _, _, err := r.PromptStatus(t.Context(), "nobody", "k"); codes.Of(err) != codes.SessionUnknown {
		t.Errorf("an unknown conversation got %v", err)
	}
	id := r.send(key, "plain data", "__proto__")
	if got, recorded, _ := r.PromptStatus(t.Context(), key, "__proto__"); got != id || !recorded {
		t.Errorf("got %q, %t", got, recorded)
	}
}

func TestTwoPhonesSendAtOnce(t *testing.T) {
	r := newRig(t)
	key := r.create()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ok, busy int
	for _, k := range []string{"phone-a", "phone-b"} {
		wg.Go(func() {
			_, err := r.Send(t.Context(), prompt(key, "from "+k, k))
			mu.Lock()
			defer mu.Unlock()
			switch codes.Of(err) {
			case "":
				ok++
			case codes.RunActive:
				busy++
				if _, recorded, _ := r.PromptStatus(t.Context(), key, k); recorded {
					t.Error("the refused prompt has a receipt")
				}
			default:
				t.Errorf("unexpected: %v", err)
			}
		})
	}
	wg.Wait()
	if ok != 1 || busy != 1 {
		t.Errorf("%d runs and %d refusals, want 1 and 1", ok, busy)
	}
}

// Until the runtime agreed there is no receipt, and after a refusal the key is free.
func TestRefusedByTheRuntime(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.f.onPrepare = func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		if recs, err := r.db.RunsOf(t.Context(), "fake", key); err != nil || len(recs) != 0 {
			t.Errorf("a receipt before the runtime agreed: %v, %v", recs, err)
		}
		return nil, codes.New(codes.PermissionsNotRestored)
	}
	if _, err := r.Send(t.Context(), prompt(key, "x", "k")); codes.Of(err) != codes.PermissionsNotRestored {
		t.Fatalf("got %v", err)
	}
	if _, recorded, _ := r.PromptStatus(t.Context(), key, "k"); recorded {
		t.Error("a refused prompt has a receipt")
	}
	r.f.onPrepare = nil
	r.send(key, "x", "k")
}

func TestReceiptBeforeDispatch(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.f.onCommit = func(_ context.Context, q *runtime.CommitRunRequest) (*runtime.CommitRunResponse, error) {
		rec, found, err := r.db.Run(t.Context(), "fake", q.RunID)
		if err != nil || !found || rec.Key != "k" || rec.SessionID != key {
			t.Errorf("dispatched without a receipt: %+v, %t, %v", rec, found, err)
		}
		return nil, nil
	}
	r.send(key, "x", "k")
}

func TestReceiptThatCannotBeWritten(t *testing.T) {
	r := newRig(t)
	key := r.create()
	if err := r.db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Send(t.Context(), prompt(key, "x", "k")); err == nil {
		t.Fatal("a prompt without a receipt was taken")
	}
	if len(r.f.runs()) != 0 {
		t.Error("a prompt without a receipt was dispatched")
	}
	if n := len(r.seen(RunStarted)); n != 0 {
		t.Errorf("%d runs were announced", n)
	}
}

// A phone that goes away before its receipt leaves nothing behind; afterwards it changes nothing.
func TestPhoneGoesAway(t *testing.T) {
	r := newRig(t)
	key := r.create()
	ctx, cancel := context.WithCancel(t.Context())
	r.f.onPrepare = func(ctx context.Context, _ *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := r.Send(ctx, prompt(key, "x", "k")); err == nil {
		t.Fatal("taken")
	}
	r.until("the abandoned run", func() bool { r.f.mu.Lock(); defer r.f.mu.Unlock(); return len(r.f.abandoned) == 1 })
	if _, recorded, _ := r.PromptStatus(t.Context(), key, "k"); recorded {
		t.Error("there is a receipt")
	}
}

func TestSendChecks(t *testing.T) {
	r := newRig(t)
	r.f.description.Limits = &runtime.Limits{TextUnits: 10, Attachments: 2, AttachmentBytes: 8}
	r.f.status.ContentTypes = []string{"image/png"}
	key := r.create()
	png := Attachment{MIME: "image/png", Data: []byte{1}}
	for _, x := range []struct {
		name   string
		change func(*SendInput)
		want   string
	}{
		{"empty", func(in *SendInput) { in.Text = "" }, codes.PromptEmpty},
		{"at the limit", func(in *SendInput) { in.Text = strings.Repeat("é", 10) }, ""},
		{"one unit too long", func(in *SendInput) { in.Text = strings.Repeat("é", 11) }, codes.PromptTooLong},
		{"surrogates count twice", func(in *SendInput) { in.Text = strings.Repeat("😀", 6) }, codes.PromptTooLong},
		{"not UTF-8", func(in *SendInput) { in.Text = "\xff" }, codes.ParamsInvalid},
		{"no key", func(in *SendInput) { in.IdempotencyKey = "" }, codes.KeyInvalid},
		{"long key", func(in *SendInput) { in.IdempotencyKey = strings.Repeat("k", 201) }, codes.KeyInvalid},
		{"no fingerprint", func(in *SendInput) { in.Fingerprint = "x" }, codes.ParamsInvalid},
		{"unknown conversation", func(in *SendInput) { in.SessionKey = "x" }, codes.SessionUnknown},
		{"image", func(in *SendInput) { in.Text, in.Attachments = "", []Attachment{png} }, ""},
		{"too many images", func(in *SendInput) { in.Attachments = []Attachment{png, png, png} }, codes.AttachmentsTooMany},
		{"wrong type", func(in *SendInput) { in.Attachments = []Attachment{{MIME: "image/svg+xml", Data: []byte{1}}} }, codes.AttachmentUnsupported},
		{"empty image", func(in *SendInput) { in.Attachments = []Attachment{{MIME: "image/png"}} }, codes.AttachmentMalformed},
		{"large image", func(in *SendInput) { in.Attachments = []Attachment{{MIME: "image/png", Data: make([]byte, 9)}} }, codes.AttachmentTooLarge},
	} {
		t.Run(x.name, func(t *testing.T) {
			in := prompt(key, "text", "key-"+x.name)
			x.change(&in)
			id, err := r.Send(t.Context(), in)
			if codes.Of(err) != x.want {
				t.Fatalf("got %v, want %q", err, x.want)
			}
			if id != "" {
				r.dispatched(id)
				r.emit(ended(id))
			}
		})
	}
}

func TestRunElsewhereWhilePreparing(t *testing.T) {
	r := newRig(t)
	key := r.create()
	r.f.onPrepare = func(context.Context, *runtime.PrepareRunRequest) (*runtime.PrepareRunResponse, error) {
		r.emit(runtime.Event{SessionID: key, RunID: "desktop:1", RunStarted: &runtime.RunStarted{NativeRunID: "1"}})
		return nil, nil
	}
	if _, err := r.Send(t.Context(), prompt(key, "x", "k")); codes.Of(err) != codes.RunActive {
		t.Fatalf("got %v", err)
	}
	r.until("the abandoned run", func() bool { r.f.mu.Lock(); defer r.f.mu.Unlock(); return len(r.f.abandoned) == 1 })
}
