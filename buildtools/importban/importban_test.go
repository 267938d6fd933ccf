package importban

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/openphone-host/openphone/buildtools/tree"
)

const us = tree.Module

func TestDoors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, imp, want string }{
		{"a leaf must not know the store", "protocol/clawket/x.go", us + "/host/store", "wire formats are leaves"},
		{"a leaf may use a leaf", "protocol/clawket/x.go", us + "/protocol/jsonframe", ""},
		{"a leaf brings no module", "protocol/codes/x.go", "github.com/coder/websocket", "wire formats are leaves"},
		{"the contract stands alone", "proto/openphone/runtime/v1/x.go", us + "/protocol/codes", "depends on nothing of ours"},
		{"contract types hide the transport", "sdk/runtime/x.go", "google.golang.org/grpc/status", "plain Go"},
		{"the SDK never imports the host", "sdk/serve/x.go", us + "/host/obs", "drag the host in"},
		{"a plugin imports the SDK", "plugins/demo/main.go", us + "/sdk/serve", ""},
		{"a plugin imports its own parts", "plugins/codex/main.go", us + "/plugins/codex/agent", ""},
		{"a plugin imports no other plugin", "plugins/codex/agent/x.go", us + "/plugins/demo", "speaks the Go contract"},
		{"an agent imports no proto", "plugins/codex/agent/x.go", us + "/proto/openphone/runtime/v1", "speaks the Go contract"},
		{"a native client imports no SDK", "plugins/codex/appserver/x.go", us + "/sdk/runtime", "knows nothing of OpenPhone"},
		{"policy has no network", "host/policy/x.go", "net", "pure functions"},
		{"policy may use net/url's kin", "host/policy/x.go", "net/netip", ""},
		{"the store knows no room above", "host/store/x.go", us + "/host/sessions", "knows no protocol"},
		{"a dialect stores nothing", "host/phone/conversations/x.go", us + "/host/store", "stores nothing"},
		{"gRPC stays at the border", "host/sessions/x.go", "google.golang.org/grpc", "neither a phone's wire format"},
		{"the host imports no runtime", "host/host.go", us + "/plugins/codex/agent", "no runtime by name"},
		{"a main imports no other main", "cmd/openphone/main.go", us + "/cmd/openphone-conform", "nobody's library"},
		{"a main imports its own parts", "cmd/openphone/main.go", us + "/cmd/openphone/cli", ""},
		{"a test may name rules", "protocol/clawket/x_test.go", us + "/internal/rules", ""},
		{"a test does not climb to the host", "sdk/serve/x_test.go", us + "/host", "drag the host in"},
		{"a folder without a row", "misc/x.go", "fmt", "no room of this name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr, err := tree.Load(fstest.MapFS{c.file: {Data: []byte("package x\nimport _ \"" + c.imp + "\"\n")}})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(Check(tr), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
