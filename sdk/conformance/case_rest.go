package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// background runs f beside the case and waits for it at its end.
func (t *T) background(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	t.cleanup(wg.Wait)
}

// upgradeCases are about leaving in good order.
var upgradeCases = []testCase{
	{group: "upgrade", name: "a draining plugin takes nothing new and finishes the old", needs: caps("drain"), run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		x.wait("text", isText)
		d, err := p.Runtime.Drain(t.fast(), &runtimev1.DrainRequest{})
		t.must(err, "Drain")
		found := false
		for _, r := range d.GetRunIds() {
			found = found || r == x.run
		}
		if !found {
			t.Errorf("Drain does not list the running run: %v", d.GetRunIds())
		}
		_, err = p.Conversations.PrepareRun(t.settings(), &runtimev1.PrepareRunRequest{Session: &runtimev1.SessionRef{SessionId: id("conform-"), ProjectPath: t.o.Project}, RunId: runID(), Input: prompt("x")})
		t.wantCode("PrepareRun while draining", err, codes.Draining)
		if end := x.end(); end.GetReason() != runtimev1.EndReason_END_REASON_COMPLETED {
			t.Errorf("the run ended %v while draining", end.GetReason())
		}
		x.sameText()
		d, err = p.Runtime.Drain(t.fast(), &runtimev1.DrainRequest{})
		t.must(err, "Drain again")
		if len(d.GetRunIds()) > 0 || d.GetOtherWork() > 0 {
			t.Errorf("an idle plugin still lists %v and %d", d.GetRunIds(), d.GetOtherWork())
		}
	}},
	{group: "upgrade", name: "the door opens again", needs: caps("drain"), run: func(t *T) {
		p := t.start()
		_, err := p.Runtime.Drain(t.fast(), &runtimev1.DrainRequest{})
		t.must(err, "Drain")
		_, err = p.Runtime.Drain(t.fast(), &runtimev1.DrainRequest{Reopen: true})
		t.must(err, "Drain with reopen")
		x := t.send(p, t.session(p), t.o.Prompts.Text)
		x.end()
	}},
	{group: "upgrade", name: "shutdown is answered in time", run: func(t *T) {
		p := t.start()
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		x.wait("text", isText)
		began := time.Now()
		_, err := p.Runtime.Shutdown(t.io(), &runtimev1.ShutdownRequest{})
		t.must(err, "Shutdown")
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		// go-plugin's own end: the server stops, and with it the process.
		p.client.Kill()
		t.wantExit(p, 2*time.Second)
	}},
	{group: "upgrade", name: "two versions side by side", run: func(t *T) {
		if !t.description.SideBySide {
			t.skip("not side by side")
		}
		dir := t.dataDir()
		p := t.startIn(dir)
		x := t.send(p, t.session(p), t.need(t.o.Prompts.Long, "long"))
		x.wait("text", isText)
		q := t.startIn(dir)
		t.alive(q)
		x.end()
		x.sameText()
		t.must(p.end(t.ctx), "Shutdown of the old one")
		if t.has(runtime.CapabilityReconcile) {
			if st := t.reconcile(q, x.ref, x.run, runtimev1.Outcome_OUTCOME_DISPATCHED); st.GetPhase() != runtimev1.RunPhase_RUN_PHASE_ENDED {
				t.Errorf("the new one says of a finished run: %v", st.GetPhase())
			}
		}
		y := t.send(q, x.ref, t.o.Prompts.Text)
		y.end()
	}},
}

