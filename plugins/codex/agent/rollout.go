package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
)

// maxRollout bounds the end of a thread's file that is read, in bytes.
const maxRollout = 32 << 20

// evidence is what the file of a thread says about its settings.
type evidence int

const (
	settingsUnknown evidence = iota // the file proves nothing
	settingsFound                   // its newest settings event
	settingsAbsent                  // the whole file was read and has none
)

// savedSettings are the settings of the newest event. Grant.Profile is empty for an anonymous policy that equals no
// standard one.
type savedSettings struct {
	Grant       grant
	ServiceTier string
	Effort      string
	Model       string
}

// readRollout reads the settings from the end of a thread's file (CX-11, CX-26). The file is only read, and only if it
// is beyond doubt the thread's own: in Codex' folder, named after the thread, no link of any sort, and unchanged while
// it was read. Every doubt is settingsUnknown.
func readRollout(codexHome string, t appserver.Thread) (savedSettings, evidence) {
	tail, whole, err := rolloutTail(codexHome, string(t.Path), t.ID)
	if err != nil {
		return savedSettings{}, settingsUnknown
	}
	return settingsIn(tail, whole, t)
}

// settingsIn looks for the newest settings event of the thread. Every line must be JSON.
func settingsIn(tail []byte, whole bool, t appserver.Thread) (savedSettings, evidence) {
	var newest *rolloutSettings
	ours := false
	for line := range bytes.Lines(tail) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		var l rolloutLine
		if json.Unmarshal(line, &l) != nil {
			return savedSettings{}, settingsUnknown
		}
		switch {
		case l.Type == "session_meta":
			var meta rolloutMeta
			if json.Unmarshal(l.Payload, &meta) != nil {
				return savedSettings{}, settingsUnknown
			}
			ours = ours || meta.ID == t.ID && samePath(meta.Cwd, string(t.Cwd)) && meta.ModelProvider == string(t.ModelProvider)
		case l.Type == "event_msg":
			var e rolloutEvent
			if json.Unmarshal(l.Payload, &e) != nil {
				return savedSettings{}, settingsUnknown
			}
			if e.Type == "thread_settings_applied" && e.ThreadID == t.ID {
				newest = &e.Settings
			}
		}
	}
	switch {
	case newest == nil && whole && ours:
		return savedSettings{}, settingsAbsent
	case newest == nil, !filepath.IsAbs(newest.Cwd), !samePath(newest.Cwd, string(t.Cwd)), newest.ModelProviderID != string(t.ModelProvider):
		return savedSettings{}, settingsUnknown
	}
	return newest.saved(), settingsFound
}

type rolloutLine struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

type rolloutMeta struct {
	ID            string `json:"id"`
	Cwd           string `json:"cwd"`
	ModelProvider string `json:"model_provider"`
}

type rolloutEvent struct {
	Type     string          `json:"type"`
	ThreadID string          `json:"thread_id"`
	Settings rolloutSettings `json:"thread_settings"`
}

// rolloutSettings are the settings of an event. Missing and null mean the same: newer versions leave out what is null.
type rolloutSettings struct {
	Model             string          `json:"model"`
	ModelProviderID   string          `json:"model_provider_id"`
	ServiceTier       string          `json:"service_tier"`
	Effort            string          `json:"reasoning_effort"`
	ApprovalPolicy    json.RawMessage `json:"approval_policy"`
	ApprovalsReviewer string          `json:"approvals_reviewer"`
	Profile           json.RawMessage `json:"permission_profile"`
	ActiveProfile     *struct {
		ID string `json:"id"`
	} `json:"active_permission_profile"`
	Cwd string `json:"cwd"`
}

func (s rolloutSettings) saved() savedSettings {
	g := grant{Reviewer: s.ApprovalsReviewer}
	var policy bytes.Buffer
	if json.Compact(&policy, s.ApprovalPolicy) == nil {
		g.Policy = policy.String()
	}
	if s.ActiveProfile != nil && s.ActiveProfile.ID != "" {
		g.Profile = s.ActiveProfile.ID
	} else {
		g.Profile = standardProfile(s.Profile, s.Cwd)
	}
	return savedSettings{Grant: g, ServiceTier: s.ServiceTier, Effort: s.Effort, Model: s.Model}
}

var (
	errRolloutPlace   = errors.New("rollout: not a thread's own file")
	errRolloutChanged = errors.New("rollout: changed while it was read")
)

// rolloutTail reads the last maxRollout bytes of a thread's file; whole says that nothing was left out.
func rolloutTail(codexHome, path, threadID string) (tail []byte, whole bool, err error) {
	if err := rolloutPlace(codexHome, path, threadID); err != nil {
		return nil, false, err
	}
	before, err := os.Lstat(path)
	if err != nil {
		return nil, false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !before.Mode().IsRegular() || !os.SameFile(before, opened) || opened.Size() == 0 || !singleLink(opened) {
		return nil, false, errRolloutPlace
	}
	skip := max(0, opened.Size()-maxRollout)
	tail, err = io.ReadAll(io.NewSectionReader(f, skip, opened.Size()-skip))
	if err != nil {
		return nil, false, err
	}
	after, err := os.Lstat(path)
	if err != nil {
		return nil, false, err
	}
	if !os.SameFile(opened, after) || after.Size() != opened.Size() || !after.ModTime().Equal(opened.ModTime()) || int64(len(tail)) != opened.Size()-skip {
		return nil, false, errRolloutChanged
	}
	if skip > 0 {
		_, tail, _ = bytes.Cut(tail, []byte("\n")) // half a line
	}
	return tail, skip == 0, nil
}

// rolloutPlace checks the path alone: absolute, named after the thread, and inside Codex' folders with all links of
// its directories followed.
func rolloutPlace(codexHome, path, threadID string) error {
	if codexHome == "" || threadID == "" || !filepath.IsAbs(path) || !strings.HasSuffix(path, "-"+threadID+".jsonl") {
		return errRolloutPlace
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, folder := range []string{"sessions", "archived_sessions"} {
		root, err := filepath.EvalSymlinks(filepath.Join(codexHome, folder))
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
			return nil
		}
	}
	return errRolloutPlace
}
