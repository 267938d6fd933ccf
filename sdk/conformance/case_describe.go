package conformance

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/sdk/runtime"
)

var (
	runtimeName = regexp.MustCompile(`^[a-z0-9.-]{1,64}$`)
	methodName  = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)
	semver      = regexp.MustCompile(`^v?\d+\.\d+\.\d+([-+].*)?$`)
)

func checkNames(t *T) {
	d := t.description
	if !runtimeName.MatchString(d.RuntimeID) {
		t.Errorf("runtime_id %q", d.RuntimeID)
	}
	if d.Name == "" || !semver.MatchString(d.PluginVersion) {
		t.Errorf("name %q, plugin_version %q", d.Name, d.PluginVersion)
	}
	seen := map[string]bool{}
	for _, p := range d.Phrases {
		if !strings.HasPrefix(p.Code, d.RuntimeID+".") || p.Text == "" || len([]rune(p.Text)) > 300 || seen[p.Code] {
			t.Errorf("phrase %q: its code begins with %q, its text has 1 to 300 characters, and it comes once", p.Code, d.RuntimeID+".")
		}
		seen[p.Code] = true
	}
	for _, m := range d.Methods {
		if !methodName.MatchString(m.Name) || m.Description == "" || seen[m.Name] {
			t.Errorf("method %q: lower case words joined by dots, with a description, once", m.Name)
		}
		seen[m.Name] = true
	}
	if len(d.Methods) > 0 != t.has(runtime.CapabilityManagement) {
		t.Errorf("%d methods are declared and management is advertised: %v", len(d.Methods), t.has(runtime.CapabilityManagement))
	}
	if (d.ChannelProtocol != "") != t.has(runtime.CapabilityChannels) {
		t.Errorf("channel_protocol %q and the capability of channels do not agree", d.ChannelProtocol)
	}
	caps := map[runtime.Capability]bool{}
	for _, c := range d.Capabilities {
		if caps[c] {
			t.Errorf("capability %v comes twice", c)
		}
		caps[c] = true
	}
	if caps[runtime.CapabilitySetSettings] && !caps[runtime.CapabilitySettings] {
		t.Errorf("settings can be changed and not read")
	}
}

func checkSchemas(t *T) {
	if len(t.description.ConfigSchema.Data) > 0 {
		t.schema("config_schema", t.description.ConfigSchema)
	}
	for _, m := range t.description.Methods {
		t.schema(m.Name+" params", m.ParamsSchema)
		if len(m.ResultSchema.Data) > 0 {
			t.schema(m.Name+" result", m.ResultSchema)
		}
	}
}

func (t *T) schema(what string, p runtime.Payload) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(p.Data))
	if err != nil {
		t.Errorf("%s is no JSON: %v", what, err)
		return
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if _, err := c.Compile("mem:///schema.json"); err != nil {
		t.Errorf("%s is no JSON Schema: %v", what, err)
	}
}

