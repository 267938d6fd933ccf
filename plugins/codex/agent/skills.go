package agent

import (
	"context"
	"encoding/json"
	"os"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxSkills bounds a list of skills.
const maxSkills = 500

// nativeSkill is one skill as the runtime lists it.
type nativeSkill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path"`
	Scope       string `json:"scope"` // user, repo, system, admin
	Enabled     bool   `json:"enabled"`
	PluginID    string `json:"pluginId"`

	dir string // whose list it is in
}

type skillRow struct {
	Cwd    string            `json:"cwd"`
	Skills []nativeSkill     `json:"skills"`
	Errors []json.RawMessage `json:"errors"`
}

// ListSkills lists the enabled skills of the session's directory; without a session those of the one project, or of
// the person's home.
func (l *library) ListSkills(ctx context.Context, r *runtime.ListSkillsRequest) ([]runtime.Skill, error) {
	dir := r.Session.ProjectPath
	if dir == "" {
		if !r.Session.IsZero() {
			return nil, codes.New(codes.SessionUnknown)
		}
		dir = l.defaultDirectory()
	}
	row, err := l.readSkills(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	list := []runtime.Skill{}
	for _, s := range row.Skills {
		if !s.Enabled || s.Name == "" || len(list) == maxSkills {
			continue
		}
		list = append(list, runtime.Skill{
			SkillID: s.Name, Name: s.Name, Description: cutUnits(s.Description, 2000),
			Invocation: "$" + s.Name + " ", Source: skillSource(s), Kind: runtime.SkillKindSkill,
		})
	}
	return list, nil
}

// readSkills asks for one directory and takes only the row that is really about it: the runtime echoes directories
// that do not exist (CX-19).
func (l *library) readSkills(ctx context.Context, dir string, reload bool) (skillRow, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return skillRow{}, codes.New(codes.ProjectUnavailable)
	}
	client, err := l.client(ctx)
	if err != nil {
		return skillRow{}, err
	}
	raw, err := client.Skills(ctx, dir, reload)
	if err != nil {
		return skillRow{}, readError(err)
	}
	var page struct {
		Data []skillRow `json:"data"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return skillRow{}, codes.New(codes.ReplyInvalid).Because(err)
	}
	if len(page.Data) != 1 || page.Data[0].Cwd != dir {
		return skillRow{}, codes.New(codes.ReplyInvalid)
	}
	return page.Data[0], nil
}

func (l *library) defaultDirectory() string {
	if p := l.project(); p != "" {
		return p
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

func skillSource(s nativeSkill) string {
	if s.PluginID != "" {
		return "plugin"
	}
	switch s.Scope {
	case "repo":
		return "project"
	case "user":
		return "user"
	}
	return "system"
}
