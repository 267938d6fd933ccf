package openphone

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
)

func TestValidateBuiltin(t *testing.T) {
	t.Parallel()
	files := builtinFiles(t)
	if v := Validate(files...); v != nil {
		t.Errorf("together: %v", v)
	}
	for _, f := range files {
		if v := Validate(f); v != nil {
			t.Errorf("alone: %v", v)
		}
	}
}

// lines is what is wrong, one violation each.
func lines(v Violations) []string {
	var list []string
	for _, x := range v {
		list = append(list, x.String())
	}
	return list
}

func TestValidateCommands(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-17")
	type object = map[string]any
	for _, c := range []struct {
		name string
		edit func(m, first, second map[string]any)
		want []string
	}{
		{"nothing", nil, nil},
		{"a name twice", func(_, _, b object) { b["name"] = "openphone.one" }, []string{`f#/commands/1/name: "openphone.one" stands twice: every name and alias belongs to one entry`}},
		{"an alias that is taken", func(_, _, b object) { b["aliases"] = []any{"deux", "one"} }, []string{`f#/commands/1/aliases/1: "one" stands twice: every name and alias belongs to one entry`}},
		{"an alias that is a name", func(_, _, b object) { b["aliases"] = []any{"openphone.one"} }, []string{`f#/commands/1/aliases/0: "openphone.one" stands twice: every name and alias belongs to one entry`}},
		{"an unknown capability", func(_, a, _ object) { a["capability"] = "screen.write" }, []string{`f#/commands/0/capability: there is no capability "screen.write"`}},
		{"an unknown risk", func(_, a, _ object) { a["risk"] = "extreme" }, []string{`f#/commands/0/risk: there is no risk "extreme"; it is one of low, medium, high`}},
		{"a capability's risk", func(_, a, _ object) { a["risk"] = "critical" }, []string{`f#/commands/0/risk: there is no risk "critical"; it is one of low, medium, high`}},
		{"always without high", func(_, a, _ object) { a["confirmation"], a["default_exposure"] = "always", "dangerous" }, []string{`f#/commands/0/confirmation: confirmation "always" does not go with risk "low": always stands with high, and only there`}},
		{"high without always", func(_, a, _ object) {
			a["risk"], a["confirmation"], a["default_exposure"] = "high", "ask_before_action", "dangerous"
		}, []string{`f#/commands/0/confirmation: confirmation "ask_before_action" does not go with risk "high": always stands with high, and only there`}},
		{"an action that does not ask", func(_, a, _ object) { a["default_exposure"] = "dangerous" }, []string{`f#/commands/0/default_exposure: default_exposure "dangerous" does not go with confirmation "none": what acts is dangerous and asks, what reads does neither`}},
		{"a version that is a text", func(m, _, _ object) { m["version"] = "1" }, []string{`f#/version: version is "1"; the supported versions are the integers 1 to 1`}},
		{"a name of another family", func(_, a, _ object) { a["name"] = "system.run" }, []string{`f#/commands/0/name: "system.run" is no command name: openphone and lower-case words with dots between them, at most 64 bytes`}},
		{"nobody says why", func(_, a, _ object) { a["input_schema"] = object{"type": "object"} }, []string{`f#/commands/0/input_schema: a command has to require a "reason" of type string: the user is shown why it runs`}},

		// How a command is retired, each mistake with a sentence of its own.
		{"superseded without deprecated", func(_, a, _ object) { a["superseded_by"] = "openphone.two" }, []string{`f#/commands/0/superseded_by: superseded_by stands only beside deprecated: true`}},
		{"superseded and deprecated: false", func(_, a, _ object) { a["superseded_by"], a["deprecated"] = "openphone.two", false }, []string{`f#/commands/0/superseded_by: superseded_by stands only beside deprecated: true`}},
		{"superseded by nobody known", func(_, a, _ object) { a["superseded_by"], a["deprecated"] = "openphone.three", true }, []string{`f#/commands/0/superseded_by: there is no command "openphone.three"`}},
		{"superseded by itself", func(_, a, _ object) { a["superseded_by"], a["deprecated"] = "openphone.one", true }, []string{`f#/commands/0/superseded_by: openphone.one cannot supersede itself`}},
		{"superseded by its own alias", func(_, a, _ object) { a["superseded_by"], a["deprecated"] = "one", true }, []string{`f#/commands/0/superseded_by: "one" is an alias of openphone.one itself`}},
		{"superseded by an empty name", func(_, a, _ object) { a["superseded_by"], a["deprecated"] = "", true }, []string{`f#/commands/0/superseded_by: superseded_by is empty`}},
		{"deprecated is no truth value", func(_, a, _ object) { a["deprecated"] = "yes" }, []string{`f#/commands/0/deprecated: deprecated has to be true or false, and is "yes"`}},
		{"superseded by an alias of another", func(_, a, _ object) { a["superseded_by"], a["deprecated"] = "deux", true }, nil},
		{"deprecated alone", func(_, a, _ object) { a["deprecated"] = true }, nil},

		{"a schema that is none", func(_, a, _ object) { a["output_schema"] = object{"type": "thing", "required": "x"} }, []string{
			"f#/commands/0/output_schema/required: this is no JSON Schema: got string, want array",
			"f#/commands/0/output_schema/type: this is no JSON Schema: value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'",
		}},
		{"a schema that opens files", func(_, a, _ object) { a["output_schema"] = object{"$ref": "file:///etc/hostname"} }, []string{
			"f#/commands/0/output_schema: the schema refers to file:///etc/hostname, which is outside the manifests",
		}},
		{"a shape that does not exist", func(_, a, _ object) { a["output_schema"] = object{"$ref": schemaName + "#/$defs/gone"} }, []string{
			"f#/commands/0/output_schema: the schema refers to openphone-runtime.schema.json#/$defs/gone, which does not exist",
		}},
		{"several at once", func(m, a, b object) {
			delete(a, "android_tool")
			a["risk"] = "extreme"
			b["capability"], b["superseded_by"] = "screen.write", "nobody"
		}, []string{
			"f#/commands/0: android_tool is missing",
			`f#/commands/0/risk: there is no risk "extreme"; it is one of low, medium, high`,
			`f#/commands/1/capability: there is no capability "screen.write"`,
			"f#/commands/1/superseded_by: superseded_by stands only beside deprecated: true",
			`f#/commands/1/superseded_by: there is no command "nobody"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, lines(Validate(File{Name: "f", Data: small(c.edit)}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Events, capabilities and the schema file have rules of their own.
func TestValidateOthers(t *testing.T) {
	t.Parallel()
	files := builtinFiles(t)
	for _, c := range []struct {
		name     string
		file     int
		old, new string
		want     []string
	}{
		{"an event goes the wrong way", 1, "\"runtime.surface.dismiss\",\n      \"direction\": \"runtime_to_phone\"", "\"runtime.surface.dismiss\",\n      \"direction\": \"bidirectional\"", []string{
			"f#/events/14/direction: runtime.surface.dismiss goes runtime_to_phone",
		}},
		{"an unknown direction", 1, `"direction": "bidirectional"`, `"direction": "sideways"`, []string{
			`f#/events/11/direction: there is no direction "sideways"; it is one of phone_to_runtime, runtime_to_phone, bidirectional`,
		}},
		{"a surface event without a name on the wire", 1, `{"protocol": "phone.surface.dismissed",`, `{"protocol": "runtime.session.updated",`, []string{
			"f#/transport_mappings: the event phone.surface.dismissed has no name on a transport of openclaw",
		}},
		{"a name on the wire for no event", 1, `{"protocol": "runtime.presence.offline",`, `{"protocol": "runtime.presence.away",`, []string{
			`f#/transport_mappings/0/events/2/protocol: there is no event "runtime.presence.away"`,
		}},
		{"a name on the wire twice", 1, `"wire": "openphone.presence.offline"`, `"wire": "node.presence.alive"`, []string{
			`f#/transport_mappings/0/events/2/wire: "node.presence.alive" stands twice: a receiver could not tell which event it is`,
		}},
		{"an unknown risk of a capability", 2, `"risk": "critical"`, `"risk": "fatal"`, []string{
			`f#/capabilities/6/risk: there is no risk "fatal"; it is one of low, medium, high, critical`,
			`f#/capabilities/16/risk: there is no risk "fatal"; it is one of low, medium, high, critical`,
		}},
		{"an id that is none", 2, `"id": "apps.launch"`, `"id": "Apps"`, []string{
			`f#/capabilities/0/id: "Apps" is no id: lower-case words with dots between them, such as screen.read.visible`,
		}},
		{"another title", 3, Title, "Some Protocol", []string{`f#/title: the title has to be "OpenPhone Runtime Agent Protocol"`}},
		{"another dialect of schemas", 3, `https://json-schema.org/draft/2020-12/schema`, `http://json-schema.org/draft-07/schema#`, []string{
			`f#/$schema: $schema has to be "https://json-schema.org/draft/2020-12/schema"`,
		}},
		{"a concept under another name", 3, `"phoneSession": {`, `"deviceSession": {`, []string{"f#/$defs: the shape phoneSession is missing"}},
		{"a shape that is no schema", 3, `"minimum": 1, "maximum": 2147483647`, `"minimum": "1", "maximum": 2147483647`, []string{
			"f#/$defs/adaptiveSurface/properties/revision/minimum: this is no JSON Schema: got string, want number",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := bytes.ReplaceAll(files[c.file].Data, []byte(c.old), []byte(c.new))
			if bytes.Equal(data, files[c.file].Data) {
				t.Fatalf("nothing to change: %s is not there", c.old)
			}
			if diff := cmp.Diff(c.want, lines(Validate(File{Name: "f", Data: data}))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Files given together are looked up in each other.
func TestValidateTogether(t *testing.T) {
	t.Parallel()
	commands := File{"c", small(func(_, a, b map[string]any) { a["capability"], b["capability"] = "lamp.on", "lamp.on" })}
	lamps := File{"l", []byte(`{"version":1,"capabilities":[{"id":"lamp.on","risk":"low","description":"Light."}]}`)}
	if v := Validate(commands, lamps); v != nil {
		t.Error(v)
	}
	if v := Validate(lamps, commands, File{"x", []byte("{")}); len(v) != 1 || v[0].File != "x" {
		t.Error(v)
	}
	if v := Validate(commands); len(v) != 2 {
		t.Error(v)
	}
}

// Whatever is done to a manifest: what the validator accepts loads, and every name in it is found.
func TestAcceptedLoads(t *testing.T) {
	t.Parallel()
	const cases = 10_000
	values := []any{nil, true, false, 0, 1, 1.5, "", "1", "low", "high", "always", "dangerous", "openphone.one", "openphone.two", "one", []any{}, []any{"three"}, map[string]any{}}
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range cases {
		data := small(func(m, first, second map[string]any) {
			for range rng.IntN(3) {
				target := []map[string]any{m, first, second}[rng.IntN(3)]
				keys := make([]string, 0, len(target))
				for k := range target {
					keys = append(keys, k)
				}
				keys = append(keys, "deprecated", "superseded_by", "extra")
				k := keys[rng.IntN(len(keys))]
				if rng.IntN(4) == 0 {
					delete(target, k)
				} else {
					target[k] = values[rng.IntN(len(values))]
				}
			}
		})
		if Validate(File{Data: data}) != nil {
			continue
		}
		accepted++
		m, err := Load(data)
		if err != nil {
			t.Fatalf("accepted and refused: %s: %v", data, err)
		}
		for _, c := range m.Commands {
			for _, n := range append(c.Aliases, c.Name) {
				if got, ok := m.Command(n); !ok || got.Name != c.Name {
					t.Fatalf("%s is not found in %s", n, data)
				}
			}
		}
	}
	if accepted < cases/20 || accepted > cases*19/20 {
		t.Errorf("%d of %d accepted: the cases prove little", accepted, cases)
	}
}

func FuzzLoad(f *testing.F) {
	for _, file := range builtinFiles(f) {
		if file.Name != schemaName {
			f.Add(file.Data)
		}
	}
	f.Add(small(nil))
	f.Add([]byte(`{"version":1,"capabilities":[{"id":"a.b","risk":"low","description":"A."}]}`))
	f.Add([]byte(strings.Repeat("[", 5000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Load(data)
		if (m == nil) == (err == nil) {
			t.Fatalf("got %v and %v", m, err)
		}
		if err != nil {
			if v := Validate(File{Data: data}); v == nil {
				t.Fatalf("the validator accepts what is refused: %v", err)
			}
			return
		}
		if m.Version < MinVersion || m.Version > MaxVersion {
			t.Fatalf("version %d", m.Version)
		}
		if !json.Valid(data) {
			t.Fatal("loaded what is no JSON")
		}
	})
}
