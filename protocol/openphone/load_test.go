package openphone

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
)

// The manifests of this build hold what phones offer.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-11")
	names := map[string]bool{}
	risks, exposures := map[Risk]int{}, map[Exposure]int{}
	aliases, mcp, mutating := 0, 0, 0
	for _, c := range Commands().Commands {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if names[n] {
				t.Errorf("%s stands twice", n)
			}
			names[n] = true
			if got, ok := Commands().Command(n); !ok || got.Name != c.Name {
				t.Errorf("%s does not lead to %s", n, c.Name)
			}
		}
		aliases += len(c.Aliases)
		risks[c.Risk]++
		exposures[c.Exposure]++
		if c.MCP {
			mcp++
		}
		if c.Mutating() {
			mutating++
		}
		if (c.Confirmation == AskAlways) != c.Risk.High() {
			t.Errorf("%s: confirmation %s with risk %s", c.Name, c.Confirmation, c.Risk)
		}
		if !c.RemoteRuntime || c.Deprecated {
			t.Errorf("%s is not offered to runtimes, or deprecated", c.Name)
		}
		if _, ok := Capabilities().Capability(c.Capability); !ok {
			t.Errorf("%s needs %s, which is not there", c.Name, c.Capability)
		}
		if _, err := c.Parameters(); err != nil {
			t.Error(err)
		}
	}
	got := map[string]any{
		"commands": len(Commands().Commands), "aliases": aliases, "names": len(names), "mcp": mcp, "mutating": mutating, "risks": risks, "exposures": exposures,
		"events": len(Events().Events), "capabilities": len(Capabilities().Capabilities),
	}
	want := map[string]any{
		"commands": 37, "aliases": 18, "names": 55, "mcp": 35, "mutating": 24, "events": 18, "capabilities": 25,
		"risks":     map[Risk]int{RiskLow: 8, RiskMedium: 25, RiskHigh: 4},
		"exposures": map[Exposure]int{ExposureSafeRead: 4, ExposurePrivateRead: 9, ExposureDangerous: 24},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c, ok := Commands().Command("canvas.snapshot"); !ok || c.Name != CommandScreenGet {
		t.Errorf("canvas.snapshot leads to %+v", c)
	}
	if _, ok := Commands().Command("system.run"); ok {
		t.Error("a name from elsewhere is found")
	}
	if e, ok := Events().Event(EventRuntimeConfirmationRequired); !ok || e.Direction != PhoneToRuntime {
		t.Errorf("event %+v", e)
	}
	if _, ok := Events().Command(EventRuntimeToolRequested); ok {
		t.Error("an event is taken for a command")
	}
}

