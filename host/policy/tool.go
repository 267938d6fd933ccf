package policy

import "strings"

// Reasons why a tool call is denied; stable codes of the phone protocol.
const (
	UnknownTool      = "unknown_tool"
	EndpointOffline  = "endpoint_offline"
	ToolNotSupported = "tool_not_supported"
	InvalidParams    = "invalid_params"
	MissingReason    = "missing_reason"
	NotGranted       = "exposure_not_granted"
	ObserveOnly      = "observe_only_mutation_denied"
)

// Call is one call of a phone tool with everything the table looks at. The zero value is denied.
type Call struct {
	Tool     Tool
	Endpoint Endpoint
	Levels   Levels

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
	Reason  string // of a denial
	Forward bool   // Ask: the phone asks its person itself, with the level that counts
}

// DecideCall goes through the checks in their fixed order; the first that refuses decides, and none behind it is made
// (OP-05).
func DecideCall(c Call) Ruling {
	level := Level(c.Levels)
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
	switch v := Decide(level, c.Tool.Action); v {
	case Deny:
		return Ruling{Reason: ObserveOnly}
	case Ask:
		return Ruling{Verdict: Ask, Forward: c.Endpoint.Confirms}
	default:
		return Ruling{Verdict: v}
	}
}
