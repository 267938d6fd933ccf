// Command openphone-conform tests a plugin executable against the plugin contract, in whatever language it is written. It
// prints one line per case and exits 0 only if every case for everything the plugin advertises has passed.
package main

import (
	"os"

	"github.com/openphone-host/openphone/sdk/conformance"
)

func main() { os.Exit(conformance.Main(os.Args[1:], os.Stdout, os.Stderr)) }
