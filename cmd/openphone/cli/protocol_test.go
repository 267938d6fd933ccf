package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol"
)

func TestProtocolValidate(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "OP-17")
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	data, err := protocol.Manifests.ReadFile("openphone-commands.json")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	good := write("good.json", text)
	bad := write("bad.json", strings.NewReplacer(`"risk": "low"`, `"risk": "extreme", "superseded_by": "openphone.gone"`).Replace(text[:strings.Index(text, `"openphone.screen.get"`)])+`"openphone.x.y"}]}`)
	other := write("other.json", strings.Replace(text, `"device.status", "device.info"`, `"device.status"`, 1))
	gone := filepath.Join(dir, "gone.json")
	for _, c := range []struct {
		name     string
		args     []string
		status   int
		out, err string // dir is written D
	}{
		{"valid", []string{good}, 0, "1 file is valid.\n", ""},
		{"valid, as JSON", []string{good, good, "--json"}, 0, `{"valid":true,"violations":[]}` + "\n", ""},
		{"two, of which one is not there", []string{good, gone}, 1, "D/gone.json#: this cannot be read: no such file or directory\n", ""},
		{"against a release", []string{"--against", good, other}, 1, "D/other.json#/commands/0/aliases: \"device.info\" no longer names openphone.device.status: raise the version\n", ""},
		{"against itself", []string{"--against", good, good}, 0, "1 file is valid.\n", ""},
		{"as JSON, not valid", []string{"--json", gone}, 1, `{"valid":false,"violations":[{"file":"D/gone.json","pointer":"","message":"this cannot be read: no such file or directory"}]}` + "\n", ""},
		{"no file", nil, 2, "", "openphone: openphone protocol validate needs at least one file: run openphone protocol validate --help\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			status := Main(append([]string{"protocol", "validate"}, c.args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			clean := func(s string) string { return strings.ReplaceAll(s, dir, "D") }
			if diff := cmp.Diff([]any{c.status, c.out, c.err}, []any{status, clean(out.String()), clean(errs.String())}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("everything at once", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		status := Main([]string{"protocol", "validate", bad}, Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		for _, want := range []string{
			`/commands/1/risk: there is no risk "extreme"; it is one of low, medium, high`,
			"/commands/1/superseded_by: superseded_by stands only beside deprecated: true",
			`/commands/1/superseded_by: there is no command "openphone.gone"`,
			"/commands/2: android_tool is missing",
		} {
			if !strings.Contains(out.String(), bad+"#"+want) {
				t.Errorf("not said: %s", want)
			}
		}
		if status != 1 {
			t.Errorf("status %d:\n%s", status, out.String())
		}
	})
}
