package conformance

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// malformed is one request that is wrong whatever the runtime is.
type malformed struct {
	name string
	cap  runtime.Capability // 0: always
	call func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error
	want []string
}

var (
	anyCode = []string(nil) // whatever code names it
	params  = []string{codes.ParamsInvalid}
)

func prepareBad(name string, want []string, change func(*runtimev1.PrepareRunRequest)) malformed {
	return malformed{name: name, want: want, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		q := &runtimev1.PrepareRunRequest{Session: ref, RunId: runID(), Input: prompt("x")}
		change(q)
		_, err := p.Conversations.PrepareRun(ctx, q)
		return err
	}}
}

func historyBad(name string, want []string, change func(*runtimev1.ReadHistoryRequest)) malformed {
	return malformed{name: name, want: want, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		q := &runtimev1.ReadHistoryRequest{Session: ref, MaxMessages: 10, MaxBytes: 1 << 20}
		change(q)
		_, err := p.Conversations.ReadHistory(ctx, q)
		return err
	}}
}

func part(content string, data []byte, kind string) *runtimev1.Part {
	p := &runtimev1.Part{ContentType: kind}
	switch content {
	case "text":
		p.Content = &runtimev1.Part_Text{Text: string(data)}
	case "data":
		p.Content = &runtimev1.Part_Data{Data: data}
	case "attachment":
		p.Content = &runtimev1.Part_AttachmentId{AttachmentId: string(data)}
	}
	return p
}

var long = strings.Repeat("x", 100_000)

