package openphone

import (
	"testing"

	"github.com/openphone-host/openphone/protocol"
)

// builtinFiles are the four files this program was built with.
func builtinFiles(t testing.TB) []File {
	t.Helper()
	var files []File
	for _, name := range []string{"openphone-commands.json", "openphone-events.json", "openphone-capabilities.json", schemaName} {
		data, err := protocol.Manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{Name: name, Data: data})
	}
	return files
}
