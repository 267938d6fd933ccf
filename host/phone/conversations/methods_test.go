package conversations

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

var backends = []string{"codex", "claude-code", "pi", "demo"}

func TestHealthOfEachBackend(t *testing.T) {
	rules.Covers(t, "SYNC-01", "SYNC-06", "UPD-01")
	for backend, want := range map[string]string{
		"codex": `{"backend":"codex","bridgeVersion":"1.2.3","sessionCatalogSync":1,"sessionCatalogPageIndex":1,"sessionActivity":1,
			"artifacts":true,"promptStatus":true,"vision":true,"projects":true,"profileVersion":1,"fastMode":true,"sessionPermissions":true,
			"sessionArchive":true,"modelReady":true,"model":"m","desktopConnected":false}`,
		"claude-code": `{"backend":"claude-code","bridgeVersion":"1.2.3","sessionCatalogSync":1,"sessionActivity":1,"artifacts":true,
			"promptStatus":true,"vision":true,"projects":true,"capabilities":{"steer":false,"thinkingLevels":false,"skills":false,"sessionBranch":true}}`,
		"pi": `{"backend":"pi","bridgeVersion":"1.2.3","sessionCatalogSync":1,"artifacts":true,"promptStatus":true,"vision":false,
			"modelReady":true,"model":"m","protocol":1}`,
		"demo": `{"backend":"demo","bridgeVersion":"1.2.3","sessionCatalogSync":1,"sessionCatalogPageIndex":1,"sessionActivity":1,
			"artifacts":true,"promptStatus":true,"vision":false,"projects":true,"fastMode":true,"sessionPermissions":true,
			"sessionArchive":true,"modelReady":true,"model":"m"}`,
	} {
		t.Run(backend, func(t *testing.T) {
			w := begin(t, backend)
			w.f.health.DeviceScope = true
			w.f.health.Status.ModelID = "m"
			w.f.health.Capabilities = []runtime.Capability{runtime.CapabilityProjects, runtime.CapabilityManagement, runtime.CapabilitySetSettings, runtime.CapabilityArchive}
			same(t, w.ask("health", `{}`), want)
			same(t, w.ask("connect", ``), want)
		})
	}
}

func TestHealthOffersOnlyWhatTheRuntimeCanDo(t *testing.T) {
	w := begin(t, "codex")
	w.f.health.Status.Features = []string{"desktop"}
	w.f.health.ProjectName = "openphone"
	same(t, w.ask("health", `{}`), `{"backend":"codex","bridgeVersion":"1.2.3","sessionCatalogSync":1,"sessionCatalogPageIndex":1,
		"sessionActivity":1,"artifacts":true,"promptStatus":true,"vision":true,"projects":false,"modelReady":true,"project":"openphone",
		"desktopConnected":true}`)
	w.f.health.Status.Condition, w.f.health.Status.Reason = runtime.ConditionDegraded, codes.RuntimeLoginRequired
	if got := w.ask("health", `{}`); !strings.Contains(got, `"modelReady":false`) {
		t.Errorf("degraded: %s", got)
	}
	w.f.health.Status.Condition, w.f.health.Status.Reason = runtime.ConditionUnavailable, codes.RuntimeMissing
	w.refused("health", `{}`, codes.RuntimeMissing)
	w.f.health.Status = runtime.Status{Condition: runtime.Condition(99)}
	w.refused("health", `{}`, codes.RuntimeUnavailable)
}

func TestVersionThatIsNoVersionIsLeftOut(t *testing.T) {
	rules.Covers(t, "PROTO-03")
	for _, v := range []string{"", strings.Repeat("9", 129), "1\n2"} {
		f := &fakeService{health: sessions.Health{Status: runtime.Status{Condition: runtime.ConditionReady}}}
		w := &world{t: t, d: New(Options{Backend: "pi", Service: f, Version: v}), f: f, p: &fakePeer{}}
		if got := w.ask("health", "{}"); strings.Contains(got, "bridgeVersion") {
			t.Errorf("%q: %s", v, got)
		}
	}
}

// The table of §3.2: who serves what.
func TestMethodSupport(t *testing.T) {
	unsupported := map[string]string{
		"codex":       "clawket.files.list clawket.files.read nope",
		"claude-code": "sessions.archive sessions.archived chat.steer models.thinking models.fast models.permissions skills.list profile.usage clawket.files.list",
		"pi":          "projects.list sessions.activity sessions.archive sessions.archived approvals.list approvals.resolve models.thinking models.fast models.permissions profile.usage",
		"demo":        "profile.usage clawket.files.read",
	}
	for _, backend := range backends {
		w := begin(t, backend)
		for _, method := range strings.Fields(unsupported[backend]) {
			w.refused(method, `{}`, codes.MethodUnsupported)
		}
	}
}

