package conversations

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// Bounds of profile answers. Names, texts and versions are in UTF-16 units.
const (
	profileName        = 256
	profileDescription = 2000
	profileVersion     = 512
	profileLevel       = 32
	maxSafeInteger     = 1<<53 - 1
	maxResetsAt        = 8640000000000 // seconds
	maxDocument        = 128 << 10     // bytes
)

type profileProject struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Available bool   `json:"available"`
}

type profileProjects []profileProject

func (v profileProjects) check() error {
	c := checker{}
	c.atMost("projects", len(v), 10000)
	for _, p := range v {
		c.id(p.ID)
		c.name(p.Name)
	}
	return c.err
}

type profileModel struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	IsDefault    bool     `json:"isDefault"`
	Levels       []string `json:"levels"`
	DefaultLevel string   `json:"defaultLevel,omitempty"`
}

type profileDefaults struct {
	Model    *string        `json:"model"`
	Thinking *string        `json:"thinking"`
	Version  string         `json:"version"`
	Editable bool           `json:"editable"`
	Models   []profileModel `json:"models"`
}

func (v profileDefaults) check() error {
	c := checker{}
	c.optionalName(v.Model)
	c.optionalName(v.Thinking)
	c.text("version", v.Version, 1, profileVersion)
	c.list(v.Models == nil)
	c.atMost("models", len(v.Models), 2000)
	for _, m := range v.Models {
		c.id(m.ID)
		c.name(m.Name)
		c.list(m.Levels == nil)
		c.atMost("levels", len(m.Levels), 16)
		for _, l := range m.Levels {
			c.text("level", l, 1, profileLevel)
		}
		c.text("default level", m.DefaultLevel, 0, profileLevel)
	}
	return c.err
}

type profileWindow struct {
	Minutes     int64   `json:"minutes"`
	UsedPercent float64 `json:"usedPercent"`
	ResetsAt    *int64  `json:"resetsAt"` // seconds, unlike every other time
}

type profileQuota struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Windows []profileWindow `json:"windows"`
}

type profileDay struct {
	Date   string `json:"date"`
	Tokens int64  `json:"tokens"`
}

type profileUsage struct {
	Plan           *string        `json:"plan"`
	Quotas         []profileQuota `json:"quotas"`
	LifetimeTokens *int64         `json:"lifetimeTokens"`
	Daily          []profileDay   `json:"daily"`
}

var day = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

func (v profileUsage) check() error {
	c := checker{}
	c.optionalName(v.Plan)
	c.list(v.Quotas == nil || v.Daily == nil)
	c.atMost("quotas", len(v.Quotas), 32)
	for _, q := range v.Quotas {
		c.id(q.ID)
		c.name(q.Name)
		c.list(q.Windows == nil)
		c.atMost("windows", len(q.Windows), 2)
		for _, w := range q.Windows {
			c.whole("minutes", w.Minutes, 1, maxSafeInteger)
			if w.UsedPercent < 0 {
				c.fail("percent")
			}
			if w.ResetsAt != nil {
				c.whole("reset", *w.ResetsAt, 0, maxResetsAt)
			}
		}
	}
	if v.LifetimeTokens != nil {
		c.whole("tokens", *v.LifetimeTokens, 0, maxSafeInteger)
	}
	c.atMost("days", len(v.Daily), 400)
	for _, d := range v.Daily {
		if !day.MatchString(d.Date) {
			c.fail("date")
		}
		c.whole("tokens", d.Tokens, 0, maxSafeInteger)
	}
	return c.err
}

type profileSkill struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Scope       string `json:"scope"`
	Enabled     bool   `json:"enabled"`
	Editable    bool   `json:"editable"`
}

type profileSkills struct {
	Skills     []profileSkill `json:"skills"`
	ErrorCount int64          `json:"errorCount"`
}

func (v profileSkills) check() error {
	c := checker{}
	c.list(v.Skills == nil)
	c.atMost("skills", len(v.Skills), 500)
	for _, s := range v.Skills {
		c.id(s.ID)
		c.name(s.Name)
		c.description(s.Description)
		c.oneOf("scope", s.Scope, "project", "user", "system", "plugin")
		if s.Editable && (s.Scope == "system" || s.Scope == "plugin") {
			c.fail("editable")
		}
	}
	c.whole("errors", v.ErrorCount, 0, 500)
	return c.err
}

