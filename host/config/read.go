package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/openphone-host/openphone/protocol/codes"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// variables override single keys; nothing else of the environment does.
var variables = []struct {
	name, key string
	set       func(*Config, string)
}{
	{"OPENPHONE_LISTEN", "listen.address", func(c *Config, v string) { c.Listen.Address = v }},
	{"OPENPHONE_LOG_LEVEL", "log.level", func(c *Config, v string) { c.Log.Level = v }},
	{"OPENPHONE_LOG_FORMAT", "log.format", func(c *Config, v string) { c.Log.Format = v }},
}

// read makes a Config from a file's content and the environment. origins tells where each key that is not a default came
// from: file:LINE or env:NAME.
func read(b []byte, getenv func(string) string) (c *Config, origins map[string]string, err error) {
	if len(b) > maxFile {
		return nil, nil, invalid("the file is larger than 1 MiB")
	}
	c = Default()
	d := toml.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, nil, decodeError(err)
	}
	lines := positions(b)
	if c.Version != Version {
		return nil, nil, invalid(fmt.Sprintf("%sversion %d is newer than this program", lines["version"].text(), c.Version))
	}
	origins = map[string]string{}
	for k, p := range lines {
		origins[k] = fmt.Sprintf("file:%d", p.line)
	}
	for _, v := range variables {
		if value := getenv(v.name); value != "" {
			v.set(c, value)
			origins[v.key] = "env:" + v.name
		}
	}
	if key, problem := c.validate(); key != "" {
		where := key + " " + problem
		if strings.HasPrefix(origins[key], "env:") {
			where = strings.TrimPrefix(origins[key], "env:") + " " + problem
		} else if p, ok := lines[key]; ok {
			where = p.text() + where
		}
		return nil, nil, invalid(where)
	}
	return c, origins, nil
}

func invalid(where string) error { return codes.New(codes.ConfigInvalid, "where", where) }

// decodeError turns what the parser says into one line with a position.
func decodeError(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		e := &strict.Errors[0]
		row, column := e.Position()
		return invalid(fmt.Sprintf("line %d, column %d: unknown key %s", row, column, strings.Join(e.Key(), ".")))
	}
	var e *toml.DecodeError
	if errors.As(err, &e) {
		row, column := e.Position()
		text := strings.TrimPrefix(e.Error(), "toml: ")
		if key := strings.Join(e.Key(), "."); key != "" {
			text = key + " has a value of the wrong kind"
		}
		return invalid(fmt.Sprintf("line %d, column %d: %s", row, column, text))
	}
	return invalid("it is not TOML")
}

// position is a place in the file.
type position struct{ line, column int }

// text begins a sentence about the place; empty when it is unknown.
func (p position) text() string {
	if p.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d, column %d: ", p.line, p.column)
}

// positions finds every key of a valid file, dotted.
func positions(b []byte) map[string]position {
	out := map[string]position{}
	p := unstable.Parser{}
	p.Reset(b)
	var table []string
	for p.NextExpression() {
		n := p.Expression()
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, _ = keyOf(&p, n, nil, out)
		case unstable.KeyValue:
			note(&p, n, table, out)
		}
	}
	return out
}

// note records a key and, for an inline table, those inside it.
func note(p *unstable.Parser, n *unstable.Node, table []string, out map[string]position) {
	key, _ := keyOf(p, n, table, out)
	if v := n.Value(); v != nil && v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			note(p, it.Node(), key, out)
		}
	}
}

func keyOf(p *unstable.Parser, n *unstable.Node, table []string, out map[string]position) ([]string, position) {
	key := slices.Clone(table)
	var at position
	for it := n.Key(); it.Next(); {
		part := it.Node()
		if at.line == 0 {
			start := p.Shape(part.Raw).Start
			at = position{start.Line, start.Column}
		}
		key = append(key, string(part.Data))
	}
	out[strings.Join(key, ".")] = at
	return key, at
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
