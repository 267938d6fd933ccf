package openphone

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/openphone-host/openphone/internal/rules"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The shapes accept what the protocol says and refuse what it forbids.
func TestShapes(t *testing.T) {
	t.Parallel()
	surface := `{"schema":"openphone.surface.v1","surface_id":"surface-1","revision":1,"session_id":"s","runtime":"codex","title":"T","presentation":"sheet","expires_at":0,"sensitivity":"public","body":{},"actions":[]}`
	for _, c := range []struct {
		name, shape, text string
		ok                bool
	}{
		{"a tool request", "toolRequest", `{"request_id":"r","runtime":"openclaw","runtime_session_id":"k","tool":"openphone.ui.tap","params":{"x":1},"anything":true}`, true},
		{"a tool request without parameters", "toolRequest", `{"request_id":"r","runtime":"openclaw","runtime_session_id":"k","tool":"openphone.ui.tap"}`, false},
		{"a wait of nothing", "toolRequest", `{"request_id":"r","runtime":"openclaw","runtime_session_id":"k","tool":"t","params":{},"timeout_ms":0}`, false},
		{"a result", "toolResult", `{"request_id":"r","status":"ok","requires_confirmation":false,"result":{}}`, true},
		{"a result of an unknown status", "toolResult", `{"request_id":"r","status":"maybe","requires_confirmation":false}`, false},
		{"an attention request", "attentionRequest", `{"runtime":"builtin","phone_session_id":"phone-sess-1","attention_id":"attn-1","source":"chat","text":"Hi","autonomy":"observe_only","context":{}}`, true},
		{"an attention request without text", "attentionRequest", `{"runtime":"builtin","phone_session_id":"phone-sess-1","attention_id":"attn-1","source":"chat","text":"","autonomy":"observe_only"}`, false},
		{"an unknown level", "attentionRequest", `{"runtime":"builtin","phone_session_id":"phone-sess-1","attention_id":"attn-1","source":"chat","text":"Hi","autonomy":"yolo"}`, false},
		{"an output", "assistantOutput", `{"schema":"openphone.assistant_output.v1","session_id":"s","speech":"","text":"Hi","surface":null,"background_run":null}`, true},
		{"an output with a surface", "assistantOutput", `{"schema":"openphone.assistant_output.v1","session_id":"s","speech":"","text":"Hi","surface":` + surface + `}`, true},
		{"an output with something else", "assistantOutput", `{"schema":"openphone.assistant_output.v1","session_id":"s","speech":"","text":"Hi","html":"<b>"}`, false},
		{"a surface of revision 0", "adaptiveSurface", strings.Replace(surface, `"revision":1`, `"revision":0`, 1), false},
		{"a surface under a wrong id", "adaptiveSurface", strings.Replace(surface, `surface-1`, `panel-1`, 1), false},
		{"a range", "protocolRange", `{"name":"openphone-runtime-protocol","min_version":1,"max_version":1}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Shape(c.shape)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(decode(t, c.text)); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Shape("nothing"); err == nil {
		t.Error("a shape that does not exist")
	}
}

// The manifests have the shapes that the schema file gives them, and what it says of them is what the loader demands.
func TestManifestShapes(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-11")
	for i, shape := range []string{"commandManifest", "eventManifest", "capabilityManifest"} {
		s, err := Shape(shape)
		if err != nil {
			t.Fatal(err)
		}
		f := builtinFiles(t)[i]
		if err := s.Validate(decode(t, string(f.Data))); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		// A member that the schema requires is required by the loader too, and the other way round.
		var m map[string]any
		if err := json.Unmarshal(f.Data, &m); err != nil {
			t.Fatal(err)
		}
		entry := m[[]string{"commands", "events", "capabilities"}[i]].([]any)[0].(map[string]any)
		for k, v := range entry {
			delete(entry, k)
			text, _ := json.Marshal(m)
			_, refused := Load(text)
			if err := s.Validate(decode(t, string(text))); (err == nil) != (refused == nil) {
				t.Errorf("without %s: the schema says %v, the loader %v", k, err, refused)
			}
			entry[k] = v
		}
	}
}

// The values Go knows are those of the schema file.
func TestValuesOfSchema(t *testing.T) {
	t.Parallel()
	type property struct {
		Enum []string `json:"enum"`
	}
	var schema struct {
		Defs map[string]struct {
			property
			Properties map[string]property `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	command, event := schema.Defs["command"].Properties, schema.Defs["event"].Properties
	got := map[string][]string{
		"risk": schema.Defs["risk"].Enum, "command risk": command["risk"].Enum, "confirmation": command["confirmation"].Enum,
		"default_exposure": command["default_exposure"].Enum, "direction": event["direction"].Enum,
	}
	want := map[string][]string{
		"risk":             {string(RiskLow), string(RiskMedium), string(RiskHigh), string(RiskCritical)},
		"command risk":     {string(RiskLow), string(RiskMedium), string(RiskHigh)},
		"confirmation":     {string(AskNever), string(AskBeforeAction), string(AskAlways)},
		"default_exposure": {string(ExposureSafeRead), string(ExposurePrivateRead), string(ExposureDangerous)},
		"direction":        {string(PhoneToRuntime), string(RuntimeToPhone), string(Bidirectional)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(Supported())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Shape("protocolRange"); err != nil || s.Validate(decode(t, string(text))) != nil {
		t.Errorf("%s is no protocolRange: %v", text, err)
	}
}

// The generated structs speak the wire's JSON: nothing is lost, absent stays absent, and zero is not absent.
func TestGeneratedTypes(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-11")
	for _, c := range []struct {
		name string
		into any
		text string
	}{
		{"parameters", new(UILongPressParams), `{"x":0,"y":10.5,"duration_ms":0,"reason":"look"}`},
		{"optional parameters", new(ScreenGetParams), `{"include_screenshot":false,"reason":"look"}`},
		{"objects", new(WatchersCreateParams), `{"title":"t","condition":{"a":[1]},"reason":"r"}`},
		{"a request", new(ToolRequest), `{"request_id":"r","runtime":"pi","runtime_session_id":"k","tool":"t","params":{},"timeout_ms":1,"caller":{"runtime":"pi","principal":"p"}}`},
		{"a result", new(ToolResult), `{"request_id":"r","status":"error","requires_confirmation":false,"error":{"code":"c"}}`},
		{"a confirmation", new(Confirmation), `{"confirmation_id":"c","request_id":"r","runtime":"pi","tool":"t","timeout_ms":1}`},
		{"an output", new(AssistantOutput), `{"schema":"openphone.assistant_output.v1","session_id":"s","speech":"","text":"Hi"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := json.NewDecoder(strings.NewReader(c.text))
			d.DisallowUnknownFields()
			if err := d.Decode(c.into); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(c.into)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, c.text), decode(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	c, ok := Commands().Command(CommandUILongPress)
	if !ok {
		t.Fatal("no command")
	}
	s, err := c.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	params, err := json.Marshal(UILongPressParams{X: 1, Y: 2, Reason: "look"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(decode(t, string(params))); err != nil {
		t.Error(err)
	}
	if err := s.Validate(decode(t, string(bytes.Replace(params, []byte(`"x":1`), []byte(`"x":"1"`), 1)))); err == nil {
		t.Error("a text is taken for a number")
	}
}
