package openphone

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// File is a file to validate.
type File struct {
	Name string // as violations name it
	Data []byte
}

// Title is the title of the schema file, the name by which programs recognise it.
const Title = "OpenPhone Runtime Agent Protocol"

// maxName is the longest command name, in bytes: some models take no longer name for a tool.
const maxName = 64

var (
	commandName = regexp.MustCompile(`^openphone(\.[a-z][a-z0-9_]*)+$`)
	dottedName  = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`)
)

// concepts are the shapes whose names never change (OP-19).
var concepts = []string{"runtime", "surface", "phoneSession", "runtimeSession", "attentionRequest", "toolRequest", "confirmation"}

// surfaceEvents are the events without which adaptive surfaces do not work, and who sends them.
var surfaceEvents = []struct {
	name      string
	direction Direction
}{
	{"runtime.surface.present", RuntimeToPhone},
	{"runtime.surface.replace", RuntimeToPhone},
	{"runtime.surface.dismiss", RuntimeToPhone},
	{"runtime.surface.action_result", PhoneToRuntime},
	{"phone.surface.action_invoked", PhoneToRuntime},
	{"phone.surface.dismissed", PhoneToRuntime},
}

// Validate says everything that is wrong with manifests and the schema file, which it tells apart by what is in them.
// What one file needs of another, such as the capabilities that commands name, is looked up in the files given, or in
// those of this program when none of that kind is given. A manifest without violations loads.
func Validate(files ...File) Violations {
	v := &validator{schema: Schema(), compiled: map[string]error{}}
	reports := make([]*report, len(files))
	loaded := make([]*Manifest, len(files))
	for i, f := range files {
		r := &report{file: f.Name}
		reports[i] = r
		if len(f.Data) > MaxFile {
			r.say("", "this is larger than %d bytes", MaxFile)
			continue
		}
		root, ok := r.parse(f.Data)
		switch {
		case !ok:
		case isSchema(root):
			v.schema = f.Data
			r.schemaFile(root)
		default:
			loaded[i] = r.manifest(root, Supported())
			if m := loaded[i]; m != nil && m.Kind == KindCapabilities {
				v.capabilities = append(v.capabilities, m)
			}
		}
	}
	if v.capabilities == nil {
		v.capabilities = []*Manifest{Capabilities()}
	}
	var all Violations
	for i, r := range reports {
		if m := loaded[i]; m != nil {
			v.manifest(r, m)
		}
		all = append(all, r.bad...)
	}
	return all
}

func isSchema(root node) bool {
	_, defs := root.members["$defs"]
	_, uri := root.members["$schema"]
	return defs || uri
}

// validator holds what the rules of one file need of the others.
type validator struct {
	schema       []byte
	capabilities []*Manifest
	compiled     map[string]error // schema text → what the compiler said; most commands share one
}

func (v *validator) manifest(r *report, m *Manifest) {
	switch m.Kind {
	case KindCommands:
		for i, c := range m.Commands {
			v.command(r, m, &c, m.pointers[i])
		}
	case KindEvents:
		v.events(r, m)
	case KindCapabilities:
		for i, c := range m.Capabilities {
			if c.ID != "" && !dottedName.MatchString(c.ID) {
				r.say(m.pointers[i]+"/id", "%q is no id: lower-case words with dots between them, such as screen.read.visible", c.ID)
			}
			oneOf(r, m.pointers[i]+"/risk", "risk", c.Risk, RiskLow, RiskMedium, RiskHigh, RiskCritical)
		}
	}
}

func (v *validator) command(r *report, m *Manifest, c *Command, p string) {
	if c.Name != "" && (!commandName.MatchString(c.Name) || len(c.Name) > maxName) {
		r.say(p+"/name", "%q is no command name: openphone and lower-case words with dots between them, at most %d bytes", c.Name, maxName)
	}
	if c.Capability != "" && !slices.ContainsFunc(v.capabilities, func(m *Manifest) bool { _, ok := m.Capability(c.Capability); return ok }) {
		r.say(p+"/capability", "there is no capability %q", c.Capability)
	}
	oneOf(r, p+"/risk", "risk", c.Risk, RiskLow, RiskMedium, RiskHigh)
	oneOf(r, p+"/confirmation", "confirmation", c.Confirmation, AskNever, AskBeforeAction, AskAlways)
	oneOf(r, p+"/default_exposure", "default_exposure", c.Exposure, ExposureSafeRead, ExposurePrivateRead, ExposureDangerous)
	if (c.Confirmation == AskAlways) != (c.Risk == RiskHigh) && c.Risk != "" && c.Confirmation != "" {
		r.say(p+"/confirmation", "confirmation %q does not go with risk %q: always stands with high, and only there", c.Confirmation, c.Risk)
	}
	if c.Mutating() == (c.Confirmation == AskNever) && c.Exposure != "" && c.Confirmation != "" {
		r.say(p+"/default_exposure", "default_exposure %q does not go with confirmation %q: what acts is dangerous and asks, what reads does neither", c.Exposure, c.Confirmation)
	}
	v.successor(r, m, c, p)
	r.inputSchema(c.InputSchema, p+"/input_schema")
	v.compile(r, c.InputSchema, p+"/input_schema")
	v.compile(r, c.OutputSchema, p+"/output_schema")
}

// successor checks how a command is retired (OP-17).
func (v *validator) successor(r *report, m *Manifest, c *Command, p string) {
	if c.SupersededBy == "" {
		return
	}
	p += "/superseded_by"
	if !c.Deprecated {
		r.say(p, "superseded_by stands only beside deprecated: true")
	}
	next, ok := m.Command(c.SupersededBy)
	switch {
	case !ok:
		r.say(p, "there is no command %q", c.SupersededBy)
	case c.SupersededBy == c.Name:
		r.say(p, "%s cannot supersede itself", c.Name)
	case next.Name == c.Name:
		r.say(p, "%q is an alias of %s itself", c.SupersededBy, c.Name)
	}
}

// inputSchema checks what the host relies on: parameters are an object, and callers say why.
func (r *report) inputSchema(raw []byte, p string) {
	if raw == nil {
		return // said already
	}
	o, ok := (&report{}).child((&report{}).node(raw, "", 0), "")
	if !ok {
		return
	}
	if o.members["type"].text != "object" {
		r.say(p, `parameters have to be of type "object"`)
	}
	reason := o.members["properties"].members["reason"]
	required := slices.ContainsFunc(o.members["required"].items, func(n node) bool { return n.text == "reason" })
	if reason.members["type"].text != "string" || !required {
		r.say(p, `a command has to require a "reason" of type string: the user is shown why it runs`)
	}
}

func (v *validator) events(r *report, m *Manifest) {
	for i, e := range m.Events {
		p := m.pointers[i]
		if e.Name != "" && !dottedName.MatchString(e.Name) {
			r.say(p+"/name", "%q is no event name: lower-case words with dots between them", e.Name)
		}
		oneOf(r, p+"/direction", "direction", e.Direction, PhoneToRuntime, RuntimeToPhone, Bidirectional)
		v.compile(r, e.PayloadSchema, p+"/payload_schema")
	}
	openclaw := map[string]bool{} // events with a name on that transport
	for i, t := range m.Transports {
		wires := map[string]bool{}
		for j, w := range t.Events {
			p := nth(nth("/transport_mappings", i)+"/events", j)
			if _, ok := m.Event(w.Protocol); !ok && w.Protocol != "" {
				r.say(p+"/protocol", "there is no event %q", w.Protocol)
			}
			if wires[w.Wire] {
				r.say(p+"/wire", "%q stands twice: a receiver could not tell which event it is", w.Wire)
			}
			wires[w.Wire] = true
			openclaw[w.Protocol] = openclaw[w.Protocol] || t.Runtime == "openclaw"
		}
	}
	for _, s := range surfaceEvents {
		e, ok := m.Event(s.name)
		if !ok {
			r.say("/events", "the event %s is missing: adaptive surfaces need it", s.name)
			continue
		}
		if e.Direction != s.direction && slices.Contains([]Direction{PhoneToRuntime, RuntimeToPhone, Bidirectional}, e.Direction) {
			r.say(m.pointers[slices.IndexFunc(m.Events, func(x Event) bool { return x.Name == s.name })]+"/direction", "%s goes %s", s.name, s.direction)
		}
		if !openclaw[s.name] {
			r.say("/transport_mappings", "the event %s has no name on a transport of openclaw", s.name)
		}
	}
}

func (r *report) schemaFile(root node) {
	o, ok := r.child(root, "")
	if !ok {
		return
	}
	if title := o.need("title"); title != "" && title != Title {
		r.say("/title", "the title has to be %q", Title)
	}
	if uri := o.need("$schema"); uri != "" && strings.TrimSuffix(uri, "#") != draft2020 {
		r.say("/$schema", "$schema has to be %q", draft2020)
	}
	defs, _ := o.get("$defs", "{", "an object", true)
	for _, c := range concepts {
		if _, ok := defs.members[c]; !ok && defs.members != nil {
			r.say("/$defs", "the shape %s is missing", c)
		}
	}
	compileAll(r, root.raw)
}

// oneOf refuses a value that is none of the known ones; an empty one was refused before.
func oneOf[T ~string](r *report, p, what string, got T, known ...T) {
	if got == "" || slices.Contains(known, got) {
		return
	}
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = string(k)
	}
	r.say(p, "there is no %s %q; it is one of %s", what, bytes.ToValidUTF8([]byte(got), nil), strings.Join(list, ", "))
}