type profileInstruction struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Exists bool   `json:"exists"`
	Scope  string `json:"scope"`
}

type profileInstructions []profileInstruction

func (v profileInstructions) check() error {
	c := checker{}
	c.list(v == nil)
	c.atMost("instructions", len(v), 4)
	for _, i := range v {
		c.id(i.ID)
		c.oneOf("name", i.Name, "AGENTS.md", "AGENTS.override.md")
		c.oneOf("scope", i.Scope, "user", "project")
	}
	return c.err
}

type profileDocument struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Content  string `json:"content"`
	Version  string `json:"version"`
	Editable bool   `json:"editable"`
	Missing  bool   `json:"missing"`
	Size     int64  `json:"size"`
}

var documentVersion = regexp.MustCompile(`^([0-9a-f]{64}|missing)$`)

func (v profileDocument) check() error {
	c := checker{}
	c.id(v.ID)
	c.name(v.Name)
	if len(v.Content) > maxDocument {
		c.fail("content")
	}
	for _, r := range v.Content {
		if r == 0 {
			c.fail("content")
			break
		}
	}
	if !documentVersion.MatchString(v.Version) || v.Missing != (v.Version == "missing") {
		c.fail("version")
	}
	c.whole("size", v.Size, 0, maxSafeInteger)
	return c.err
}

type profileTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type profileServer struct {
	Name           string        `json:"name"`
	Auth           string        `json:"auth"`
	ToolsAvailable bool          `json:"toolsAvailable"`
	Tools          []profileTool `json:"tools"`
}

type profileServers []profileServer

func (v profileServers) check() error {
	c := checker{}
	c.list(v == nil)
	c.atMost("servers", len(v), 500)
	all := 0
	for _, s := range v {
		c.id(s.Name) // there is no other, so it must be the only one
		c.oneOf("auth", s.Auth, "authenticated", "required", "unsupported", "unknown")
		c.list(s.Tools == nil)
		c.atMost("tools", len(s.Tools), 2000)
		all += len(s.Tools)
		for _, t := range s.Tools {
			c.name(t.Name)
			c.description(t.Description)
		}
	}
	c.atMost("tools of all servers", all, 4000)
	return c.err
}

type profilePlugin struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Enabled     bool   `json:"enabled"`
}

type profilePlugins []profilePlugin

func (v profilePlugins) check() error {
	c := checker{}
	c.list(v == nil)
	c.atMost("plugins", len(v), 500)
	for _, p := range v {
		c.id(p.ID)
		c.name(p.Name)
		c.description(p.Description)
	}
	return c.err
}

// checker keeps the first thing that is off; what it says goes to the local log only.
type checker struct {
	err error
	ids map[string]bool
}

func (c *checker) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%s is not valid", what)
	}
}

func (c *checker) text(what, s string, min, max int) {
	if n := jsonframe.Units(s); n < min || n > max || !utf8.ValidString(s) {
		c.fail(what)
	}
}

func (c *checker) name(s string)        { c.text("name", s, 1, profileName) }
func (c *checker) description(s string) { c.text("description", s, 0, profileDescription) }

func (c *checker) optionalName(s *string) {
	if s != nil {
		c.name(*s)
	}
}

// id is a name that must not occur twice.
func (c *checker) id(s string) {
	c.text("id", s, 1, profileName)
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	if c.ids[s] {
		c.fail("repeated id")
	}
	c.ids[s] = true
}

func (c *checker) whole(what string, n, min, max int64) {
	if n < min || n > max {
		c.fail(what)
	}
}

func (c *checker) atMost(what string, n, max int) {
	if n > max {
		c.fail("number of " + what)
	}
}

// list refuses null and absent lists, which the app would refuse.
func (c *checker) list(missing bool) {
	if missing {
		c.fail("missing list")
	}
}

func (c *checker) oneOf(what, s string, words ...string) {
	for _, w := range words {
		if s == w {
			return
		}
	}
	c.fail(what)
}
