package main

import "strings"

// desktop is the link to Codex Desktop.
const desktop = "plugins/codex/desktop"

// manifests is the reader of the OpenPhone manifests.
const manifests = "protocol/openphone"

// single overrides the section of one rule: the component without which nothing can break it.
var single = map[string]string{
	"STORE-05": "plugins/hermes", "SYNC-05": "plugins/pi", "SYNC-14": desktop, "ART-04": "plugins/pi", "TEST-05": "plugins/hermes",
	"TEST-06": desktop, "CX-09": desktop, "CX-14": desktop, "CX-25": desktop, "CX-27": desktop, "CX-28": desktop,
	"FAULT-02": "host/relay", "FAULT-05": "host/phone/web", "FAULT-07": "host/relay", "FAULT-08": "host/phone/web",
	"FAULT-10": "host/relay", "FAULT-11": "host/relay", "FAULT-12": "host/push", "FAULT-14": "host/relay", "FAULT-15": "host/update",
	"FAULT-16": "host/relay", "FAULT-17": "host/relay", "FAULT-19": "host/tools",
	"FAULT-21": "host/relay",
	"OP-11":    manifests, "OP-12": manifests, "OP-15": manifests, "OP-16": manifests, "OP-17": manifests, "OP-18": manifests,
}

// sections maps the prefix of a rule to the component it speaks about.
var sections = map[string]string{
	"OP": "host/tools", "PROTO": "plugins/openclaw", "HPY": "plugins/hermes", "RELAY": "host/relay", "XFER": "host/relay",
	"OWNER": "host/relay", "NET": "host/relay", "OC": "plugins/openclaw", "LOCAL": "plugins/localmodel", "HREC": "plugins/hermes",
	"HMOB": "plugins/hermes", "FILES": "plugins/hermes", "PI": "plugins/pi", "CC": "plugins/claudecode",
}

// component is the folder a rule waits for; empty: it holds for what exists.
func component(id string) string {
	if c, ok := single[id]; ok {
		return c
	}
	prefix, _, _ := strings.Cut(id, "-")
	return sections[prefix]
}
