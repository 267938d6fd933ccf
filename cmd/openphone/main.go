// Command openphone is the host and its command line: it starts the host and talks to the one that runs. The program
// itself is package cli; nothing lives here, so that tests can run it in their own process.
package main

import (
	"os"

	"github.com/openphone-host/openphone/cmd/openphone/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Process()))
}