// malformedRequests are the forty of the contract.
var malformedRequests = []malformed{
	prepareBad("no session", params, func(q *runtimev1.PrepareRunRequest) { q.Session = nil }),
	prepareBad("empty session", params, func(q *runtimev1.PrepareRunRequest) { q.Session = &runtimev1.SessionRef{} }),
	prepareBad("session with a project alone", params, func(q *runtimev1.PrepareRunRequest) {
		q.Session = &runtimev1.SessionRef{ProjectPath: q.Session.GetProjectPath()}
	}),
	prepareBad("no run id", params, func(q *runtimev1.PrepareRunRequest) { q.RunId = "" }),
	prepareBad("endless run id", params, func(q *runtimev1.PrepareRunRequest) { q.RunId = long }),
	prepareBad("endless session id", params, func(q *runtimev1.PrepareRunRequest) { q.Session = &runtimev1.SessionRef{SessionId: long} }),
	prepareBad("no input", []string{codes.PromptEmpty}, func(q *runtimev1.PrepareRunRequest) { q.Input = nil }),
	prepareBad("empty text", []string{codes.PromptEmpty}, func(q *runtimev1.PrepareRunRequest) { q.Input = prompt("") }),
	prepareBad("part without content", []string{codes.AttachmentMalformed}, func(q *runtimev1.PrepareRunRequest) { q.Input = []*runtimev1.Part{{ContentType: "image/png"}} }),
	prepareBad("file without a type", []string{codes.AttachmentMalformed, codes.AttachmentUnsupported}, func(q *runtimev1.PrepareRunRequest) {
		q.Input = append(q.Input, part("data", []byte{1, 2, 3}, ""))
	}),
	prepareBad("empty file", []string{codes.AttachmentMalformed, codes.AttachmentUnsupported}, func(q *runtimev1.PrepareRunRequest) {
		q.Input = append(q.Input, part("data", nil, "image/png"))
	}),
	prepareBad("file by name", []string{codes.AttachmentUnsupported, codes.AttachmentMalformed}, func(q *runtimev1.PrepareRunRequest) {
		q.Input = append(q.Input, part("attachment", []byte("x"), "image/png"))
	}),
	prepareBad("unknown option", []string{codes.OptionInvalid, codes.SettingsUnsupported, codes.ParamsInvalid}, func(q *runtimev1.PrepareRunRequest) {
		q.Options = map[string]string{"no-such-option": "x"}
	}),
	{name: "commit without a run id", want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{})
		return err
	}},
	{name: "commit of an endless run id", want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.CommitRun(ctx, &runtimev1.CommitRunRequest{RunId: long})
		return err
	}},
	{name: "abandon without a run id", want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.AbandonRun(ctx, &runtimev1.AbandonRunRequest{})
		return err
	}},
	{name: "stop without a run id", want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.StopRun(ctx, &runtimev1.StopRunRequest{Session: ref})
		return err
	}},
	{name: "stop without a session", want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.StopRun(ctx, &runtimev1.StopRunRequest{RunId: runID()})
		return err
	}},
	historyBad("history of no session", params, func(q *runtimev1.ReadHistoryRequest) { q.Session = nil }),
	historyBad("history of an empty session", params, func(q *runtimev1.ReadHistoryRequest) { q.Session = &runtimev1.SessionRef{} }),
	historyBad("history of 8 MiB", params, func(q *runtimev1.ReadHistoryRequest) { q.MaxBytes = 8 << 20 }),
	historyBad("history with a foreign cursor", []string{codes.CursorInvalid}, func(q *runtimev1.ReadHistoryRequest) { q.Cursor = "zzz" }),
	historyBad("history with an endless cursor", []string{codes.CursorInvalid}, func(q *runtimev1.ReadHistoryRequest) { q.Cursor = long }),
	{name: "configure without an instance", want: []string{codes.ConfigInvalid}, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Runtime.Configure(ctx, &runtimev1.ConfigureRequest{DataDir: p.dir})
		return err
	}},
	{name: "configure with broken JSON", want: []string{codes.ConfigInvalid}, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Runtime.Configure(ctx, &runtimev1.ConfigureRequest{InstanceId: "conform", DataDir: p.dir, HostBrokerId: p.broker, Config: &runtimev1.Payload{ContentType: "application/json", Data: []byte("{")}})
		return err
	}},
	{name: "create without a name", cap: runtime.CapabilityBranch, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.CreateSession(ctx, &runtimev1.CreateSessionRequest{Source: ref})
		return err
	}},
	{name: "copy of nothing", cap: runtime.CapabilityBranch, want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.CreateSession(ctx, &runtimev1.CreateSessionRequest{Session: &runtimev1.SessionRef{SessionId: id("x")}, Source: &runtimev1.SessionRef{}})
		return err
	}},
	{name: "copy of a lost conversation", cap: runtime.CapabilityBranch, want: []string{codes.SessionLost}, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.CreateSession(ctx, &runtimev1.CreateSessionRequest{Session: &runtimev1.SessionRef{SessionId: id("x")}, Source: &runtimev1.SessionRef{NativeId: id("lost-")}})
		return err
	}},
	{name: "update of nothing", cap: runtime.CapabilityRename, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.UpdateSession(ctx, &runtimev1.UpdateSessionRequest{Session: ref})
		return err
	}},
	{name: "empty title", cap: runtime.CapabilityRename, want: []string{codes.TitleInvalid}, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.UpdateSession(ctx, &runtimev1.UpdateSessionRequest{Session: ref, Title: new(string)})
		return err
	}},
	{name: "endless title", cap: runtime.CapabilityRename, want: []string{codes.TitleInvalid}, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.UpdateSession(ctx, &runtimev1.UpdateSessionRequest{Session: ref, Title: &long})
		return err
	}},
	{name: "detach of nothing", cap: runtime.CapabilityDetach, want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Conversations.DetachSession(ctx, &runtimev1.DetachSessionRequest{})
		return err
	}},
	{name: "steer without text", cap: runtime.CapabilitySteer, want: []string{codes.PromptEmpty, codes.ParamsInvalid}, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.SteerRun(ctx, &runtimev1.SteerRunRequest{Session: ref, RunId: runID()})
		return err
	}},
	{name: "steer without a run", cap: runtime.CapabilitySteer, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.SteerRun(ctx, &runtimev1.SteerRunRequest{Session: ref, Text: "x"})
		return err
	}},
	{name: "answer without an answer", cap: runtime.CapabilityApprovals, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.ResolveInteraction(ctx, &runtimev1.ResolveInteractionRequest{Session: ref, InteractionId: "x"})
		return err
	}},
	{name: "answer to nothing", cap: runtime.CapabilityApprovals, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		q := allow(runtimev1.Decision_DECISION_DENY)
		q.Session = ref
		_, err := p.Conversations.ResolveInteraction(ctx, q)
		return err
	}},
	{name: "settings without a change", cap: runtime.CapabilitySetSettings, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.SetSettings(ctx, &runtimev1.SetSettingsRequest{Session: ref})
		return err
	}},
	{name: "model of nobody", cap: runtime.CapabilitySetSettings, want: []string{codes.OptionInvalid, codes.ModelMissing}, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.SetSettings(ctx, &runtimev1.SetSettingsRequest{Session: ref, ModelId: &long})
		return err
	}},
	{name: "33 sessions observed", cap: runtime.CapabilityActivity, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		q := &runtimev1.ObserveActivityRequest{}
		for range 33 {
			q.Sessions = append(q.Sessions, ref)
		}
		_, err := p.Conversations.ObserveActivity(ctx, q)
		return err
	}},
	{name: "an hour observed", cap: runtime.CapabilityActivity, want: params, call: func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		_, err := p.Conversations.ObserveActivity(ctx, &runtimev1.ObserveActivityRequest{Sessions: []*runtimev1.SessionRef{ref}, Lease: durationpb.New(time.Hour)})
		return err
	}},
	{name: "attachment of nobody", cap: runtime.CapabilityAttachments, want: []string{codes.AttachmentUnknown}, call: readAttachment("../../etc/passwd")},
	{name: "attachment without a name", cap: runtime.CapabilityAttachments, want: []string{codes.AttachmentUnknown, codes.ParamsInvalid}, call: readAttachment("")},
	{name: "undeclared method", cap: runtime.CapabilityManagement, want: []string{codes.MethodUnknown}, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		_, err := p.Management.Call(ctx, &runtimev1.CallRequest{Method: "none.such"})
		return err
	}},
	{name: "channel without a name", cap: runtime.CapabilityChannels, want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		return openWith(ctx, p, &runtimev1.OpenChannelRequest{Kind: &runtimev1.OpenChannelRequest_Open{Open: &runtimev1.ChannelOpen{}}})
	}},
	{name: "channel that begins with a frame", cap: runtime.CapabilityChannels, want: params, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		return openWith(ctx, p, &runtimev1.OpenChannelRequest{Kind: &runtimev1.OpenChannelRequest_Frame{Frame: &runtimev1.ChannelFrame{Data: []byte("x")}}})
	}},
	{name: "unknown service", want: anyCode, call: func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		return p.Conn.Invoke(ctx, "/openphone.runtime.v1.NoSuchService/Call", &runtimev1.DescribeRequest{}, &runtimev1.DescribeResponse{})
	}},
	{name: "bytes that are no message", want: anyCode, call: rawCall("\xff\xff\xff\xff\xff")},
	{name: "invalid UTF-8 in a name", want: anyCode, call: rawCall("\x0a\x04\x0a\x02\xc3\x28\x12\x01x")},
	{name: "a message cut short", want: anyCode, call: rawCall("\x0a\x7f\x0a")},
}

