package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/protocol/clawket"
)

func chunk(run, mode, s string) update {
	return update{Update: clawket.Update{Type: clawket.UpdateMessageChunk, RunID: run, TextMode: mode, Text: &s}}
}

func TestTextAsAPhoneShowsIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		updates []update
		want    string
	}{
		{"snapshots replace", []update{chunk("r", "snapshot", "a"), chunk("r", "snapshot", "a \n")}, "a \n"},
		{"deltas append", []update{chunk("r", "delta", "a "), chunk("r", "delta", "\tb")}, "a \tb"},
		{"another run's", []update{chunk("r", "delta", "a"), chunk("x", "delta", "b")}, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := text(tt.updates, "r"); got != tt.want {
				t.Errorf("text %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	g := &ground{}
	secret := g.plant("Token")
	g.searchHome(home)
	g.showPublicly("a title")
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := g.leaks(); len(found) != 1 || !strings.Contains(found[0], "a title") {
		t.Errorf("a search that reads nothing gives %q", found)
	}
	write("state.db", "binary\x00a title\x00")
	write("executables/sum/plugin", secret)
	write("plugins/demo/journal.jsonl", secret)
	if found := g.leaks(); len(found) != 0 {
		t.Errorf("leaks %q", found)
	}
	write("plugins/codex/file", secret)
	write("logs/openphone.log", "x"+secret)
	if found := g.leaks(); len(found) != 2 {
		t.Errorf("leaks %q, want two", found)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := &report{out: &out, json: true, filter: "b", passed: map[string]int{}, failed: map[string]int{}}
	if r.wants("codex/a") || !r.wants("codex/b") {
		t.Error("the filter is not by part of the name")
	}
	r.line("codex", "codex/b", 0, "", nil)
	r.line("codex", "codex/bb", 0, "", errors.New("no"))
	r.total("codex")
	r.total("kill")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || r.failures() != 1 {
		t.Fatalf("%d failures in %q", r.failures(), lines)
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("no JSON: %s", l)
		}
	}
	if !strings.Contains(lines[2], "e2e codex 1/2") {
		t.Errorf("total %s", lines[2])
	}
}

func TestKillPointsAreTwelve(t *testing.T) {
	t.Parallel()
	if len(pluginPoints) != 12 || len(hostPoints) != 12 || len(killBackends) != 2 {
		t.Errorf("%d plugin points, %d host points, %d backends", len(pluginPoints), len(hostPoints), len(killBackends))
	}
	faults, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(append([]string{}, pluginPoints...), hostPoints...) {
		if !strings.Contains(string(faults), "`"+p+"`") {
			t.Errorf("docs/faults.md does not name %s", p)
		}
	}
}
