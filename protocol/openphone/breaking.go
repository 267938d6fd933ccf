package openphone

import (
	"slices"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// Breaking compares a manifest with that of the last release and names what readers of the old one would trip over
// without a higher version: names that are gone or mean something else, parameters and payloads whose required shape
// changed. Additions are never named (OP-15). With a higher version all of it is allowed but one thing: a command goes
// only after a release in which it was deprecated (OP-18). Pointers are those of the new manifest, or, for what is gone,
// of its list.
func Breaking(old, now *Manifest) Violations {
	r := &report{}
	list := at("", string(old.Kind))
	if old.Kind != now.Kind {
		r.say("", "a manifest of %s cannot replace one of %s", now.Kind, old.Kind)
		return r.bad
	}
	bumped := now.Version > old.Version
	if now.Version < old.Version {
		r.say("/version", "version %d is lower than version %d of the last release", now.Version, old.Version)
	}
	for i := range old.Commands {
		was := &old.Commands[i]
		if _, ok := now.Command(was.Name); !ok && !was.Deprecated {
			r.say(list, "the command %s is gone without a release in which it was deprecated", was.Name)
		} else if !bumped {
			r.commandChange(was, now, list)
		}
	}
	if bumped {
		return r.bad
	}
	for i := range old.Events {
		r.eventChange(&old.Events[i], now, list)
	}
	for _, t := range old.Transports {
		for _, w := range t.Events {
			if !slices.ContainsFunc(now.Transports, func(n Transport) bool {
				return n.Runtime == t.Runtime && n.Transport == t.Transport && slices.Contains(n.Events, w)
			}) {
				r.say("/transport_mappings", "%s is no longer %s on %s of %s: raise the version", w.Protocol, w.Wire, t.Transport, t.Runtime)
			}
		}
	}
	for _, c := range old.Capabilities {
		if _, ok := now.Capability(c.ID); !ok {
			r.say(list, "the capability %s is gone: raise the version", c.ID)
		}
	}
	return r.bad
}

// Compare is Breaking for files: each released one against the one of its kind among files. The shapes of the schema file
// have no version of their own; they may break only when one of the manifests has a higher version. Files that do not
// load are left to Validate.
func Compare(released, files []File) Violations {
	var all Violations
	var shapes *report
	bumped := false
	for _, old := range released {
		was := opened(old)
		if was.bad != nil {
			all = append(all, was.bad...)
			continue
		}
		found := false
		for _, f := range files {
			is := opened(f)
			switch {
			case was.manifest != nil && is.manifest != nil && was.manifest.Kind == is.manifest.Kind:
				found = true
				bumped = bumped || is.manifest.Version > was.manifest.Version
				for _, b := range Breaking(was.manifest, is.manifest) {
					b.File = f.Name
					all = append(all, b)
				}
			case was.defs != nil && is.defs != nil:
				found = true
				shapes = &report{file: f.Name}
				shapes.shapesChange(*was.defs, *is.defs)
			case is.bad != nil:
				found = true // who knows what it is
			}
		}
		if !found {
			all = append(all, Violation{File: old.Name, Message: "there is no file of this kind to compare it with"})
		}
	}
	if shapes != nil && !bumped {
		all = append(all, shapes.bad...)
	}
	return all
}

// document is a file that was opened to be compared: a manifest, the shapes of the schema file, or what is wrong.
type document struct {
	manifest *Manifest
	defs     *node
	bad      Violations
}

func opened(f File) document {
	r := &report{file: f.Name}
	root, ok := r.parse(f.Data)
	if ok && isSchema(root) {
		defs := root.members["$defs"]
		return document{defs: &defs}
	}
	if ok {
		// Any version: what this program supports is the business of Validate.
		if m := r.manifest(root, Range{MinVersion: 1, MaxVersion: 1 << 30}); len(r.bad) == 0 {
			return document{manifest: m}
		}
	}
	return document{bad: r.bad}
}

func (r *report) shapesChange(was, is node) {
	for _, name := range was.names {
		p := at("/$defs", name)
		if n, ok := is.members[name]; ok {
			r.shapeChange(was.members[name].raw, n.raw, p)
		} else {
			r.say("/$defs", "the shape %s is gone: raise the version", name)
		}
	}
}

func (r *report) commandChange(was *Command, now *Manifest, list string) {
	is, ok := now.Command(was.Name)
	if !ok {
		r.say(list, "the command %s is gone: raise the version", was.Name)
		return
	}
	p := now.pointers[now.index[was.Name]]
	if is.Name != was.Name {
		r.say(p+"/name", "the command %s is now called %s: raise the version", was.Name, is.Name)
	}
	for _, a := range was.Aliases {
		if c, ok := now.Command(a); !ok || c != is {
			r.say(p+"/aliases", "%q no longer names %s: raise the version", a, was.Name)
		}
	}
	for _, f := range []struct {
		member   string
		was, now any
	}{
		{"android_tool", was.AndroidTool, is.AndroidTool},
		{"capability", was.Capability, is.Capability},
		{"risk", was.Risk, is.Risk},
		{"confirmation", was.Confirmation, is.Confirmation},
		{"default_exposure", was.Exposure, is.Exposure},
	} {
		if f.was != f.now {
			r.say(at(p, f.member), "%s of %s was %v: raise the version", f.member, was.Name, f.was)
		}
	}
	if was.MCP && !is.MCP || was.RemoteRuntime && !is.RemoteRuntime {
		r.say(p, "%s is no longer offered to everybody it was offered to: raise the version", was.Name)
	}
	r.shapeChange(was.InputSchema, is.InputSchema, p+"/input_schema")
	r.shapeChange(was.OutputSchema, is.OutputSchema, p+"/output_schema")
}

func (r *report) eventChange(was *Event, now *Manifest, list string) {
	is, ok := now.Event(was.Name)
	if !ok {
		r.say(list, "the event %s is gone: raise the version", was.Name)
		return
	}
	p := now.pointers[now.index[was.Name]]
	if is.Direction != was.Direction {
		r.say(p+"/direction", "direction of %s was %s: raise the version", was.Name, was.Direction)
	}
	r.shapeChange(was.PayloadSchema, is.PayloadSchema, p+"/payload_schema")
}

// shapeChange compares two schemas of objects. Properties may come; those that stay keep their type, and what is
// required stays required and nothing else becomes so.
func (r *report) shapeChange(was, is []byte, p string) {
	before, after := (&report{}).node(was, "", 0), (&report{}).node(is, "", 0)
	for _, keyword := range []string{"type", "$ref", "additionalProperties"} {
		if !sameText(before.members[keyword].raw, after.members[keyword].raw) {
			r.say(p, "%s was %s: raise the version", keyword, brief(before.members[keyword].raw))
		}
	}
	props := after.members["properties"]
	for _, name := range before.members["properties"].names {
		a, b := before.members["properties"].members[name], props.members[name]
		where := at(p+"/properties", name)
		switch {
		case b.raw == nil:
			r.say(p+"/properties", "%q is gone: raise the version", name)
		case !slices.Equal(bare(a), bare(b)):
			r.say(where, "%q changed: raise the version", name)
		}
	}
	required := func(n node) []string {
		var list []string
		for _, i := range n.members["required"].items {
			list = append(list, i.text)
		}
		slices.Sort(list)
		return list
	}
	if a, b := required(before), required(after); !slices.Equal(a, b) {
		r.say(p, "required was %q: raise the version", a)
	}
}

// bare is a property without what only people read.
func bare(n node) []string {
	var list []string
	for _, name := range n.names {
		switch name {
		case "description", "examples", "default":
		default:
			text, _ := jsonframe.Canonical(n.members[name].raw)
			list = append(list, name+"="+string(text))
		}
	}
	slices.Sort(list)
	return list
}

// sameText compares two values, either of which may be absent.
func sameText(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	x, err1 := jsonframe.Canonical(a)
	y, err2 := jsonframe.Canonical(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}
