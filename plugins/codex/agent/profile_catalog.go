package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	maxDescription = 2000
	maxErrors      = 500
	maxQuotas      = 32
	maxDays        = 400
	maxResetsAt    = 8_640_000_000_000 // Unix seconds; the phone's dates end there
	maxServers     = 500
	maxServerTools = 2000
	maxAllTools    = 4000
	maxServerBytes = 6 << 20
	serverPage     = 100
	maxServerPages = 20
	maxPlugins     = 500
)

type projectRow struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Available bool   `json:"available"`
}

// projectID is the name of a project on a phone: the same the host makes.
func projectID(path string) string {
	sum := sha256.Sum256([]byte(canonicalPath(path)))
	return hex.EncodeToString(sum[:])[:32]
}

func (p *profile) projects(ctx context.Context, c profileCall) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	list, err := p.projectPaths(ctx)
	if err != nil {
		return nil, err
	}
	rows := []projectRow{}
	for _, pr := range list {
		name := pr.Name
		if name == "" {
			name = filepath.Base(pr.Path)
		}
		rows = append(rows, projectRow{ID: projectID(pr.Path), Name: cutUnits(name, maxName), Available: isDirectory(pr.Path)})
	}
	return rows, nil
}

func (p *profile) projectPaths(ctx context.Context) ([]runtime.Project, error) {
	if only := p.project(); only != "" {
		return []runtime.Project{{Path: only}}, nil
	}
	return p.ListProjects(ctx)
}

// projectOf finds the directory of a projectId parameter, the only one of its call.
func (p *profile) projectOf(ctx context.Context, c profileCall) (string, error) {
	var in struct {
		ProjectID string `json:"projectId"`
	}
	if err := c.decode(&in); err != nil {
		return "", err
	}
	return p.projectByID(ctx, in.ProjectID)
}

func (p *profile) projectByID(ctx context.Context, id string) (string, error) {
	list, err := p.projectPaths(ctx)
	if err != nil {
		return "", err
	}
	for _, pr := range list {
		if projectID(pr.Path) == id {
			if !isDirectory(pr.Path) {
				return "", codes.New(codes.ProjectUnavailable)
			}
			return pr.Path, nil
		}
	}
	return "", codes.New(codes.ProjectUnknown)
}

type skillsResult struct {
	Skills     []profileSkill `json:"skills"`
	ErrorCount int            `json:"errorCount"`
}

type profileSkill struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Scope       string `json:"scope"`
	Enabled     bool   `json:"enabled"`
	Editable    bool   `json:"editable"`

	path string
}

func editableSkill(s nativeSkill) bool {
	source := skillSource(s)
	return source == "project" || source == "user"
}

func (p *profile) skills(ctx context.Context, c profileCall) (any, error) {
	var in struct {
		ProjectID   string `json:"projectId"`
		ForceReload bool   `json:"forceReload"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	dir, err := p.projectByID(ctx, in.ProjectID)
	if err != nil {
		return nil, err
	}
	return p.skillsOf(ctx, dir, in.ForceReload)
}

func (p *profile) skillsOf(ctx context.Context, dir string, reload bool) (*skillsResult, error) {
	row, err := p.readSkills(ctx, dir, reload)
	if err != nil {
		return nil, err
	}
	r := &skillsResult{Skills: []profileSkill{}, ErrorCount: min(len(row.Errors), maxErrors)}
	for _, s := range row.Skills {
		if s.Name == "" || len(r.Skills) == maxSkills {
			continue
		}
		s.dir = dir
		r.Skills = append(r.Skills, profileSkill{
			ID: p.name(handle{skill: &s}), Name: cutUnits(s.Name, maxName), Description: cutUnits(s.Description, maxDescription),
			Scope: skillSource(s), Enabled: s.Enabled, Editable: editableSkill(s), path: s.Path,
		})
	}
	return r, nil
}

// setSkill switches a skill and succeeds only when a reloaded list shows it: the runtime reports success for anything.
func (p *profile) setSkill(ctx context.Context, c profileCall) (any, error) {
	var in struct {
		ID      string `json:"id"`
		Enabled bool   `json:"enabled"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	h, _ := p.find(in.ID)
	if h.skill == nil || !editableSkill(*h.skill) {
		return nil, codes.New(codes.ParametersInvalid)
	}
	p.writes.Lock()
	defer p.writes.Unlock()
	if err := writeError(c.client.SkillWrite(ctx, h.skill.Path, in.Enabled)); err != nil {
		return nil, err
	}
	r, err := p.skillsOf(ctx, h.skill.dir, true)
	if err != nil {
		return nil, codes.New(codes.NotConfirmed).Because(err)
	}
	if !slices.ContainsFunc(r.Skills, func(s profileSkill) bool { return s.path == h.skill.Path && s.Enabled == in.Enabled }) {
		return nil, codes.New(codes.NotConfirmed)
	}
	return r, nil
}

type usageResult struct {
	Plan     *string `json:"plan"`
	Quotas   []quota `json:"quotas"`
	Lifetime *int64  `json:"lifetimeTokens"`
	Daily    []day   `json:"daily"`
}

type quota struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Windows []window `json:"windows"`
}

