package appserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
)

func program(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	rules.Covers(t, "CX-12")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	onPath := program(t, filepath.Join(root, "bin", "codex"), "")
	cmd := program(t, filepath.Join(root, "win", "codex.cmd"), "")
	script := program(t, filepath.Join(root, "win", "node_modules", "@openai", "codex", "bin", "codex.js"), "")
	launcher := program(t, filepath.Join(root, "npm", "@openai", "codex", "bin", "codex.js"), "")
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	native := program(t, filepath.Join(root, "npm", "@openai", "codex-linux-"+arch, "vendor", "triple", "bin", "codex"), "")
	if err := os.Symlink(launcher, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "home")
	plain := filepath.Join(home, "empty")

	for _, tc := range []struct {
		name    string
		f       Finder
		command string
		want    Executable
		err     error
	}{
		{"explicit, though missing", Finder{Path: filepath.Dir(onPath)}, "/no/such/codex", Executable{Path: "/no/such/codex"}, nil},
		{"on PATH", Finder{GOOS: "linux", Path: plain + string(os.PathListSeparator) + filepath.Dir(onPath)}, "", Executable{Path: onPath}, nil},
		{"nowhere", Finder{GOOS: "linux", Path: plain}, "", Executable{}, ErrMissing},
		{"linked launcher", Finder{GOOS: "linux"}, filepath.Join(root, "link"), Executable{Path: native}, nil},
		{"launcher alone", Finder{GOOS: "windows", Path: filepath.Dir(cmd)}, "", Executable{Path: "node", Args: []string{script}}, nil},
		{"no desktop application", Finder{GOOS: "darwin", Home: home, Path: filepath.Dir(onPath)}, "", Executable{Path: onPath}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.f.Find(tc.command)
			if !errors.Is(err, tc.err) {
				t.Fatalf("error %v", err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}

	bundled := program(t, filepath.Join(home, "Applications", "ChatGPT.app", "Contents", "Resources", "codex-cli", "bin", "codex"), "")
	f := Finder{GOOS: "darwin", Home: home, Path: filepath.Dir(onPath)}
	if got, err := f.Find(""); err != nil || got.Path != bundled {
		t.Errorf("with a desktop application: %v, %v", got, err)
	}
	if got, err := f.Find("codex-nightly"); !errors.Is(err, ErrMissing) {
		t.Errorf("another name: %v, %v", got, err)
	}
	if got, err := f.Find(onPath); err != nil || got.Path != onPath {
		t.Errorf("explicit path: %v, %v", got, err)
	}
}

func TestVersion(t *testing.T) {
	rules.Covers(t, "CX-13")
	for in, want := range map[string]string{
		"codex-cli 0.171.0\n":         "0.171.0",
		"0.158.0-alpha.2.1":           "0.158.0-alpha.2.1",
		"codex-cli 1.2.3+build.5":     "1.2.3+build.5",
		"codex-cli 1.2.3-rc.1+b":      "1.2.3-rc.1+b",
		"codex 0.171.0":               "",
		"codex-cli 0.171":             "",
		"codex-cli 0.171.0 something": "",
		"":                            "",
	} {
		if got := parseVersion(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for v, old := range map[string]bool{"0.153.2": true, "0.153.3": false, "0.153.3-alpha": false, "1.0.0": false, "0.99.9": true} {
		if olderThan(v, minVersion) != old {
			t.Errorf("%s older: %v", v, !old)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir := t.TempDir()
	for _, tc := range []struct {
		name, script, version string
		err                   error
	}{
		{"good", "#!/bin/sh\necho codex-cli 0.171.0\n", "0.171.0", nil},
		{"old", "#!/bin/sh\necho codex-cli 0.100.0\n", "0.100.0", ErrTooOld},
		{"odd", "#!/bin/sh\necho hello\n", "", errVersion},
	} {
		e := Executable{Path: program(t, filepath.Join(dir, tc.name), tc.script)}
		v, err := e.Version(context.Background(), os.Environ())
		if v != tc.version || !errors.Is(err, tc.err) {
			t.Errorf("%s: %q, %v", tc.name, v, err)
		}
	}
	if _, err := (Executable{Path: filepath.Join(dir, "missing")}).Version(context.Background(), nil); !errors.Is(err, ErrMissing) {
		t.Errorf("missing: %v", err)
	}
}

func TestServerVersion(t *testing.T) {
	for in, want := range map[string]string{
		"phone_host/0.171.0 (Linux; x86_64) unknown (phone_host; 0.0.1)": "0.171.0",
		"x/1.2.3": "1.2.3",
		"nothing": "",
	} {
		if got := (Server{UserAgent: in}).Version(); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestModelsAreBounded(t *testing.T) {
	rules.Covers(t, "CX-13")
	p := newPeer(t)
	done := make(chan error, 1)
	go func() { _, err := p.Models(t.Context()); done <- err }()
	for i := range 2 {
		p.hear(t)
		p.say(t, `{"id":`+string(rune('1'+i))+`,"result":{"data":[{"id":"a"},{"id":"b","hidden":true}],"nextCursor":"same"}}`+"\n")
	}
	if err := <-done; !errors.Is(err, errCatalog) {
		t.Errorf("a repeated cursor: %v", err)
	}
	var got []Model
	go func() { list, err := p.Models(t.Context()); got = list; done <- err }()
	p.hear(t)
	p.say(t, `{"id":3,"result":{"data":[{"id":"a"},{"id":"b","hidden":true}],"nextCursor":null}}`+"\n")
	if err := <-done; err != nil || len(got) != 1 {
		t.Errorf("models %v, %v", got, err)
	}
}
