// Package protocol holds the manifests of the OpenPhone protocol beside the packages that read them: go:embed takes
// files of its own folder only. It knows nothing of what is in them and has no state. Everybody but package openphone
// reads them through that package, the one loader.
package protocol

import "embed"

// Manifests are openphone-commands.json, openphone-events.json, openphone-capabilities.json and
// openphone-runtime.schema.json as this program was built with.
//
//go:embed openphone-*.json
var Manifests embed.FS
