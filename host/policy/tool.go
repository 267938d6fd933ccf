package policy

import "strings"

// Reason is why a tool call is denied: a stable code of the phone protocol.
type Reason string

// Reasons, in the order of the checks.
const (
	UnknownTool      Reason = "unknown_tool"
	EndpointOffline  Reason = "endpoint_offline"
	ToolNotSupported Reason = "tool_not_supported"
	InvalidParams    Reason = "invalid_params"
	MissingReason    Reason = "missing_reason"
	NotGranted       Reason = "exposure_not_granted"
	ObserveOnly      Reason = "observe_only_mutation_denied"
)

// Call is one call of a phone tool with everything the table looks at. The zero value is denied.
type Call struct {
	Tool     Tool
	Endpoint Endpoint

	ViaMCP      bool   // came through the MCP server
	ParamsValid bool   // against the tool's input schema
	Reason      string // why, in the model's words
	Granted     bool   // the runtime was given access to private reads
}

// Tool is the command's row of the manifest.
type Tool struct {
	Known       bool
	Remote      bool // runtimes may call it
	MCP         bool // MCP clients may call it
	PrivateRead bool
	Action      Action
}

// Endpoint is the phone the call goes to.
type Endpoint struct {
	Online   bool
	Supports bool // the tool
	Confirms bool // it can ask its person itself
}

// Ruling is what happens to a tool call.
type Ruling struct {
	Verdict Verdict
	Reason  Reason // of a denial
	Forward bool   // Ask: the phone asks its person itself, with the level that counts
}

// Rule decides about a tool call. It goes through the checks in their fixed order; the first that refuses decides, and
// none behind it is made.
func (l Levels) Rule(c Call) Ruling {
	switch {
	case !c.Tool.Known, !c.Tool.Remote, c.ViaMCP && !c.Tool.MCP:
		return Ruling{Reason: UnknownTool}
	case !c.Endpoint.Online:
		return Ruling{Reason: EndpointOffline}
	case !c.Endpoint.Supports:
		return Ruling{Reason: ToolNotSupported}
	case !c.ParamsValid:
		return Ruling{Reason: InvalidParams}
	case strings.TrimSpace(c.Reason) == "":
		return Ruling{Reason: MissingReason}
	case c.Tool.PrivateRead && !c.Granted:
		return Ruling{Reason: NotGranted}
	}
	switch v := decide(Level(l), c.Tool.Action); v {
	case Deny:
		return Ruling{Reason: ObserveOnly}
	case Ask:
		return Ruling{Verdict: Ask, Forward: c.Endpoint.Confirms}
	default:
		return Ruling{Verdict: v}
	}
}