type window struct {
	Minutes     int64  `json:"minutes"`
	UsedPercent int64  `json:"usedPercent"`
	ResetsAt    *int64 `json:"resetsAt"`
}

type day struct {
	Date   string `json:"date"`
	Tokens int64  `json:"tokens"`
}

// usage tells what the account's provider tells; what cannot be read is unknown, never zero.
func (p *profile) usage(ctx context.Context, c profileCall) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	account, err := c.client.Account(ctx)
	if err != nil {
		return nil, err
	}
	r := &usageResult{Quotas: []quota{}, Daily: []day{}}
	if account.Account != nil && account.Account.Plan != "" {
		plan := cutUnits(string(account.Account.Plan), maxName)
		r.Plan = &plan
	}
	if raw, err := c.client.RateLimits(ctx); err == nil {
		r.Quotas = quotasIn(raw)
	}
	if raw, err := c.client.Usage(ctx); err == nil {
		r.Lifetime, r.Daily = tokensIn(raw)
	}
	return r, nil
}

type nativeLimit struct {
	LimitID   appserver.String `json:"limitId"`
	LimitName appserver.String `json:"limitName"`
	Primary   *nativeWindow    `json:"primary"`
	Secondary *nativeWindow    `json:"secondary"`
}

type nativeWindow struct {
	UsedPercent int64  `json:"usedPercent"`
	Minutes     *int64 `json:"windowDurationMins"`
	ResetsAt    *int64 `json:"resetsAt"`
}

func quotasIn(raw json.RawMessage) []quota {
	var answer struct {
		One  nativeLimit            `json:"rateLimits"`
		Many map[string]nativeLimit `json:"rateLimitsByLimitId"`
	}
	list := []quota{}
	if json.Unmarshal(raw, &answer) != nil {
		return list
	}
	if len(answer.Many) == 0 {
		answer.Many = map[string]nativeLimit{string(answer.One.LimitID): answer.One}
	}
	ids := make([]string, 0, len(answer.Many))
	for id := range answer.Many {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		l := answer.Many[id]
		q := quota{ID: cutUnits(id, maxName), Name: cutUnits(string(l.LimitName), maxName), Windows: []window{}}
		if q.ID == "" {
			q.ID = "codex"
		}
		if q.Name == "" {
			q.Name = q.ID
		}
		for _, w := range []*nativeWindow{l.Primary, l.Secondary} {
			if w == nil || w.Minutes == nil || *w.Minutes <= 0 || w.UsedPercent < 0 {
				continue
			}
			if w.ResetsAt != nil && (*w.ResetsAt < 0 || *w.ResetsAt > maxResetsAt) {
				w.ResetsAt = nil
			}
			q.Windows = append(q.Windows, window{Minutes: *w.Minutes, UsedPercent: w.UsedPercent, ResetsAt: w.ResetsAt})
		}
		if len(q.Windows) > 0 && len(list) < maxQuotas {
			list = append(list, q)
		}
	}
	return list
}

func tokensIn(raw json.RawMessage) (lifetime *int64, daily []day) {
	var answer struct {
		Summary struct {
			Lifetime *int64 `json:"lifetimeTokens"`
		} `json:"summary"`
		Buckets []struct {
			Date   string `json:"startDate"`
			Tokens int64  `json:"tokens"`
		} `json:"dailyUsageBuckets"`
	}
	daily = []day{}
	if json.Unmarshal(raw, &answer) != nil {
		return nil, daily
	}
	if l := answer.Summary.Lifetime; l != nil && *l >= 0 {
		lifetime = l
	}
	for _, b := range answer.Buckets {
		if _, err := time.Parse(time.DateOnly, b.Date); err == nil && b.Tokens >= 0 && len(daily) < maxDays {
			daily = append(daily, day{Date: b.Date, Tokens: b.Tokens})
		}
	}
	return lifetime, daily
}
