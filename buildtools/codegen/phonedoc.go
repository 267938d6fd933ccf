package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openphone-host/openphone/protocol/openphone"
)

const phoneIntro = "# OpenPhone protocol\n\n" +
	"Generated from `protocol/openphone-*.json` by `make proto`; edit those. What a runtime can ask of a phone is a command, what they tell each other is an event, and " +
	"what a user grants is a capability. Programs read the manifests through package `protocol/openphone` only.\n\n" +
	"A user raises an attention request on a surface of the phone. It opens a phone session and goes to the runtime the user chose, which keeps a runtime session of its own. " +
	"The runtime answers, or sends tool requests, which inspect or act. What acts may need a confirmation, and only a person answers it.\n\n" +
	"## Versions\n\n" +
	"This build reads manifest versions %s. Each manifest has an integer `version`. Additions leave it as it is: new commands, events and capabilities, new optional members. " +
	"What breaks readers raises it, and `MaxVersion` with it; `MinVersion` rises only when support is dropped, after the release notes said so. " +
	"A command is not removed in place: it gets `deprecated: true` and `superseded_by`, keeps working for at least one release, and its removal then raises the version.\n\n" +
	"`openphone protocol validate FILE…` says everything that is wrong with manifests at once; with `--against FILE` also what would break readers of the last release. " +
	"`make check` runs it.\n\n" +
	"## Parameters and their hash\n\n" +
	"An approval is bound to parameters by their hash: `sha256:` and 64 hex digits of canonical JSON. Members are sorted by UTF-16 units at every depth, there is no white space, " +
	"non-ASCII stands as UTF-8, `null` is kept, and numbers are written as JavaScript writes them. Integers beyond 2^53-1 are refused: not every reader keeps them apart.\n"

// docFile is docs/protocol.md.
func (p phone) docFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, phoneIntro, openphone.Supported())
	count := map[openphone.Exposure]int{}
	aliases := 0
	for _, c := range p.commands.Commands {
		count[c.Exposure]++
		aliases += len(c.Aliases)
	}
	fmt.Fprintf(&b, "\n## Commands\n\n%d commands and %d aliases: %d safe reads, which a runtime is offered unasked, %d private reads, which need a grant, and %d that act. "+
		"Every command takes a `reason`, which the user sees; required parameters are bold. "+
		"*asks* says when a person is asked: never, before an action unless actions are trusted, or always.\n\n"+
		"| command | aliases | what it does | parameters | risk | asks | exposure | capability | MCP |\n|---|---|---|---|---|---|---|---|---|\n",
		len(p.commands.Commands), aliases, count[openphone.ExposureSafeRead], count[openphone.ExposurePrivateRead], count[openphone.ExposureDangerous])
	for _, c := range p.commands.Commands {
		mcp := "yes"
		if !c.MCP {
			mcp = "no"
		}
		about := c.Description
		if n := c.Notice(); n != "" {
			about += " " + n
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Name, quoted(c.Aliases), cell(about), parameters(c), c.Risk, c.Confirmation, c.Exposure, c.Capability, mcp)
	}
	b.WriteString("\n## Parameters\n\n")
	for _, c := range p.commands.Commands {
		fmt.Fprintf(&b, "### %s\n\n", c.Name)
		s := readShape(c.InputSchema)
		for _, f := range shapes(s.Properties) {
			fmt.Fprintf(&b, "- `%s`, %s%s: %s%s\n", f.name, kind(f), need(s, f), f.Description, values(f))
		}
		b.WriteString("\n")
	}
	b.WriteString("## Events\n\n| event | who sends it | when | payload | names on other transports |\n|---|---|---|---|---|\n")
	for _, e := range p.events.Events {
		var wires []string
		for _, t := range p.events.Transports {
			for _, w := range t.Events {
				if w.Protocol == e.Name {
					wires = append(wires, fmt.Sprintf("`%s` (%s %s)", w.Wire, t.Runtime, t.Transport))
				}
			}
		}
		payload := readShape(e.PayloadSchema)
		text := "object"
		if t := payload.target(); t != "" {
			text = link(t)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Name, strings.ReplaceAll(string(e.Direction), "_", " "), cell(e.Description), text, strings.Join(wires, ", "))
	}
	b.WriteString("\n## Capabilities\n\nA capability may be rated above the commands that need it: it is granted once, for all of them.\n\n| capability | permits | risk | commands |\n|---|---|---|---|\n")
	for _, c := range p.capabilities.Capabilities {
		var users []string
		for _, k := range p.commands.Commands {
			if k.Capability == c.ID {
				users = append(users, k.Name)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.ID, cell(c.Description), c.Risk, quoted(users))
	}
	b.WriteString("\n## Shapes\n\nFrom `openphone-runtime.schema.json`. Objects tolerate members that are not listed here, except assistantOutput and adaptiveSurface.\n")
	for _, s := range p.shapes {
		fmt.Fprintf(&b, "\n### %s\n\n%s%s\n", s.name, s.Description, values(s))
		fields := shapes(s.Properties)
		if len(fields) > 0 {
			b.WriteString("\n")
		}
		for _, f := range fields {
			about := f.Description
			if about == "" && f.Ref != "" {
				about = p.find(f.target()).Description
			}
			fmt.Fprintf(&b, "- `%s`, %s%s: %s%s\n", f.name, kind(f), need(s, f), about, values(f))
		}
	}
	return b.Bytes()
}

// cell is text that stands in a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func quoted(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "`" + strings.Join(list, "`, `") + "`"
}

// parameters lists the names; reason is not repeated.
func parameters(c openphone.Command) string {
	s := readShape(c.InputSchema)
	var list []string
	for _, f := range shapes(s.Properties) {
		switch {
		case f.name == "reason":
		case slices.Contains(s.Required, f.name):
			list = append(list, "**"+f.name+"**")
		default:
			list = append(list, f.name)
		}
	}
	return strings.Join(list, ", ")
}

func kind(s shape) string {
	switch {
	case s.Ref != "":
		return link(s.target())
	case s.Items != nil && s.Items.Ref != "":
		return "list of " + link(s.Items.target())
	case len(s.AnyOf) > 0 && s.AnyOf[0].Ref != "":
		return link(s.AnyOf[0].target()) + " or null"
	}
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return one
	}
	var several []string
	_ = json.Unmarshal(s.Type, &several)
	if len(several) == 0 {
		return "any"
	}
	return strings.Join(several, " or ")
}

func link(shape string) string { return "[" + shape + "](#" + strings.ToLower(shape) + ")" }

func need(of, f shape) string {
	if slices.Contains(of.Required, f.name) {
		return ", required"
	}
	return ""
}

// values says which values are known; a default is what the phone takes when there is none.
func values(s shape) string {
	text := ""
	if len(s.Enum) > 0 {
		text += " One of " + quoted(s.Enum) + "."
	}
	if len(s.Examples) > 0 {
		list := make([]string, len(s.Examples))
		for i, e := range s.Examples {
			list[i] = strings.Trim(string(e), `"`)
		}
		text += " Known values: " + quoted(list) + "."
	}
	if len(s.Default) > 0 {
		text += " Without it: `" + strings.Trim(string(s.Default), `"`) + "`."
	}
	return text
}