// catalogCases are about the list of conversations.
var catalogCases = []testCase{
	{group: "catalog", name: "a conversation is listed once it has a prompt", run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 1)
		rows, end := t.list(p, &runtimev1.ListSessionsRequest{Previews: 20, Bound: []*runtimev1.SessionRef{ref}})
		var row *runtimev1.Session
		for _, r := range rows {
			if r.GetRef().GetNativeId() == ref.GetNativeId() && ref.GetNativeId() != "" {
				row = r
			}
		}
		switch {
		case row == nil:
			t.Errorf("the conversation is not among %d rows", len(rows))
		case row.GetLastMessage() == nil || row.GetLastMessage().GetRole() == runtimev1.Role_ROLE_UNSPECIFIED:
			t.Errorf("the newest row has no preview")
		case len([]rune(row.GetLastMessage().GetText())) > 2000:
			t.Errorf("a preview has %d characters, at most 2000 are allowed", len([]rune(row.GetLastMessage().GetText())))
		}
		if !end.GetComplete() {
			t.Errorf("the scan of an intact store is incomplete")
		}
	}},
	{group: "catalog", name: "newest first", run: func(t *T) {
		p := t.start()
		for range 3 {
			t.conversation(p, 1)
		}
		rows, _ := t.list(p, &runtimev1.ListSessionsRequest{})
		for i := 1; i < len(rows); i++ {
			if a, b := rows[i-1].GetUpdatedAt(), rows[i].GetUpdatedAt(); a != nil && b != nil && a.AsTime().Before(b.AsTime()) {
				t.Fatalf("row %d is newer than row %d", i, i-1)
			}
		}
	}},
	{group: "catalog", name: "a title stays", needs: caps("rename"), run: func(t *T) {
		dir := t.dataDir()
		p := t.startIn(dir)
		ref := t.conversation(p, 1)
		title := "A title, with “quotes” and ümlauts"
		r, err := p.Conversations.UpdateSession(t.settings(), &runtimev1.UpdateSessionRequest{Session: ref, Title: &title})
		t.must(err, "UpdateSession")
		if r.GetSession().GetTitle() != title {
			t.Errorf("the confirmed title is %q", r.GetSession().GetTitle())
		}
		p.Kill()
		q := t.startIn(dir)
		rows, _ := t.list(q, &runtimev1.ListSessionsRequest{Bound: []*runtimev1.SessionRef{ref}})
		for _, row := range rows {
			if row.GetRef().GetNativeId() == ref.GetNativeId() && row.GetTitle() == title {
				return
			}
		}
		t.Errorf("the title is gone after a restart")
	}},
	{group: "catalog", name: "archive and back", needs: caps("archive"), run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 1)
		for _, on := range []bool{true, false} {
			_, err := p.Conversations.UpdateSession(t.settings(), &runtimev1.UpdateSessionRequest{Session: ref, Archived: &on})
			t.must(err, "UpdateSession")
			for _, archived := range []bool{true, false} {
				rows, _ := t.list(p, &runtimev1.ListSessionsRequest{Archived: archived})
				found := false
				for _, row := range rows {
					found = found || row.GetRef().GetNativeId() == ref.GetNativeId()
				}
				if found != (archived == on) {
					t.Errorf("archived=%v: the list with archived=%v has it: %v", on, archived, found)
				}
			}
		}
	}},
	{group: "catalog", name: "a copy leaves the original alone", needs: caps("branch"), run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 1)
		before := ids(t.history(p, ref, 100))
		copied := &runtimev1.SessionRef{SessionId: id("conform-"), ProjectPath: t.o.Project}
		for range 2 { // asked again, it answers with what it made
			r, err := p.Conversations.CreateSession(t.settings(), &runtimev1.CreateSessionRequest{Session: &runtimev1.SessionRef{SessionId: copied.GetSessionId(), ProjectPath: t.o.Project}, Source: ref})
			t.must(err, "CreateSession")
			copied.NativeId = r.GetSession().GetRef().GetNativeId()
		}
		x := t.send(p, copied, t.o.Prompts.Text)
		x.end()
		if after := ids(t.history(p, ref, 100)); len(after) != len(before) {
			t.Errorf("the original had %d messages and has %d", len(before), len(after))
		}
		if n := len(t.history(p, x.ref, 100)); n <= len(before) {
			t.Errorf("the copy has %d messages after another turn, the original had %d", n, len(before))
		}
	}},
	{group: "catalog", name: "detached is let go", needs: caps("detach"), run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 1)
		for _, m := range []runtimev1.DetachMode{runtimev1.DetachMode_DETACH_MODE_RELEASE, runtimev1.DetachMode_DETACH_MODE_RESET, runtimev1.DetachMode_DETACH_MODE_RESET} {
			_, err := p.Conversations.DetachSession(t.settings(), &runtimev1.DetachSessionRequest{Session: ref, Mode: m})
			t.must(err, "DetachSession "+m.String())
		}
		fresh := &runtimev1.SessionRef{SessionId: id("conform-"), ProjectPath: t.o.Project}
		x := t.send(p, fresh, t.o.Prompts.Text)
		x.end()
		if x.ref.GetNativeId() == ref.GetNativeId() && ref.GetNativeId() != "" {
			t.Errorf("a new conversation has the native id of the detached one")
		}
	}},
	{group: "catalog", name: "projects are absolute", needs: caps("projects"), run: func(t *T) {
		p := t.start()
		r, err := p.Conversations.ListProjects(t.io(), &runtimev1.ListProjectsRequest{})
		t.must(err, "ListProjects")
		for _, x := range r.GetProjects() {
			if !filepath.IsAbs(x.GetPath()) {
				t.Errorf("project %q", x.GetPath())
			}
		}
	}},
	{group: "catalog", name: "activity is told while a lease runs", needs: caps("activity"), run: func(t *T) {
		p := t.start()
		ref := t.conversation(p, 1)
		r, err := p.Conversations.ObserveActivity(t.fast(), &runtimev1.ObserveActivityRequest{Sessions: []*runtimev1.SessionRef{ref, {SessionId: id("x")}}})
		t.must(err, "ObserveActivity")
		if len(r.GetSessions()) != 2 {
			t.Errorf("%d answers to 2 sessions", len(r.GetSessions()))
		}
	}},
	{group: "catalog", name: "skills can be called upon", needs: caps("skills"), run: func(t *T) {
		p := t.start()
		r, err := p.Conversations.ListSkills(t.io(), &runtimev1.ListSkillsRequest{})
		t.must(err, "ListSkills")
		if len(r.GetSkills()) > 500 {
			t.Errorf("%d skills, at most 500 are allowed", len(r.GetSkills()))
		}
		for _, s := range r.GetSkills() {
			if s.GetSkillId() == "" || s.GetInvocation() == "" {
				t.Errorf("skill %q has the invocation %q", s.GetSkillId(), s.GetInvocation())
			}
		}
	}},
}

