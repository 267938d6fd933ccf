// Package importban keeps the doors between the rooms of the tree: which package may import which, and why. The first
// row that matches a folder decides. It reads import lines only and holds no state.
package importban

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/openphone-host/openphone/buildtools/tree"
)

// door is one row. Patterns are folders; * stands for one name, a trailing /... for everything below, and "own" in may
// for the folder of the same plugin.
type door struct {
	of     string
	may    []string // of ours; nothing else of ours is allowed
	extern []string // modules of others; nil: any that go.mod has
	never  []string // packages of others, also in tests
	why    string
}

var (
	none     = []string{}
	wire     = []string{"google.golang.org/grpc", "github.com/hashicorp/go-plugin"}
	database = []string{"database/sql", "modernc.org/sqlite"}
	pure     = []string{"google.golang.org/grpc", "github.com/hashicorp/go-plugin", "database/sql", "modernc.org/sqlite", "net", "net/http", "os/exec"}
)

var doors = []door{
	{
		of: "proto/...", may: []string{"proto/..."}, extern: []string{"google.golang.org/protobuf", "google.golang.org/grpc"},
		why: "the contract depends on nothing of ours, so that any language and any version can stand on it",
	},
	{
		of: "protocol/openphone", may: []string{"protocol", "protocol/jsonframe"}, extern: []string{"github.com/santhosh-tekuri/jsonschema/v6"}, never: append([]string{"net/http", "database/sql"}, wire...),
		why: "the manifests are read in one place, by anybody; besides a file it is handed the path of, it touches nothing",
	},
	{
		of: "protocol/...", may: []string{"protocol/..."}, extern: none, never: append([]string{"net/http", "database/sql"}, wire...),
		why: "wire formats are leaves: no I/O, no host, no SDK, so that everybody may use them",
	},
	{
		of: "internal/rules", may: none, extern: none,
		why: "a test helper that everything may import imports nothing",
	},

	{
		of: "sdk/runtime", may: []string{"protocol/codes"}, extern: none, never: append([]string{"google.golang.org/protobuf"}, wire...),
		why: "plugin authors and host rooms see plain Go, not the transport",
	},
	{
		of: "sdk/protomap", may: []string{"sdk/runtime", "proto/..."}, extern: []string{"google.golang.org/protobuf"},
		why: "the one place where contract types meet generated ones",
	},
	{
		of: "sdk/procnative", may: none, extern: []string{"golang.org/x/sys"}, never: wire,
		why: "running a native program needs neither the contract nor the host",
	},
	{
		of: "sdk/modeltest", may: []string{"sdk/modeltest/..."}, extern: []string{"github.com/coder/websocket"}, never: wire,
		why: "a fake model is useful without any of us",
	},
	{
		of: "sdk/...", may: []string{"sdk/...", "proto/...", "protocol/..."}, never: database,
		why: "what a plugin author imports must not drag the host in",
	},

	{
		of: "plugins/*", may: []string{"own", "sdk/...", "protocol/codes"}, never: append(database, wire...),
		why: "a plugin stands on the SDK alone; it can be thrown away, and the host never notices which one it is",
	},
	{
		of: "plugins/*/agent", may: []string{"own", "sdk/...", "protocol/codes", "protocol/jsonframe"}, never: wire,
		why: "an agent speaks the Go contract; the transport is the SDK's",
	},
	{
		of: "plugins/*/...", may: []string{"own", "protocol/jsonframe"}, never: append(wire, "google.golang.org/protobuf"),
		why: "the client of a native protocol knows nothing of OpenPhone",
	},

	{
		of: "host/policy", may: []string{"protocol/...", "sdk/runtime"}, extern: none, never: pure,
		why: "decisions are pure functions over one table",
	},
	{
		of: "host/ledger", may: []string{"protocol/...", "sdk/runtime"}, extern: none, never: pure,
		why: "the logic of receipts is proven without a disk, a network or a clock",
	},
	{
		of: "host/obs", may: []string{"protocol/codes"}, never: append(database, wire...),
		why: "everything logs, so the log imports nobody",
	},
	{
		of: "host/config", may: []string{"protocol/codes", "sdk/runtime"}, never: append(database, wire...),
		why: "settings are read before anything else lives",
	},
	{
		of: "host/store", may: []string{"sdk/runtime", "protocol/codes"}, extern: []string{"modernc.org/sqlite", "golang.org/x/sys", "golang.org/x/sync", "github.com/gofrs/flock"}, never: append([]string{"net/http"}, wire...),
		why: "the store knows no protocol and nothing above it",
	},
	{
		of: "host/consent", may: []string{"host/policy", "host/store", "host/obs", "protocol/...", "sdk/runtime"}, never: append(database, wire...),
		why: "consent is decided by policy and kept by the store; it knows no conversation and no phone",
	},
	{
		of: "host/runtimes/...", may: []string{"host/runtimes/...", "host/obs", "host/store", "host/config", "proto/...", "protocol/...", "sdk/..."}, never: database,
		why: "the only room that speaks gRPC to a plugin knows no conversation and no phone",
	},
	{
		of: "host/sessions/...", may: []string{"host/sessions/...", "host/ledger", "host/policy", "host/consent", "host/store", "host/obs", "protocol/...", "sdk/runtime"}, never: append(database, wire...),
		why: "conversations know neither a phone's wire format nor a runtime's",
	},
	{
		of: "host/phone/...", may: []string{"host/phone/...", "host/obs", "host/sessions", "host/sessions/snapshot", "protocol/...", "sdk/runtime"}, never: append(database, wire...),
		why: "a dialect translates; it decides nothing and stores nothing",
	},
	{
		of: "host/pairing", may: []string{"host/obs", "host/store", "protocol/..."}, never: wire,
		why: "identities know no runtime and no socket",
	},
	{
		of: "host/control", may: []string{"host/obs", "host/sessions", "host/runtimes", "host/pairing", "host/config", "proto/...", "protocol/...", "sdk/runtime", "sdk/protomap", "sdk/rpcerr"}, never: database,
		why: "the admin API shows what the rooms say of themselves",
	},
	{
		of: "host", may: []string{"host/...", "protocol/...", "sdk/..."},
		why: "the composition root builds every room and knows no runtime by name",
	},
	{
		of: "host/...", may: []string{"host/...", "protocol/...", "sdk/runtime"}, never: wire,
		why: "the host never imports a runtime, and gRPC is only at the process boundary",
	},

	{
		of: "cmd/*/...", may: []string{"cmd/own/...", "host/...", "sdk/...", "proto/...", "protocol/...", "internal/..."},
		why: "a main wires rooms; it is nobody's library",
	},
}

