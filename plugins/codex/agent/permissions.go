package agent

import (
	"bytes"
	"encoding/json"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
)

// Permission choices of a person.
const (
	permWorkspace = "workspace"
	permReadOnly  = "read-only"
	permFull      = "full-access"
	permCustom    = "custom" // shown, never chosen
)

// grant is a permission choice in Codex' words. Policy is JSON.
type grant struct {
	Profile  string
	Policy   string
	Reviewer string
}

// grants are the choices on offer. Named profiles only: a removed one fails instead of becoming something else.
var grants = map[string]grant{
	permWorkspace: {Profile: ":workspace", Policy: `"on-request"`, Reviewer: "user"},
	permReadOnly:  {Profile: ":read-only", Policy: `"on-request"`, Reviewer: "user"},
	permFull:      {Profile: ":danger-full-access", Policy: `"never"`, Reviewer: "user"},
}

// policy is the approval policy as it is sent.
func (g grant) policy() json.RawMessage { return json.RawMessage(g.Policy) }

// granted reports that the effective settings are exactly this grant, sandbox included.
func granted(s appserver.Settings, g grant) bool {
	return s.Profile != nil && s.Profile.ID == g.Profile && sameJSON(s.ApprovalPolicy, []byte(g.Policy)) &&
		s.ApprovalsReviewer == g.Reviewer && standardSandbox(s.SandboxPolicy, g.Profile)
}

// standardSandbox compares an effective policy with what a built-in profile stands for; other profiles are the user's
// own and compared by name alone.
func standardSandbox(s appserver.Sandbox, profile string) bool {
	network := s.NetworkAccess == true
	switch profile {
	case ":workspace":
		return s.Type == "workspaceWrite" && !network && !s.ExcludeTmpdirEnvVar && !s.ExcludeSlashTmp
	case ":read-only":
		return s.Type == "readOnly" && !network
	case ":danger-full-access":
		return s.Type == "dangerFullAccess"
	}
	return true
}

// permissionMode is the choice the effective settings stand for.
func permissionMode(s appserver.Settings) string {
	for mode, g := range grants {
		if granted(s, g) {
			return mode
		}
	}
	return permCustom
}

// choiceOf is the choice a grant was made by.
func choiceOf(g grant) string {
	for mode, x := range grants {
		if x == g {
			return mode
		}
	}
	return permCustom
}

func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
