package openphone

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/openphone-host/openphone/protocol"
)

// MaxFile bounds a manifest file, in bytes; ours have at most 50 KB.
const MaxFile = 4 << 20

// schemaName is the file with the shapes.
const schemaName = "openphone-runtime.schema.json"

var (
	builtinCommands     = builtin("openphone-commands.json")
	builtinEvents       = builtin("openphone-events.json")
	builtinCapabilities = builtin("openphone-capabilities.json")
)

// Commands is the command manifest this program was built with.
func Commands() *Manifest { return builtinCommands() }

// Events is the event manifest this program was built with.
func Events() *Manifest { return builtinEvents() }

// Capabilities is the capability manifest this program was built with.
func Capabilities() *Manifest { return builtinCapabilities() }

// Schema is the text of openphone-runtime.schema.json this program was built with. The caller owns it.
func Schema() []byte {
	data, err := protocol.Manifests.ReadFile(schemaName)
	if err != nil {
		panic(err) // the build would have failed
	}
	return data
}

func builtin(name string) func() *Manifest {
	return sync.OnceValue(func() *Manifest {
		data, err := protocol.Manifests.ReadFile(name)
		if err == nil {
			var m *Manifest
			if m, err = Load(data); err == nil {
				return m
			}
		}
		panic(fmt.Sprintf("openphone: %s: %v", name, err)) // the checks refuse such a build
	})
}

// Load reads a manifest of any kind whose version this program supports. Members it does not know are skipped (OP-15).
// What it refuses it refuses with Violations: text that is no JSON, a version that is no integer or out of range, fields
// that are missing or of the wrong type, and names that stand twice. Values such as a risk nobody knows are kept as they
// are; Validate refuses them.
func Load(data []byte) (*Manifest, error) { return LoadIn(data, Supported()) }

// LoadIn is Load for another range of versions, such as that of a tool which reads manifests of several releases.
func LoadIn(data []byte, versions Range) (*Manifest, error) {
	r := &report{}
	m := r.load(data, versions)
	return m, r.err()
}

// LoadFile is Load for a file of at most MaxFile bytes.
func LoadFile(path string) (*Manifest, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &report{file: path}
	m := r.load(data, Supported())
	return m, r.err()
}

// ReadFile reads a file of at most MaxFile bytes for Load or Validate.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, MaxFile)
	}
	return data, err
}

// load gives nil when anything is wrong.
func (r *report) load(data []byte, versions Range) *Manifest {
	root, ok := r.parse(data)
	if !ok {
		return nil
	}
	m := r.manifest(root, versions)
	if len(r.bad) > 0 {
		return nil
	}
	return m
}

// manifest reads a document as far as it goes, so that everything that is wrong is found at once.
func (r *report) manifest(root node, versions Range) *Manifest {
	o, ok := r.child(root, "")
	if !ok {
		return nil
	}
	m := &Manifest{index: map[string]int{}}
	m.Version = o.version(versions)
	for _, k := range kinds {
		if _, ok := o.members[string(k)]; !ok {
			continue
		}
		if m.Kind != "" {
			o.say(at("", string(k)), "this file has %s already: one manifest lists one kind", m.Kind)
			continue
		}
		m.Kind = k
	}
	if m.Kind == "" {
		o.say("", "this file has no list of commands, events or capabilities")
		return nil
	}
	for i, n := range o.list(string(m.Kind), true) {
		if c, ok := r.child(n, nth(at("", string(m.Kind)), i)); ok {
			m.add(c)
		}
	}
	if m.Kind == KindEvents {
		for i, n := range o.list("transport_mappings", false) {
			if c, ok := r.child(n, nth("/transport_mappings", i)); ok {
				m.Transports = append(m.Transports, c.transport())
			}
		}
	}
	return m
}

func (o object) version(versions Range) int {
	n, ok := o.members["version"]
	if !ok {
		o.say("", "version is missing; the supported versions are the integers %s", versions)
		return 0
	}
	version, err := strconv.Atoi(string(n.raw))
	if err != nil || !versions.has(version) {
		o.say("/version", "version is %s; the supported versions are the integers %s", brief(n.raw), versions)
	}
	return version
}

// add reads one entry.
func (m *Manifest) add(o object) {
	m.pointers = append(m.pointers, o.pointer)
	switch m.Kind {
	case KindCommands:
		c := o.command()
		m.claim(o, "/name", c.Name, len(m.Commands))
		for i, a := range c.Aliases {
			m.claim(o, nth("/aliases", i), a, len(m.Commands))
		}
		m.Commands = append(m.Commands, c)
	case KindEvents:
		e := Event{
			Name: o.need("name"), Direction: Direction(o.need("direction")), Description: o.need("description"),
			PayloadSchema: o.schema("payload_schema"),
		}
		m.claim(o, "/name", e.Name, len(m.Events))
		m.Events = append(m.Events, e)
	case KindCapabilities:
		c := Capability{ID: o.need("id"), Risk: Risk(o.need("risk")), Description: o.need("description")}
		m.claim(o, "/id", c.ID, len(m.Capabilities))
		m.Capabilities = append(m.Capabilities, c)
	}
}

// claim gives a name to an entry; no two may have it.
func (m *Manifest) claim(o object, member, name string, position int) {
	if name == "" {
		return // said already
	}
	if _, taken := m.index[name]; taken {
		o.say(o.pointer+member, "%q stands twice: every name and alias belongs to one entry", name)
		return
	}
	m.index[name] = position
}

func (o object) command() Command {
	c := Command{
		Name:          o.need("name"),
		AndroidTool:   o.need("android_tool"),
		Category:      o.need("category"),
		Risk:          Risk(o.need("risk")),
		Capability:    o.need("capability"),
		Confirmation:  Asking(o.need("confirmation")),
		Exposure:      Exposure(o.need("default_exposure")),
		MCP:           o.flag("mcp", true),
		RemoteRuntime: o.flag("remote_runtime", true),
		Description:   o.need("description"),
		InputSchema:   o.schema("input_schema"),
		OutputSchema:  o.schema("output_schema"),
		Deprecated:    o.flag("deprecated", false),
	}
	for i, n := range o.list("aliases", false) {
		if n.kind() != '"' || n.text == "" {
			o.say(nth(at(o.pointer, "aliases"), i), "an alias has to be a text that is not empty, and is %s", brief(n.raw))
		}
		c.Aliases = append(c.Aliases, n.text)
	}
	if _, ok := o.members["superseded_by"]; ok {
		c.SupersededBy = o.need("superseded_by")
	}
	return c
}

func (o object) transport() Transport {
	t := Transport{Runtime: o.need("runtime"), Transport: o.need("transport")}
	for i, n := range o.list("events", true) {
		if c, ok := o.child(n, nth(at(o.pointer, "events"), i)); ok {
			t.Events = append(t.Events, WireName{Protocol: c.need("protocol"), Wire: c.need("wire")})
		}
	}
	return t
}