// Check names every import that no row allows.
func Check(t *tree.Tree) []string {
	var bad []string
	for _, f := range t.Files {
		if f.Dir == "buildtools" || strings.HasPrefix(f.Dir, "buildtools/") || strings.HasPrefix(f.Dir, "docs/") {
			continue
		}
		d, ok := find(f.Dir)
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: no room of this name: add a row to buildtools/importban", f.Path))
			continue
		}
		for imp, pos := range f.Imports {
			if !d.allows(f, imp) {
				bad = append(bad, fmt.Sprintf("%s:%d: %s must not import %s: %s", f.Path, pos.Line, f.Dir, imp, d.why))
			}
		}
	}
	sort.Strings(bad)
	return bad
}

func find(dir string) (door, bool) {
	for _, d := range doors {
		if match(d.of, dir) {
			return d, true
		}
	}
	return door{}, false
}

// allows applies the row. Tests may bring what a test needs, but not what the row forbids outright: a test in the wrong
// room is a dependency too.
func (d door) allows(f tree.File, imp string) bool {
	for _, n := range d.never {
		if (imp == n || (strings.Contains(n, ".") && strings.HasPrefix(imp, n+"/"))) && !f.Test {
			return false
		}
	}
	if dir, ok := tree.Ours(imp); ok {
		if f.Test && (dir == "internal/rules" || dir == "sdk/modeltest" || strings.HasPrefix(dir, "protocol/")) {
			return true
		}
		if strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "plugins/") {
			return owner(dir) == owner(f.Dir)
		}
		for _, m := range d.may {
			if m != "own" && match(m, dir) {
				return true
			}
		}
		return dir == f.Dir || (f.Test && !strings.HasPrefix(dir, "host"))
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") || d.extern == nil || f.Test {
		return true // the standard library, or a row that leaves modules to go.mod
	}
	for _, e := range d.extern {
		if imp == e || strings.HasPrefix(imp, e+"/") {
			return true
		}
	}
	return false
}

// owner is the plugin or command a folder belongs to.
func owner(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	if len(parts) < 2 {
		return dir
	}
	return parts[0] + "/" + parts[1]
}

func match(pattern, dir string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		n := strings.Count(base, "/") + 1
		parts := strings.Split(dir, "/")
		if len(parts) < n {
			return false
		}
		dir, pattern = strings.Join(parts[:n], "/"), base
	}
	ok, _ := path.Match(pattern, dir)
	return ok
}