func readAttachment(name string) func(context.Context, *process, *runtimev1.SessionRef) error {
	return func(ctx context.Context, p *process, ref *runtimev1.SessionRef) error {
		s, err := p.Conversations.ReadAttachment(ctx, &runtimev1.ReadAttachmentRequest{Session: ref, AttachmentId: name})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
}

func openWith(ctx context.Context, p *process, first *runtimev1.OpenChannelRequest) error {
	s, err := p.Channels.OpenChannel(ctx)
	if err != nil {
		return err
	}
	_ = s.Send(first)
	_, err = s.Recv()
	return err
}

// rawCall sends bytes in place of a PrepareRunRequest.
func rawCall(b string) func(context.Context, *process, *runtimev1.SessionRef) error {
	return func(ctx context.Context, p *process, _ *runtimev1.SessionRef) error {
		out := []byte{}
		return p.Conn.Invoke(ctx, runtimev1.ConversationService_PrepareRun_FullMethodName, []byte(b), &out, grpc.ForceCodecV2(bytesCodec{}))
	}
}

// bytesCodec sends bytes as they are, under the name of protobuf.
type bytesCodec struct{}

var _ encoding.CodecV2 = bytesCodec{}

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (bytesCodec) Name() string { return "proto" }

// badInputCases are about requests no host should ever send.
var badInputCases = []testCase{
	{group: "bad input", name: "forty malformed requests", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		if len(malformedRequests) < 40 {
			t.Errorf("only %d malformed requests are tried", len(malformedRequests))
		}
		for _, m := range malformedRequests {
			if m.cap != 0 && !t.has(m.cap) {
				continue
			}
			err := m.call(t.io(), p, ref)
			switch {
			case m.want != nil && t.mute() && hasDetail(err): // it may refuse the prompt before it looks closer
			case m.want != nil:
				t.wantCode(m.name, err, m.want...)
			case err == nil:
				t.Errorf("%s succeeded", m.name)
			case status.Code(err) == grpccodes.Unavailable || status.Code(err) == grpccodes.DeadlineExceeded:
				t.Errorf("%s: %v", m.name, err)
			}
			t.alive(p)
		}
		if !t.mute() {
			x := t.send(p, ref, t.o.Prompts.Text)
			x.end()
		}
	}},
	{group: "bad input", name: "unknown enum values are careful", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		if t.has(runtime.CapabilityDetach) {
			_, err := p.Conversations.DetachSession(t.settings(), &runtimev1.DetachSessionRequest{Session: ref, Mode: 99})
			t.must(err, "DetachSession with an unknown mode")
		}
		if t.has(runtime.CapabilityReconcile) {
			_, err := p.Runtime.Reconcile(t.settings(), &runtimev1.ReconcileRequest{Runs: []*runtimev1.OpenRun{{Session: ref, RunId: runID(), Outcome: 99}}})
			t.must(err, "Reconcile with an unknown outcome")
		}
		t.alive(p)
	}},
	{group: "bad input", name: "a message of 16 MiB", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		q := &runtimev1.PrepareRunRequest{Session: ref, RunId: runID(), Input: append(prompt(t.o.Prompts.Text), part("data", make([]byte, 16<<20-4096), "application/octet-stream"))}
		_, err := p.Conversations.PrepareRun(t.settings(), q)
		if status.Code(err) == grpccodes.ResourceExhausted && !hasDetail(err) {
			t.Errorf("the plugin cannot receive 16 MiB: %v", err)
		}
		_, _ = p.Conversations.AbandonRun(t.fast(), &runtimev1.AbandonRunRequest{RunId: q.GetRunId()})
		t.alive(p)
	}},
	{group: "bad input", name: "a caller that goes away", run: func(t *T) {
		p := t.start()
		for range 20 {
			ctx, cancel := context.WithCancel(t.ctx)
			stream, err := p.Conversations.ListSessions(ctx, &runtimev1.ListSessionsRequest{Previews: 20})
			t.must(err, "ListSessions")
			cancel()
			_, _ = stream.Recv()
		}
		t.alive(p)
	}},
	{group: "bad input", name: "a hundred calls at once", run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		errs := make(chan error, 100)
		for range cap(errs) {
			t.background(func() {
				_, err := p.Conversations.ReadHistory(t.ctx, &runtimev1.ReadHistoryRequest{Session: ref, MaxMessages: 10, MaxBytes: 1 << 20})
				errs <- err
			})
		}
		for range cap(errs) {
			if err := <-errs; err != nil && !hasDetail(err) {
				t.Errorf("one of many: %v", err)
			}
		}
		t.alive(p)
	}},
}
