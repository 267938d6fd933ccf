package agent

import (
	"bytes"
	"encoding/json"
	"path/filepath"
)

// permissionProfile is an anonymous policy as the runtime writes it into a thread's file.
type permissionProfile struct {
	Type       string `json:"type"` // disabled, managed
	Network    string `json:"network"`
	FileSystem *struct {
		Type    string           `json:"type"`
		Entries []profileEntries `json:"entries"`
	} `json:"file_system"`
}

type profileEntries struct {
	Path struct {
		Type  string `json:"type"` // special, path
		Path  string `json:"path"`
		Value *struct {
			Kind string `json:"kind"` // root, slash_tmp, tmpdir
		} `json:"value"`
	} `json:"path"`
	Access  string `json:"access"`
	Missing string `json:"missing_path_behavior"`
}

// standardProfile names the built-in profile that an anonymous policy equals to the letter; empty if it equals none.
// A member or an entry that is not known here makes it equal none, so nothing unknown ever becomes full access.
func standardProfile(raw json.RawMessage, cwd string) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var p permissionProfile
	if d.Decode(&p) != nil {
		return ""
	}
	switch {
	case p.Type == "disabled" && p.Network == "" && p.FileSystem == nil:
		return ":danger-full-access"
	case p.Type != "managed" || p.Network != "restricted" || p.FileSystem == nil || p.FileSystem.Type != "restricted":
		return ""
	}
	have := map[profileRule]bool{}
	for _, e := range p.FileSystem.Entries {
		r, ok := e.rule()
		if !ok || have[r] {
			return ""
		}
		have[r] = true
	}
	if len(have) == 1 && have[rootReadable] {
		return ":read-only"
	}
	if !filepath.IsAbs(cwd) {
		return ""
	}
	for r, needed := range workspaceRules(filepath.Clean(cwd)) {
		if !have[r] && needed {
			return ""
		}
		delete(have, r)
	}
	if len(have) > 0 {
		return ""
	}
	return ":workspace"
}

// profileRule is one entry in a form that can be compared.
type profileRule struct{ special, path, access, missing string }

var rootReadable = profileRule{special: "root", access: "read"}

func (e profileEntries) rule() (profileRule, bool) {
	r := profileRule{access: e.Access, missing: e.Missing}
	switch {
	case e.Path.Type == "special" && e.Path.Value != nil && e.Path.Path == "":
		r.special = e.Path.Value.Kind
	case e.Path.Type == "path" && e.Path.Value == nil && filepath.IsAbs(e.Path.Path):
		r.path = filepath.Clean(e.Path.Path)
	default:
		return r, false
	}
	return r, true
}

// workspaceRules is the built-in workspace policy of a directory; false marks what older versions do not have.
func workspaceRules(cwd string) map[profileRule]bool {
	rules := map[profileRule]bool{
		rootReadable:                            true,
		{path: cwd, access: "write"}:            true,
		{special: "slash_tmp", access: "write"}: true,
		{special: "tmpdir", access: "write"}:    true,
	}
	for folder, needed := range map[string]bool{".git": true, ".agents": true, ".codex": true, ".aws": false} {
		rules[profileRule{path: filepath.Join(cwd, folder), access: "read", missing: "skip"}] = needed
	}
	return rules
}
