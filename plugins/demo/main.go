// Command openphone-runtime-demo is the demo runtime as a plugin. It needs nothing on the computer, answers
// deterministically, and misbehaves when a prompt says so; see plugins/demo/README.md for the prompt language.
package main

import (
	"github.com/openphone-host/openphone/plugins/demo/agent"
	"github.com/openphone-host/openphone/sdk/serve"
)

func main() {
	serve.Main(agent.New(agent.Options{Log: serve.Logger()}))
}