func TestCase33UpdatesAreNeverStartedFromAPhone(t *testing.T) {
	rules.Covers(t, "UPD-02")
	for _, backend := range backends {
		w := begin(t, backend)
		for _, params := range []string{`{}`, `{"force":true}`, ``} {
			w.refused("bridge.update.start", params, codes.UpdateNotOffered)
			w.refused("bridge.update.status", params, codes.UpdateNotOffered)
			w.refused("bridge.stop", params, codes.MethodUnsupported)
		}
		if got := w.ask("health", `{}`); strings.Contains(got, "remoteUpdate") {
			t.Errorf("%s: %s", backend, got)
		}
	}
}

// No sentence of the registry, and none a plugin can make of it, may look to an app like the end of its pairing.
func TestNoSentenceLogsAPhoneOut(t *testing.T) {
	trigger := regexp.MustCompile(`(?i)pairing[_ ]required|auth[_ ](rejected|required)|unauthorized|invalid[_ ]token|token[_ ]revoked|permission[_ ]denied`)
	path := regexp.MustCompile(`(^|\s)(/|[A-Za-z]:\\)`)
	for _, backend := range backends {
		w := begin(t, backend)
		w.ask("health", `{}`)
		for _, info := range codes.All() {
			f := w.d.Failure(codes.New(info.Code, "limit", "7"))
			if trigger.MatchString(f.Code+" "+f.Message) || path.MatchString(f.Message) || f.Message == "" {
				t.Errorf("%s: %+v", info.Code, f)
			}
			if f.Code != backend+"_error" {
				t.Errorf("%s has the code %s", info.Code, f.Code)
			}
		}
		for name, err := range map[string]error{
			"a native text":          fmt.Errorf("permission denied: /home/user/x"),
			"a hostile parameter":    codes.New(codes.RuntimeTooOld, "found", "unauthorized", "needed", "Token Revoked"),
			"an unknown code":        codes.New("pairing_required"),
			"a code with a cause":    codes.New(codes.Internal).Because(fmt.Errorf("invalid_token /root")),
			"a phrase of the plugin": codes.New("demo.tired", "what", "auth required"),
		} {
			f := w.d.Failure(err)
			if trigger.MatchString(f.Code+" "+f.Message) || path.MatchString(f.Message) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if f := w.d.Failure(codes.New("demo.tired", "what", "waiting")); f.Message != "It is tired of waiting." {
			t.Errorf("phrase: %+v", f)
		}
	}
}

// The app keeps the text of a prompt and opens its permission sheet on exactly these two messages.
func TestPermissionMessagesPassVerbatim(t *testing.T) {
	w := begin(t, "codex")
	for code, want := range map[string]string{
		codes.PermissionsNotRestored: "Codex did not restore the conversation permissions. Select and confirm permissions before sending.",
		codes.PermissionsUnverified:  "The previous conversation permissions cannot be verified safely. Select and confirm permissions before sending.",
	} {
		if f := w.d.Failure(codes.New(code)); f != (clawket.Failure{Code: "codex_error", Message: want}) {
			t.Errorf("got %+v", f)
		}
	}
}

func TestAgents(t *testing.T) {
	for backend, want := range map[string]string{
		"codex": `[{"connectionId":"","agentId":"codex","name":"Agent","isMain":true,"mainSessionKey":"","entryMode":"sessions"}]`,
		"pi":    `[{"connectionId":"","agentId":"pi","name":"Agent","isMain":true,"mainSessionKey":"k1"}]`,
	} {
		w := begin(t, backend)
		if backend == "pi" {
			w.f.health.Description.SessionLayout = runtime.SessionLayoutMainAndMany
		}
		w.f.rows = []sessions.Row{{Key: "k0"}, {Key: "k1", Kind: runtime.SessionKindMain}}
		same(t, w.ask("agents.list", `{}`), want)
	}
}

func TestProjects(t *testing.T) {
	w := begin(t, "codex")
	same(t, w.ask("projects.list", `{}`), `[{"id":"p1","name":"one","path":"/one","available":true},{"id":"p2","name":"gone","path":"/gone","available":false}]`)
}

func TestManagement(t *testing.T) {
	for _, c := range []struct {
		backend, params, code string
		created               []string
	}{
		{"codex", `{"title":"` + repeat("é", 201) + `","projectId":"p1"}`, "", []string{repeat("é", 200), "p1", ""}},
		{"codex", `{}`, "", []string{"", "", ""}},
		{"codex", `{"title":null}`, "", []string{"", "", ""}},
		{"codex", `{"title":7}`, codes.ParamsInvalid, nil},
		{"claude-code", `{"title":"` + repeat("x", 301) + `"}`, codes.TitleInvalid, nil},
		{"claude-code", `{"title":"  "}`, codes.TitleInvalid, nil},
		{"claude-code", `{"title":"t","fromSession":"s"}`, "", []string{"t", "", "s"}},
		{"claude-code", `{"projectId":"p","fromSession":"s"}`, codes.ParamsInvalid, nil},
		{"pi", `{"title":"` + repeat("😀", 101) + `"}`, "", []string{repeat("😀", 100), "", ""}},
	} {
		w := begin(t, c.backend)
		if _, err := w.try("sessions.create", c.params); codes.Of(err) != c.code {
			t.Errorf("%s %.40s: %v", c.backend, c.params, err)
		}
		if fmt.Sprint(w.f.created) != fmt.Sprint(c.created) {
			t.Errorf("%s %.40s: created %q", c.backend, c.params, w.f.created)
		}
	}
	w := begin(t, "codex")
	w.refused("sessions.rename", `{"sessionKey":"s","title":" "}`, codes.TitleInvalid)
	w.refused("sessions.rename", `{"sessionKey":"s","title":"`+repeat("x", 201)+`"}`, codes.TitleInvalid)
	w.refused("sessions.rename", `{"title":"x"}`, codes.ParamsInvalid)
	w.refused("sessions.rename", `{"sessionKey":"","title":"x"}`, codes.ParamsInvalid)
	w.refused("sessions.rename", `{"sessionKey":"`+repeat("k", 1025)+`","title":"x"}`, codes.ParamsInvalid)
	same(t, w.ask("sessions.rename", `{"sessionKey":"s","title":"`+repeat("x", 200)+`"}`), `{"ok":true}`)
	w.refused("sessions.archive", `{"sessionKey":"s","archived":"yes"}`, codes.ParamsInvalid)
	for _, call := range []string{`sessions.archive {"sessionKey":"s","archived":true}`, `sessions.reset {"sessionKey":"s"}`, `sessions.delete {"sessionKey":"s"}`} {
		method, params, _ := strings.Cut(call, " ")
		same(t, w.ask(method, params), `{"ok":true}`)
	}
}

func image(mime, content string) string {
	return `{"type":"image","mimeType":"` + mime + `","content":"` + content + `"}`
}

func images(n int) string {
	return strings.TrimSuffix(strings.Repeat(image("image/png", "iVBORw0KGgo=")+",", n), ",")
}

func TestCase19PromptLimits(t *testing.T) {
	long := func(n int) string { return repeat("x", n) }
	ok := ""
	for _, c := range []struct{ name, backend, params, want string }{
		{"7 images", "codex", `"text":"t","attachments":[` + images(7) + `]`, codes.AttachmentsTooMany},
		{"6 images", "codex", `"text":"t","attachments":[` + images(6) + `]`, ok},
		{"9 images", "pi", `"text":"t","attachments":[` + images(9) + `]`, codes.AttachmentsTooMany},
		{"8 images", "pi", `"text":"t","attachments":[` + images(8) + `]`, ok},
		{"5 images", "claude-code", `"text":"t","attachments":[` + images(5) + `]`, codes.AttachmentsTooMany},
		{"base64 above 5 MiB", "claude-code", `"text":"t","attachments":[` + image("image/png", long(5<<20+4)) + `]`, codes.AttachmentTooLarge},
		{"text at the limit", "codex", `"text":"` + long(128000) + `"`, ok},
		{"text above", "codex", `"text":"` + long(128001) + `"`, codes.PromptTooLong},
		{"text above", "pi", `"text":"` + long(128001) + `"`, codes.PromptTooLong},
		{"text at the limit", "claude-code", `"text":"` + long(200000) + `"`, ok},
		{"text above", "claude-code", `"text":"` + long(200001) + `"`, codes.PromptTooLong},
		{"limit counts UTF-16 units", "codex", `"text":"` + repeat("😀", 64001) + `"`, codes.PromptTooLong},
		{"svg", "codex", `"text":"t","attachments":[` + image("image/svg+xml", "iVBORw0KGgo=") + `]`, codes.AttachmentUnsupported},
		{"a file", "codex", `"text":"t","attachments":[{"type":"file","mimeType":"image/png","content":"iVBORw0KGgo="}]`, codes.AttachmentUnsupported},
		{"base64 with a dash", "codex", `"text":"t","attachments":[` + image("image/png", "iVBORw0-") + `]`, codes.AttachmentMalformed},
		{"base64 with a newline", "codex", `"text":"t","attachments":[` + image("image/png", `iVBO\nRw0K`) + `]`, codes.AttachmentMalformed},
		{"base64 with a space", "codex", `"text":"t","attachments":[` + image("image/png", `iVBO Rw0K`) + `]`, codes.AttachmentMalformed},
		{"base64 with padding inside", "codex", `"text":"t","attachments":[` + image("image/png", `iV==iVBO`) + `]`, codes.AttachmentMalformed},
		{"base64 with three paddings", "codex", `"text":"t","attachments":[` + image("image/png", `iVBORw===`) + `]`, codes.AttachmentMalformed},
		{"base64 without padding", "codex", `"text":"t","attachments":[` + image("image/png", "iVBORw0KGgo") + `]`, ok},
		{"empty base64", "claude-code", `"text":"t","attachments":[` + image("image/png", "") + `]`, codes.AttachmentMalformed},
		{"content a number", "codex", `"text":"t","attachments":[{"type":"image","mimeType":"image/png","content":5}]`, codes.AttachmentMalformed},
		{"attachment null", "codex", `"text":"t","attachments":[null]`, codes.AttachmentMalformed},
		{"attachments an object", "codex", `"text":"t","attachments":{}`, codes.AttachmentMalformed},
		{"thinking level", "claude-code", `"text":"t","thinkingLevel":"high"`, codes.ParamsInvalid},
		{"skill", "claude-code", `"text":"t","skillId":"s"`, codes.ParamsInvalid},
		{"thinking level", "pi", `"text":"t","thinkingLevel":"high"`, ok},
		{"skill is ignored", "pi", `"text":"t","skillId":"s"`, ok},
		{"nothing", "codex", `"text":""`, codes.PromptEmpty},
		{"nothing at all", "codex", ``, codes.PromptEmpty},
		{"only an image", "codex", `"text":"","attachments":[` + images(1) + `]`, ok},
		{"text a number", "codex", `"text":1`, codes.ParamsInvalid},
	} {
		t.Run(c.backend+" "+c.name, func(t *testing.T) {
			w := begin(t, c.backend)
			params := strings.TrimSuffix(`{"sessionKey":"s","idempotencyKey":"k",`+c.params, ",") + `}`
			if _, err := w.try("chat.send", params); codes.Of(err) != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if (len(w.f.sent) == 1) != (c.want == ok) {
				t.Errorf("%d prompts were passed on", len(w.f.sent))
			}
		})
	}
	for _, c := range []struct{ backend, key, want string }{
		{"codex", ``, codes.KeyInvalid},
		{"codex", repeat("k", 201), codes.KeyInvalid},
		{"codex", repeat("k", 200), ok},
		{"codex", "__proto__", ok},
		{"claude-code", "  ", codes.KeyInvalid},
		{"codex", "  ", ok},
	} {
		w := begin(t, c.backend)
		if _, err := w.try("chat.send", `{"sessionKey":"s","text":"t","idempotencyKey":"`+c.key+`"}`); codes.Of(err) != c.want {
			t.Errorf("%s key %.20q: got %v, want %q", c.backend, c.key, err, c.want)
		}
	}
	w := begin(t, "codex")
	w.refused("chat.send", `{"sessionKey":"s","text":"t"}`, codes.KeyInvalid)
	w.refused("chat.send", `{"text":"t","idempotencyKey":"k"}`, codes.ParamsInvalid)
}

func TestPromptIsPassedOnAsItCame(t *testing.T) {
	w := begin(t, "demo")
	same(t, w.ask("chat.send", `{"sessionKey":"s","text":"  a\n","idempotencyKey":"k","thinkingLevel":"low","attachments":[{"type":"image","mimeType":"image/gif","content":"aGk=","name":"../x/a.gif"}]}`), `{"runId":"run-1"}`)
	in := w.f.sent[0]
	if in.Text != "  a\n" || in.IdempotencyKey != "k" || in.Thinking != "low" || in.SessionKey != "s" || len(in.Attachments) != 1 {
		t.Errorf("got %+v", in)
	}
	if a := in.Attachments[0]; a.Name != "a.gif" || a.MIME != "image/gif" || string(a.Data) != "hi" {
		t.Errorf("got %+v", a)
	}
}

func TestFingerprintVectors(t *testing.T) {
	for _, c := range []struct{ name, backend, params, want string }{
		{"whole params", "codex", `{"sessionKey":"s-1","text":"hello","idempotencyKey":"k-1"}`, "eb3aba230d49e50af3c7cfc98e472bab65920bd1d0beddf3c2391adc45849a83"},
		{"white space does not count", "pi", ` { "sessionKey" : "s-1" , "text":"hel\u006co", "idempotencyKey":"k-1" }`, "eb3aba230d49e50af3c7cfc98e472bab65920bd1d0beddf3c2391adc45849a83"},
		{"text and attachments", "claude-code", `{"sessionKey":"s-1","text":"hello","idempotencyKey":"k-1"}`, "29838f8b4e1ac260deb52e17b31bfc845a5b30c7ee007918089cff72c797a831"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := begin(t, c.backend)
			w.ask("chat.send", c.params)
			if got := w.f.sent[0].Fingerprint; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	w := begin(t, "codex")
	w.ask("chat.send", `{"text":"hello","sessionKey":"s-1","idempotencyKey":"k-1"}`)
	w.ask("chat.send", `{"sessionKey":"s-1","text":"<hello>","idempotencyKey":"k-1"}`)
	if w.f.sent[0].Fingerprint == w.f.sent[1].Fingerprint || w.f.sent[0].Fingerprint == "eb3aba230d49e50af3c7cfc98e472bab65920bd1d0beddf3c2391adc45849a83" {
		t.Error("another order or another text has the same fingerprint")
	}
	if got := hash("k-1"); got != "7c35c5a1785d20704e44d5de4beb81c1fce91b6fe48ed7c3159af6f7f832078b" {
		t.Errorf("key hash %s", got)
	}
}

func TestNativeKeys(t *testing.T) {
	if got := NativeKey("codex")("0199-abc"); got != "native:0199-abc" {
		t.Error(got)
	}
	if got := NativeKey("demo")("x"); got != "native:2d711642b726b04401627ca9fbac32f5" {
		t.Error(got)
	}
	if got := NativeKey("pi")("x"); got != "native-2d711642b726b04401627ca9" {
		t.Error(got)
	}
}

func TestPromptStatus(t *testing.T) {
	rules.Covers(t, "SYNC-12")
	for _, backend := range backends {
		w := begin(t, backend)
		w.f.recorded = map[string]string{"k": "run-1", "__proto__": "run-2"}
		same(t, w.ask("chat.promptStatus", `{"sessionKey":"s","idempotencyKey":"k"}`), `{"status":"recorded","runId":"run-1"}`)
		same(t, w.ask("chat.promptStatus", `{"sessionKey":"s","idempotencyKey":"__proto__"}`), `{"status":"recorded","runId":"run-2"}`)
		same(t, w.ask("chat.promptStatus", `{"sessionKey":"s","idempotencyKey":"other"}`), `{"status":"unknown"}`)
		w.refused("chat.promptStatus", `{"sessionKey":"s","idempotencyKey":""}`, codes.ParamsInvalid)
		w.f.err = codes.New(codes.SessionUnknown)
		if backend == "codex" {
			w.refused("chat.promptStatus", `{"sessionKey":"s","idempotencyKey":"k"}`, codes.SessionUnknown)
		} else {
			same(t, w.ask("chat.promptStatus", `{"sessionKey":"s","idempotencyKey":"k"}`), `{"status":"unknown"}`)
		}
	}
}

func TestCase23Abort(t *testing.T) {
	for backend, want := range map[string][2]string{
		"codex": {`{"ok":true}`, `{"ok":true}`}, "pi": {`{"ok":true}`, `{"ok":true}`}, "demo": {`{"ok":true}`, `{"ok":true}`},
		"claude-code": {`{"ok":true,"completed":false}`, ""},
	} {
		w := begin(t, backend)
		w.f.ran = true
		same(t, w.ask("chat.abort", `{"sessionKey":"s","runId":"r"}`), want[0])
		w.f.ran = false
		if want[1] == "" {
			w.refused("chat.abort", `{"sessionKey":"s"}`, codes.RunNotActive)
		} else {
			same(t, w.ask("chat.abort", `{"sessionKey":"s"}`), want[1])
		}
		w.f.err = codes.New(codes.RunNotActive)
		w.refused("chat.abort", `{"sessionKey":"s","runId":"wrong"}`, codes.RunNotActive)
		w.refused("chat.abort", `{"sessionKey":"s","runId":5}`, codes.ParamsInvalid)
	}
}

func TestSteer(t *testing.T) {
	w := begin(t, "codex")
	same(t, w.ask("chat.steer", `{"sessionKey":"s","runId":"r","text":" more "}`), `{"ok":true}`)
	if w.f.steered != "s r  more " {
		t.Errorf("got %q", w.f.steered)
	}
	w.refused("chat.steer", `{"sessionKey":"s","runId":"r","text":"  "}`, codes.PromptEmpty)
	w.refused("chat.steer", `{"sessionKey":"s","runId":"r","text":"`+repeat("x", 128001)+`"}`, codes.PromptTooLong)
	w.refused("chat.steer", `{"sessionKey":"s","text":"x"}`, codes.ParamsInvalid)
}

func TestArtifacts(t *testing.T) {
	rules.Covers(t, "ART-03")
	id := "file_" + repeat("0a", 32)
	w := begin(t, "codex")
	same(t, w.ask("clawket.artifacts.open", `{"sessionKey":"s","artifactId":"`+id+`"}`), `{"id":"`+id+`","name":"r.pdf","size":5,"mimeType":"application/pdf"}`)
	for _, bad := range []string{"file_/etc/x", "file_" + repeat("0A", 32), "file_" + repeat("0a", 31), ""} {
		w.refused("clawket.artifacts.open", `{"sessionKey":"s","artifactId":"`+bad+`"}`, codes.ArtifactUnknown)
		w.refused("clawket.artifacts.read", `{"sessionKey":"s","id":"`+bad+`","offset":0}`, codes.ArtifactUnknown)
	}
	w.refused("clawket.artifacts.open", `{"artifactId":"`+id+`"}`, codes.ParamsInvalid)
	content := []byte(repeat("0123456789", 30000))
	w.f.pieces = func(offset int64) (*sessions.ArtifactPiece, error) {
		end := min(offset+clawket.ArtifactPiece, int64(len(content)))
		return &sessions.ArtifactPiece{Offset: offset, Total: int64(len(content)), Data: content[offset:end], Done: end == int64(len(content))}, nil
	}
	got := w.ask("clawket.artifacts.read", `{"sessionKey":"s","id":"`+id+`","offset":262144}`)
	same(t, got, `{"offset":262144,"total":300000,"done":true,"data":"`+base64.StdEncoding.EncodeToString(content[262144:])+`"}`)
	for _, bad := range []string{"1", "-131072", "1.5", `"0"`, "null"} {
		if _, err := w.try("clawket.artifacts.read", `{"sessionKey":"s","id":"`+id+`","offset":`+bad+`}`); err == nil {
			t.Errorf("offset %s was taken", bad)
		}
	}
}

func TestSkills(t *testing.T) {
	w := begin(t, "codex")
	w.f.rows = []sessions.Row{{Key: "s", Project: &sessions.Project{Path: "/projects/openphone"}}}
	w.f.skills = []runtime.Skill{{SkillID: "id", Name: "fix", Description: "d", Invocation: "$fix "}}
	same(t, w.ask("skills.list", `{"sessionKey":"s"}`), `{"workspaceDir":"openphone","managedSkillsDir":"","skills":[{"name":"fix","description":"d",
		"invocation":"$fix ","source":"codex","bundled":false,"filePath":"","baseDir":"","skillKey":"id","always":false,"disabled":false,
		"blockedByAllowlist":false,"eligible":true,"deletable":false,"requirements":{},"missing":{},"configChecks":[],"install":[]}]}`)
	w.refused("skills.list", `{"sessionKey":"other"}`, codes.SessionUnknown)
	for range 600 {
		w.f.skills = append(w.f.skills, runtime.Skill{SkillID: "x"})
	}
	if got := strings.Count(w.ask("skills.list", `{}`), `"skillKey"`); got != clawket.MaxSkills {
		t.Errorf("%d skills", got)
	}
}