// settingsCases are about models and options.
var settingsCases = []testCase{
	{group: "settings", name: "what is read can be chosen", needs: caps("set_settings"), run: func(t *T) {
		p := t.start()
		ref := t.session(p)
		r, err := p.Conversations.GetSettings(t.settings(), &runtimev1.GetSettingsRequest{Session: ref})
		t.must(err, "GetSettings")
		for _, m := range r.GetSettings().GetModels()[:min(len(r.GetSettings().GetModels()), 5)] {
			s, err := p.Conversations.SetSettings(t.settings(), &runtimev1.SetSettingsRequest{Session: ref, ModelId: &m.ModelId})
			t.must(err, "SetSettings "+m.GetModelId())
			if got := s.GetSettings().GetModelId(); got != m.GetModelId() && got != m.GetResolvedId() {
				t.Errorf("model %q was chosen, %q is confirmed", m.GetModelId(), got)
			}
		}
		for _, o := range r.GetSettings().GetOptions() {
			if !o.GetAvailable() {
				continue
			}
			for _, c := range o.GetChoices()[:min(len(o.GetChoices()), 3)] {
				s, err := p.Conversations.SetSettings(t.settings(), &runtimev1.SetSettingsRequest{Session: ref, Options: map[string]string{o.GetOptionId(): c.GetValue()}})
				t.must(err, "SetSettings "+o.GetOptionId())
				if got := optionValue(s.GetSettings(), o.GetOptionId()); got != c.GetValue() {
					t.Errorf("option %s=%s was chosen, %q is confirmed", o.GetOptionId(), c.GetValue(), got)
				}
			}
		}
	}},
	{group: "settings", name: "reading creates nothing", needs: caps("settings"), run: func(t *T) {
		p := t.start()
		before, _ := t.list(p, &runtimev1.ListSessionsRequest{})
		_, err := p.Conversations.GetSettings(t.settings(), &runtimev1.GetSettingsRequest{})
		t.must(err, "GetSettings")
		if after, _ := t.list(p, &runtimev1.ListSessionsRequest{}); len(after) != len(before) {
			t.Errorf("there were %d conversations and are %d", len(before), len(after))
		}
	}},
}

func optionValue(s *runtimev1.Settings, id string) string {
	for _, o := range s.GetOptions() {
		if o.GetOptionId() == id {
			return o.GetValue()
		}
	}
	return ""
}

// managementCases are about declared methods.
var managementCases = []testCase{
	{group: "management", name: "parameters are checked", needs: caps("management"), run: func(t *T) {
		p := t.start()
		for _, m := range t.description.Methods {
			_, err := p.Management.Call(t.settings(), &runtimev1.CallRequest{Method: m.Name, Params: &runtimev1.Payload{ContentType: "application/json", Data: []byte(`"nonsense"`)}})
			if err != nil && !hasDetail(err) {
				t.Errorf("%s with nonsense: %v", m.Name, err)
			}
			t.alive(p)
		}
	}},
	{group: "management", name: "results are JSON", needs: caps("management"), run: func(t *T) {
		p := t.start()
		for _, m := range t.description.Methods {
			if m.Scope != runtime.MethodScopeRead {
				continue
			}
			r, err := p.Management.Call(t.settings(), &runtimev1.CallRequest{Method: m.Name, Params: &runtimev1.Payload{ContentType: "application/json", Data: []byte(`{}`)}})
			if err == nil && !json.Valid(r.GetResult().GetData()) {
				t.Errorf("%s gives %q", m.Name, tail(string(r.GetResult().GetData()), 80))
			}
		}
	}},
}

// frameSizes are what a channel has to carry, in bytes.
var frameSizes = []int{0, 1, 125, 126, 65_535, 65_536, 1 << 20, 8 << 20, 17}

