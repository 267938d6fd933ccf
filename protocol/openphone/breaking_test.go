package openphone

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
)

// What breaks readers needs a higher version, and a command goes only after it was deprecated.
func TestBreakingCommands(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-16", "OP-18")
	type object = map[string]any
	retired := func(_, a, _ object) { a["deprecated"], a["superseded_by"] = true, "openphone.two" }
	gone := func(m, _, b object) { m["commands"] = []any{b} }
	schema := func(props object, required ...any) object {
		props["reason"] = object{"type": "string"}
		return object{"type": "object", "properties": props, "required": append([]any{"reason"}, required...)}
	}
	for _, c := range []struct {
		name     string
		old, now func(m, first, second object)
		want     string // without a higher version
		bumped   string // with one
	}{
		{"nothing", nil, nil, "", ""},
		{"a command is deprecated", nil, retired, "", ""},
		{"a command goes at once", nil, gone, "/commands: the command openphone.one is gone without a release in which it was deprecated", "/commands: the command openphone.one is gone without a release in which it was deprecated"},
		{"a deprecated command goes", retired, gone, "/commands: the command openphone.one is gone: raise the version", ""},
		{"a command is renamed", nil, func(_, a, _ object) { a["name"], a["aliases"] = "openphone.first", []any{"one", "openphone.one"} }, "/commands/0/name: the command openphone.one is now called openphone.first: raise the version", ""},
		{"an alias goes", nil, func(_, _, b object) { b["aliases"] = []any{"two"} }, `/commands/1/aliases: "deux" no longer names openphone.two: raise the version`, ""},
		{"an alias comes", nil, func(_, _, b object) { b["aliases"] = []any{"two", "deux", "zwei"} }, "", ""},
		{"an alias moves", nil, func(_, a, b object) { a["aliases"], b["aliases"] = []any{"one", "deux"}, []any{"two"} }, `/commands/1/aliases: "deux" no longer names openphone.two: raise the version`, ""},
		{"it means something else", nil, func(_, a, _ object) { a["android_tool"] = "other" }, "/commands/0/android_tool: android_tool of openphone.one was tool: raise the version", ""},
		{"it needs another capability", nil, func(_, a, _ object) { a["capability"] = "calls.read" }, "/commands/0/capability: capability of openphone.one was screen.read.visible: raise the version", ""},
		{"another risk", nil, func(_, a, _ object) { a["risk"] = "medium" }, "/commands/0/risk: risk of openphone.one was low: raise the version", ""},
		{"fewer see it", nil, func(_, a, _ object) { a["mcp"] = false }, "/commands/0: openphone.one is no longer offered to everybody it was offered to: raise the version", ""},
		{"other words", nil, func(_, a, _ object) { a["description"] = "Does the same." }, "", ""},
		{"a parameter comes", nil, func(_, a, _ object) { a["input_schema"] = schema(object{"x": object{"type": "number"}}) }, "", ""},
		{"a required parameter comes", nil, func(_, a, _ object) { a["input_schema"] = schema(object{"x": object{"type": "number"}}, "x") }, `/commands/0/input_schema: required was ["reason"]: raise the version`, ""},
		{
			"a parameter goes", func(_, a, _ object) { a["input_schema"] = schema(object{"x": object{"type": "number"}}) }, nil,
			`/commands/0/input_schema/properties: "x" is gone: raise the version`, "",
		},
		{
			"a parameter changes its type", func(_, a, _ object) { a["input_schema"] = schema(object{"x": object{"type": "number"}}) },
			func(_, a, _ object) { a["input_schema"] = schema(object{"x": object{"type": "integer"}}) },
			`/commands/0/input_schema/properties/x: "x" changed: raise the version`, "",
		},
		{"unknown parameters are no longer taken", nil, func(_, a, _ object) {
			s := schema(object{})
			s["additionalProperties"] = false
			a["input_schema"] = s
		}, "/commands/0/input_schema: additionalProperties was nothing: raise the version", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			load := func(data []byte) *Manifest {
				m, err := LoadIn(data, Range{MinVersion: 1, MaxVersion: 2})
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			text := func(v Violations) string { return strings.TrimPrefix(v.Error(), "#") }
			old := load(small(c.old))
			if diff := cmp.Diff(c.want, text(Breaking(old, load(small(c.now))))); diff != "" {
				t.Errorf("same version (-want +got):\n%s", diff)
			}
			higher := small(func(m, a, b object) {
				if c.now != nil {
					c.now(m, a, b)
				}
				m["version"] = 2
			})
			if diff := cmp.Diff(c.bumped, text(Breaking(old, load(higher)))); diff != "" {
				t.Errorf("higher version (-want +got):\n%s", diff)
			}
			// The raised manifest is not for this program before MaxVersion is raised too.
			if _, err := Load(higher); err == nil {
				t.Error("a version beyond MaxVersion loaded")
			}
		})
	}
}

func TestCompareFiles(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-16")
	released := builtinFiles(t)
	edited := func(file int, old, new string) []File {
		files := builtinFiles(t)
		text := strings.ReplaceAll(string(files[file].Data), old, new)
		if text == string(files[file].Data) {
			t.Fatalf("nothing to change: %s is not there", old)
		}
		files[file].Data = []byte(text)
		return files
	}
	for _, c := range []struct {
		name  string
		files []File
		want  []string
	}{
		{"nothing", released, nil},
		{"a capability goes", edited(2, `"id": "apps.read"`, `"id": "apps.list"`), []string{"openphone-capabilities.json#/capabilities: the capability apps.read is gone: raise the version"}},
		{"an event turns around", edited(1, `"direction": "bidirectional"`, `"direction": "phone_to_runtime"`), []string{"openphone-events.json#/events/11/direction: direction of runtime.session.updated was bidirectional: raise the version"}},
		{"an event is called otherwise on the wire", edited(1, `"wire": "node.presence.alive"`, `"wire": "node.presence"`), []string{"openphone-events.json#/transport_mappings: runtime.presence.online is no longer node.presence.alive on node.event of openclaw: raise the version"}},
		{"a shape goes", edited(3, `"protocolRange": {`, `"protocolVersions": {`), []string{"openphone-runtime.schema.json#/$defs: the shape protocolRange is gone: raise the version"}},
		{"a shape requires more", edited(3, `"required": ["event", "payload"]`, `"required": ["event", "payload", "at"]`), []string{`openphone-runtime.schema.json#/$defs/runtimeEvent: required was ["event" "payload"]: raise the version`}},
		{"a file is missing", released[1:], []string{"openphone-commands.json#: there is no file of this kind to compare it with"}},
		{"a file is broken: that is said elsewhere", append([]File{{Name: "x", Data: []byte("{")}}, released[1:]...), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, lines(Compare(released, c.files))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if v := Compare([]File{{Name: "old", Data: []byte("{")}}, released); len(v) != 1 || v[0].File != "old" {
		t.Errorf("a released file that is broken: %v", v)
	}
	if v := Breaking(Commands(), Events()); len(v) != 1 {
		t.Errorf("another kind: %v", v)
	}
	two := edited(2, `"version": 1`, `"version": 2`)
	if v := Compare(two[2:3], released); len(v) != 1 || !strings.Contains(v[0].Message, "version 1 is lower than version 2") {
		t.Errorf("a lower version: %v", v)
	}
}