// small is a manifest of two commands; edit changes the document before it is encoded.
func small(edit func(m map[string]any, first, second map[string]any)) []byte {
	object := map[string]any{"type": "object", "properties": map[string]any{"reason": map[string]any{"type": "string"}}, "required": []any{"reason"}}
	command := func(name string, aliases ...any) map[string]any {
		return map[string]any{
			"name": name, "aliases": aliases, "android_tool": "tool", "category": "screen", "risk": "low", "capability": "screen.read.visible",
			"confirmation": "none", "default_exposure": "safe_read", "mcp": true, "remote_runtime": true, "description": "Does it.",
			"input_schema": object, "output_schema": map[string]any{"type": "object"},
		}
	}
	first, second := command("openphone.one", "one"), command("openphone.two", "two", "deux")
	m := map[string]any{"version": 1, "commands": []any{first, second}}
	if edit != nil {
		edit(m, first, second)
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

func TestLoadVersion(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-12")
	for _, c := range []struct {
		name, version string // JSON text; empty: no version
		versions      Range
		want          string
	}{
		{"one", "1", Supported(), ""},
		{"a text", `"1"`, Supported(), `version is "1"; the supported versions are the integers 1 to 1`},
		{"a fraction", "1.5", Supported(), "version is 1.5; the supported versions are the integers 1 to 1"},
		{"an integer written as a fraction", "1.0", Supported(), "version is 1.0; the supported versions are the integers 1 to 1"},
		{"null", "null", Supported(), "version is null; the supported versions are the integers 1 to 1"},
		{"true", "true", Supported(), "version is true; the supported versions are the integers 1 to 1"},
		{"absent", "", Supported(), "version is missing; the supported versions are the integers 1 to 1"},
		{"too old", "0", Supported(), "version is 0; the supported versions are the integers 1 to 1"},
		{"too new", "99", Supported(), "version is 99; the supported versions are the integers 1 to 1"},
		{"beyond any integer", "99999999999999999999", Supported(), "version is 99999999999999999999; the supported versions are the integers 1 to 1"},
		{"the last of a wider range", "3", Range{MinVersion: 1, MaxVersion: 3}, ""},
		{"beyond a wider range", "4", Range{MinVersion: 2, MaxVersion: 3}, "version is 4; the supported versions are the integers 2 to 3"},
		{"before a narrower range", "1", Range{MinVersion: 2, MaxVersion: 3}, "version is 1; the supported versions are the integers 2 to 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := small(func(m, _, _ map[string]any) {
				m["version"] = json.RawMessage(c.version)
				if c.version == "" {
					delete(m, "version")
				}
			})
			m, err := LoadIn(data, c.versions)
			got := ""
			if err != nil {
				got = err.Error()
				if m != nil {
					t.Error("a refused manifest was handed out")
				}
				_, got, _ = strings.Cut(got, ": ")
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	// The version stands in the same place in every kind of manifest.
	for _, text := range []string{`{"version":2,"events":[]}`, `{"version":2,"capabilities":[]}`} {
		if _, err := Load([]byte(text)); err == nil || !strings.Contains(err.Error(), "version is 2; the supported versions are the integers 1 to 1") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What a later release adds does not disturb a reader of today.
func TestLoadAdditions(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-15")
	data := small(func(m, first, _ map[string]any) {
		m["deprecated"], m["superseded_by"], m["generated_at"] = true, "ifp1/", map[string]any{"by": "them"}
		first["latency_ms"], first["examples"] = 12, []any{map[string]any{"reason": "look"}}
		third := map[string]any{}
		for k, v := range first {
			third[k] = v
		}
		third["name"], third["aliases"], third["category"] = "openphone.three", []any{}, "wearables"
		m["commands"] = append(m["commands"].([]any), third)
	})
	m, err := Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Command("openphone.three"); !ok || len(m.Commands) != 3 {
		t.Errorf("got %d commands", len(m.Commands))
	}
	if v := Validate(File{Name: "f", Data: data}); v != nil {
		t.Error(v)
	}
	old, err := Load(small(nil))
	if err != nil {
		t.Fatal(err)
	}
	if v := Breaking(old, m); v != nil {
		t.Errorf("additions break: %v", v)
	}
	for _, text := range []string{
		`{"version":1,"events":[],"transport_mappings":[],"x":null}`,
		`{"version":1,"capabilities":[{"id":"a.b","risk":"low","description":"A.","icon":"b"}]}`,
	} {
		if _, err := Load([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want string
	}{
		{"no JSON", `{"version":1`, "#: this is not JSON in UTF-8"},
		{"nothing", ``, "#: this is not JSON in UTF-8"},
		{"no UTF-8", "{\"version\":1,\"commands\":[],\"x\":\"\xff\"}", "#: this is not JSON in UTF-8"},
		{"a list", `[1]`, "#: this has to be an object, and is [1]"},
		{"no list of anything", `{"version":1}`, "#: this file has no list of commands, events or capabilities"},
		{"two kinds", `{"version":1,"commands":[],"events":[]}`, "#/events: this file has commands already: one manifest lists one kind"},
		{"no array", `{"version":1,"commands":{}}`, "#/commands: commands has to be a list, and is {}"},
		{"an entry that is no object", `{"version":1,"commands":[7]}`, "#/commands/0: this has to be an object, and is 7"},
		{"two versions", `{"version":1,"version":1,"commands":[]}`, `#/version: "version" stands twice in this object`},
		{"another case is another name", `{"Version":1,"commands":[]}`, "#: version is missing; the supported versions are the integers 1 to 1"},
		{"too deep", `{"version":1,"commands":[],"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "#/x" + strings.Repeat("/0", 32) + ": this nests deeper than 32 levels"},
		{"an id twice", `{"version":1,"capabilities":[{"id":"a.b","risk":"low","description":"A."},{"id":"a.b","risk":"low","description":"A."}]}`, `#/capabilities/1/id: "a.b" stands twice: every name and alias belongs to one entry`},
		{"all at once", `{"version":2,"capabilities":[{"id":"","risk":3},{"id":"a.b","risk":"low"}]}`, "#/version: version is 2; the supported versions are the integers 1 to 1\n" +
			"#/capabilities/0/id: id is empty\n#/capabilities/0/risk: risk has to be a text, and is 3\n#/capabilities/0: description is missing\n#/capabilities/1: description is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := Load([]byte(c.text))
			if err == nil || m != nil {
				t.Fatal("it loaded")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "commands.json")
	if _, err := LoadFile(path); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	write := func(data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(small(nil))
	if m, err := LoadFile(path); err != nil || len(m.Commands) != 2 {
		t.Errorf("got %+v, %v", m, err)
	}
	write([]byte(`{"version":1}`))
	if _, err := LoadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+"#: ") {
		t.Errorf("the refusal does not name the file: %v", err)
	}
	write(make([]byte, MaxFile+1))
	if _, err := LoadFile(path); err == nil || !strings.Contains(err.Error(), "larger than 4194304 bytes") {
		t.Errorf("a huge file: %v", err)
	}
}

// A retired command is found under all its names and says what to use instead.
func TestDeprecated(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-18")
	m, err := Load(small(func(_, first, second map[string]any) {
		first["deprecated"], first["superseded_by"] = true, "openphone.two"
		second["deprecated"] = true
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"openphone.one": "openphone.one is deprecated: use openphone.two instead.",
		"one":           "openphone.one is deprecated: use openphone.two instead.",
		"deux":          "openphone.two is deprecated and will be removed.",
	} {
		c, ok := m.Command(name)
		if !ok || c.Notice() != want {
			t.Errorf("%s: got %+v, want %q", name, c, want)
		}
	}
	if c, _ := Commands().Command(CommandUITap); c.Notice() != "" {
		t.Error("a command in use says it is deprecated")
	}
}

// Values that this program does not know count as the dangerous ones.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	for r, want := range map[Risk]bool{RiskLow: false, RiskMedium: false, RiskHigh: true, RiskCritical: true, "extreme": true, "": true} {
		if r.High() != want {
			t.Errorf("risk %q: high is %v", r, !want)
		}
	}
	for e, want := range map[Exposure]bool{ExposureSafeRead: false, ExposurePrivateRead: false, ExposureDangerous: true, "public": true, "": true} {
		if (&Command{Exposure: e}).Mutating() != want {
			t.Errorf("exposure %q: mutating is %v", e, !want)
		}
	}
}