// channelCases are about raw frames. A protocol whose name ends in echo gives every frame back as it was.
var channelCases = []testCase{
	{group: "channels", name: "frames come back byte for byte and in order", needs: caps("channels"), run: func(t *T) {
		p := t.start()
		s := t.open(p)
		t.background(func() {
			for i, n := range frameSizes {
				if s.Send(frameOf(i, n)) != nil {
					return
				}
			}
		})
		for i, n := range frameSizes {
			got := t.frame(s)
			want := frameOf(i, n).GetFrame()
			if got.GetBinary() != want.GetBinary() || !bytes.Equal(got.GetData(), want.GetData()) {
				t.Fatalf("frame %d of %d bytes came back as %d bytes, binary %v", i, n, len(got.GetData()), got.GetBinary())
			}
		}
		t.must(s.CloseSend(), "closing")
	}},
	{group: "channels", name: "eight frames of 8 MiB on their way at once", needs: caps("channels"), run: func(t *T) {
		p := t.start()
		s := t.open(p)
		t.background(func() {
			for i := range 8 {
				if s.Send(frameOf(i, 8<<20)) != nil {
					return
				}
			}
		})
		for i := range 8 {
			if want := frameOf(i, 8<<20).GetFrame(); !bytes.Equal(t.frame(s).GetData(), want.GetData()) {
				t.Fatalf("frame %d differs", i)
			}
		}
		t.alive(p)
	}},
	{group: "channels", name: "one channel does not hold up another", needs: caps("channels"), run: func(t *T) {
		p := t.start()
		slow := t.open(p) // never read again
		t.background(func() {
			for i := range 4 {
				if slow.Send(frameOf(i, 8<<20)) != nil {
					return
				}
			}
		})
		quick := t.open(p)
		for i := range 50 {
			began := time.Now()
			t.must(quick.Send(frameOf(i, 100)), "Send")
			t.frame(quick)
			if d := time.Since(began); d > 2*time.Second {
				t.Errorf("a frame took %v beside a slow reader", d)
			}
		}
	}},
	{group: "channels", name: "a frame over the limit ends its channel alone", needs: caps("channels"), run: func(t *T) {
		p := t.start()
		bad, good := t.open(p), t.open(p)
		_ = bad.Send(frameOf(0, 8<<20+1))
		for {
			m, err := bad.Recv()
			if err != nil {
				t.wantCode("a frame of 8 MiB and one byte", err, codes.FrameTooLarge)
				break
			}
			if m.GetFrame() != nil {
				t.Fatalf("a frame of 8 MiB and one byte was carried")
			}
		}
		t.must(good.Send(frameOf(1, 10)), "Send")
		t.frame(good)
	}},
	{group: "channels", name: "closing ends the channel", needs: caps("channels"), run: func(t *T) {
		p := t.start()
		s := t.open(p)
		t.must(s.Send(frameOf(0, 10)), "Send")
		t.frame(s)
		t.must(s.CloseSend(), "CloseSend")
		for {
			if _, err := s.Recv(); err != nil {
				break
			}
		}
		t.alive(p)
	}},
}

// open opens a channel of a protocol that echoes.
func (t *T) open(p *process) runtimev1.ChannelService_OpenChannelClient {
	if n := len(t.description.ChannelProtocol); n < 4 || t.description.ChannelProtocol[n-4:] != "echo" {
		t.skip("channel protocol " + t.description.ChannelProtocol + " does not echo")
	}
	s, err := p.Channels.OpenChannel(t.timed(60 * time.Second))
	t.must(err, "OpenChannel")
	t.must(s.Send(&runtimev1.OpenChannelRequest{Kind: &runtimev1.OpenChannelRequest_Open{Open: &runtimev1.ChannelOpen{ChannelId: id("ch-"), Isolated: true, HostVersion: "1.0.0"}}}), "Send")
	return s
}

// frame waits for the next frame; states in between are fine.
func (t *T) frame(s runtimev1.ChannelService_OpenChannelClient) *runtimev1.ChannelFrame {
	for {
		m, err := s.Recv()
		t.must(err, "Recv")
		if f := m.GetFrame(); f != nil {
			return f
		}
	}
}

// frameOf makes a frame that is told from every other: its number, then bytes of all values. Even ones are text.
func frameOf(i, n int) *runtimev1.OpenChannelRequest {
	b := append([]byte(fmt.Sprintf("%d:", i)), make([]byte, n)...)[:n]
	for j := range b {
		switch {
		case i%2 == 1:
			b[j] = byte(j*7 + i)
		case j > 8:
			b[j] = byte('a' + (j+i)%26)
		case j >= len(fmt.Sprintf("%d:", i)):
			b[j] = '.'
		}
	}
	return &runtimev1.OpenChannelRequest{Kind: &runtimev1.OpenChannelRequest_Frame{Frame: &runtimev1.ChannelFrame{Data: b, Binary: i%2 == 1}}}
}
