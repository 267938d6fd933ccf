package openphone

import "encoding/json"

// Kind is what a manifest lists: the name of its array.
type Kind string

// The kinds of manifests.
const (
	KindCommands     Kind = "commands"
	KindEvents       Kind = "events"
	KindCapabilities Kind = "capabilities"
)

var kinds = []Kind{KindCommands, KindEvents, KindCapabilities}

// Manifest is one loaded file. Only the fields of its kind are filled. It is shared and must not be changed.
type Manifest struct {
	Kind         Kind
	Version      int
	Commands     []Command // in the order of listings
	Events       []Event
	Transports   []Transport // of an event manifest
	Capabilities []Capability

	index    map[string]int // name or alias → position
	pointers []string       // position → where the file has it
}

// Command is something a runtime can ask of a phone.
type Command struct {
	Name          string
	Aliases       []string
	AndroidTool   string // what phones call it inside
	Category      string
	Risk          Risk
	Capability    string // id in the capability manifest
	Confirmation  Asking
	Exposure      Exposure
	MCP           bool // offered to MCP clients
	RemoteRuntime bool // offered to runtimes
	Description   string
	InputSchema   json.RawMessage // JSON Schema of the parameters
	OutputSchema  json.RawMessage
	Deprecated    bool   // on its way out, and working until it is gone (OP-18)
	SupersededBy  string // name or alias of the command to use instead; empty when there is none
}

// Mutating says whether the command changes anything on the phone. An exposure that this program does not know counts
// as changing.
func (c *Command) Mutating() bool {
	return c.Exposure != ExposureSafeRead && c.Exposure != ExposurePrivateRead
}

// Notice is what callers of a deprecated command are told; empty for all others.
func (c *Command) Notice() string {
	switch {
	case !c.Deprecated:
		return ""
	case c.SupersededBy == "":
		return c.Name + " is deprecated and will be removed."
	default:
		return c.Name + " is deprecated: use " + c.SupersededBy + " instead."
	}
}

// Event is something a phone and a runtime tell each other.
type Event struct {
	Name          string
	Direction     Direction
	Description   string
	PayloadSchema json.RawMessage // JSON Schema; may refer to openphone-runtime.schema.json
}

// Transport says what events are called on one transport of one runtime.
type Transport struct {
	Runtime   string
	Transport string
	Events    []WireName // an event may have several names
}

// WireName is one name of an event on a transport.
type WireName struct{ Protocol, Wire string }

// Capability is something a user can grant.
type Capability struct {
	ID          string
	Risk        Risk
	Description string
}

// Risk is how much harm something can do.
type Risk string

// The risks. Critical is for capabilities; commands go up to high.
const (
	RiskLow      Risk = "low"
	RiskMedium   Risk = "medium"
	RiskHigh     Risk = "high"
	RiskCritical Risk = "critical"
)

// High says whether a person has to be asked at every level of autonomy. A risk that this program does not know is high.
func (r Risk) High() bool { return r != RiskLow && r != RiskMedium }

// Asking says when a person is asked before a command runs.
type Asking string

// When a person is asked.
const (
	AskNever        Asking = "none"
	AskBeforeAction Asking = "ask_before_action" // unless the level of autonomy trusts actions
	AskAlways       Asking = "always"
)

// Exposure is what a runtime is offered without the user saying so.
type Exposure string

// The exposures: safe reads are offered; private reads and everything that acts only where the user says so.
const (
	ExposureSafeRead    Exposure = "safe_read"
	ExposurePrivateRead Exposure = "private_read"
	ExposureDangerous   Exposure = "dangerous"
)

// Direction says who sends an event.
type Direction string

// The directions.
const (
	PhoneToRuntime Direction = "phone_to_runtime"
	RuntimeToPhone Direction = "runtime_to_phone"
	Bidirectional  Direction = "bidirectional"
)

// Command finds a command by its name or one of its aliases; deprecated ones too.
func (m *Manifest) Command(name string) (*Command, bool) {
	i, ok := m.index[name]
	if !ok || m.Kind != KindCommands {
		return nil, false
	}
	return &m.Commands[i], true
}

// Event finds an event by its name in the protocol.
func (m *Manifest) Event(name string) (*Event, bool) {
	i, ok := m.index[name]
	if !ok || m.Kind != KindEvents {
		return nil, false
	}
	return &m.Events[i], true
}

// Capability finds a capability by its id.
func (m *Manifest) Capability(id string) (*Capability, bool) {
	i, ok := m.index[id]
	if !ok || m.Kind != KindCapabilities {
		return nil, false
	}
	return &m.Capabilities[i], true
}
