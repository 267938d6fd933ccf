// Command openphone-runtime-codex is the plugin for Codex: it drives the app server of the Codex installed on this
// computer. It is started by the host; everything it does is in package agent.
package main

import (
	"github.com/openphone-host/openphone/plugins/codex/agent"
	"github.com/openphone-host/openphone/sdk/serve"
)

func main() {
	serve.Main(agent.New(agent.Options{Log: serve.Logger(), Fault: serve.Fault}))
}