// checkCapabilities calls every optional method: it is unimplemented exactly when it is not advertised.
func checkCapabilities(t *T) {
	p := t.start()
	ref := &runtimev1.SessionRef{SessionId: id("probe-"), ProjectPath: t.o.Project}
	title, archived := "probe", false
	probe := []struct {
		cap  runtime.Capability
		call func() error
	}{
		{runtime.CapabilityCreate, func() error {
			_, err := p.Conversations.CreateSession(t.settings(), &runtimev1.CreateSessionRequest{Session: &runtimev1.SessionRef{SessionId: id("probe-"), ProjectPath: t.o.Project}})
			return err
		}},
		{runtime.CapabilityBranch, func() error {
			_, err := p.Conversations.CreateSession(t.settings(), &runtimev1.CreateSessionRequest{Session: ref, Source: &runtimev1.SessionRef{NativeId: id("none-")}})
			return err
		}},
		{runtime.CapabilityRename, func() error {
			_, err := p.Conversations.UpdateSession(t.settings(), &runtimev1.UpdateSessionRequest{Session: ref, Title: &title})
			return err
		}},
		{runtime.CapabilityArchive, func() error {
			_, err := p.Conversations.UpdateSession(t.settings(), &runtimev1.UpdateSessionRequest{Session: ref, Archived: &archived})
			return err
		}},
		{runtime.CapabilityDetach, func() error {
			_, err := p.Conversations.DetachSession(t.settings(), &runtimev1.DetachSessionRequest{Session: ref, Mode: runtimev1.DetachMode_DETACH_MODE_RELEASE})
			return err
		}},
		{runtime.CapabilityProjects, func() error {
			_, err := p.Conversations.ListProjects(t.io(), &runtimev1.ListProjectsRequest{})
			return err
		}},
		{runtime.CapabilitySteer, func() error {
			_, err := p.Conversations.SteerRun(t.settings(), &runtimev1.SteerRunRequest{Session: ref, RunId: runID(), Text: "x"})
			return err
		}},
		{runtime.CapabilityQuestions, func() error {
			_, err := p.Conversations.ResolveInteraction(t.settings(), &runtimev1.ResolveInteractionRequest{Session: ref, InteractionId: "none", Answer: &runtimev1.ResolveInteractionRequest_Cancel{Cancel: true}})
			return err
		}},
		{runtime.CapabilitySettings, func() error {
			_, err := p.Conversations.GetSettings(t.settings(), &runtimev1.GetSettingsRequest{})
			return err
		}},
		{runtime.CapabilitySkills, func() error {
			_, err := p.Conversations.ListSkills(t.io(), &runtimev1.ListSkillsRequest{})
			return err
		}},
		{runtime.CapabilityActivity, func() error {
			_, err := p.Conversations.ObserveActivity(t.fast(), &runtimev1.ObserveActivityRequest{})
			return err
		}},
		{runtime.CapabilityAttachments, func() error {
			s, err := p.Conversations.ReadAttachment(t.io(), &runtimev1.ReadAttachmentRequest{Session: ref, AttachmentId: "none"})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}},
		{runtime.CapabilityReconcile, func() error {
			_, err := p.Runtime.Reconcile(t.settings(), &runtimev1.ReconcileRequest{})
			return err
		}},
		{runtime.CapabilityDrain, func() error {
			_, err := p.Runtime.Drain(t.fast(), &runtimev1.DrainRequest{Reopen: true})
			return err
		}},
		{runtime.CapabilityManagement, func() error {
			_, err := p.Management.Call(t.io(), &runtimev1.CallRequest{Method: "none.such"})
			return err
		}},
		{runtime.CapabilityChannels, func() error {
			s, err := p.Channels.OpenChannel(t.timed(2e9))
			if err == nil {
				_ = s.CloseSend()
				_, err = s.Recv()
			}
			return err
		}},
	}
	for _, x := range probe {
		has := t.has(x.cap)
		if x.cap == runtime.CapabilityQuestions {
			has = has || t.has(runtime.CapabilityApprovals)
		}
		if err := x.call(); unimplemented(err) == has {
			t.Errorf("%v is advertised: %v, and the call answers %v", x.cap, has, err)
		}
	}
	t.alive(p)
}

func checkStatus(t *T) {
	p := t.start()
	h, err := p.Runtime.Health(t.fast(), &runtimev1.HealthRequest{})
	t.must(err, "Health")
	s := h.GetStatus()
	for _, c := range s.GetCapabilities() {
		if !slices.Contains(t.raw.GetCapabilities(), c) {
			t.Errorf("the status names %v, the description does not", c)
		}
	}
	for _, m := range s.GetMethods() {
		if !slices.ContainsFunc(t.description.Methods, func(x runtime.Method) bool { return x.Name == m }) {
			t.Errorf("the status names method %q, the description does not", m)
		}
	}
	if s.GetEvidenceAt() == nil {
		t.Errorf("the status has no evidence_at")
	}
}
