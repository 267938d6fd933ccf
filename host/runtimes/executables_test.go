package runtimes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
)

func put(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDiscover(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	put(t, filepath.Join(first, filePrefix+"codex"), "1", 0o700)
	put(t, filepath.Join(second, filePrefix+"codex"), "2", 0o700)
	put(t, filepath.Join(second, filePrefix+"pi"), "3", 0o700)
	put(t, filepath.Join(second, filePrefix+"notes.txt~"), "4", 0o700)
	put(t, filepath.Join(second, filePrefix+"Upper"), "5", 0o700)
	put(t, filepath.Join(second, filePrefix+".."), "6", 0o700)
	put(t, filepath.Join(second, filePrefix+"plain"), "7", 0o600)
	put(t, filepath.Join(second, "other"), "8", 0o700)
	if err := os.Mkdir(filepath.Join(second, filePrefix+"dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"codex": filepath.Join(first, filePrefix+"codex"), "pi": filepath.Join(second, filePrefix+"pi")}
	if diff := cmp.Diff(want, discover([]string{first, filepath.Join(first, "absent"), second})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestChecksumSeesEveryChange: also one that keeps size and modification time, after the checksum was remembered.
func TestChecksumSeesEveryChange(t *testing.T) {
	v := newVault(t.TempDir())
	path := put(t, filepath.Join(t.TempDir(), "x"), "one", 0o700)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	one, err := v.checksum(path)
	if err != nil {
		t.Fatal(err)
	}
	v.remember(path, fingerprint{ID: identity(info), Sum: one}) // as if it had settled
	put(t, path, "two", 0o700)
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	two, err := v.checksum(path)
	if err != nil || two == one {
		t.Errorf("%s %s %v", one, two, err)
	}
	if again := newVault(v.dir); again.sum[path].Sum != one {
		t.Errorf("what was remembered is lost: %v", again.sum)
	}
}

func TestVaultCopies(t *testing.T) {
	v := newVault(t.TempDir())
	path := put(t, filepath.Join(t.TempDir(), filePrefix+"x"), "program", 0o700)
	sum, err := v.checksum(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.take(path, strings.Repeat("0", 64)); !errors.Is(err, errChanged) {
		t.Errorf("another program was taken: %v", err)
	}
	dst, err := v.take(path, sum)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dst); err != nil || string(b) != "program" {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.Chmod(dst, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dst, "PROGRAM", 0o700) // somebody changed the copy
	if dst, err = v.take(path, sum); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dst); err != nil || string(b) != "program" {
		t.Errorf("the copy was not made again: %q, %v", b, err)
	}
	if err := v.rememberDescription(sum, &runtimev1.Description{RuntimeId: "x"}); err != nil {
		t.Fatal(err)
	}
	if d := v.description(sum); d.GetRuntimeId() != "x" {
		t.Errorf("%v", d)
	}
	if err := v.rememberDescription(sum, &runtimev1.Description{Name: strings.Repeat("x", maxDescription)}); err == nil {
		t.Error("a description without bound was kept")
	}
}

func TestPrune(t *testing.T) {
	v := newVault(t.TempDir())
	name := filePrefix + "x"
	for n, sum := range []string{"a", "b", "c", "d"} {
		if err := os.Mkdir(filepath.Join(v.dir, sum), 0o700); err != nil {
			t.Fatal(err)
		}
		path := put(t, filepath.Join(v.dir, sum, name), "x", 0o500)
		at := time.Unix(int64(n), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(v.dir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	v.prune(name, "a")
	var left []string
	dirs, err := os.ReadDir(v.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		left = append(left, d.Name())
	}
	if diff := cmp.Diff([]string{"a", "d", "other"}, left); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEnvironmentRules(t *testing.T) {
	host := []string{"PATH=/bin", "A_KEY=1", "AB=2", "OPENPHONE_HOME=/x", "CODEX_SANDBOX=1", "ODD", "=C:=x", "X=a=b"}
	for _, c := range []struct {
		name  string
		named []string
		extra map[string]string
		want  []string
	}{
		{"a minimum", nil, nil, []string{"PATH=/bin"}},
		{"by name", []string{"AB"}, nil, []string{"AB=2", "PATH=/bin"}},
		{"by prefix", []string{"A_*"}, nil, []string{"A_KEY=1", "PATH=/bin"}},
		{"a prefix ends with an underscore", []string{"A*", "*", "_*"}, nil, []string{"PATH=/bin"}},
		{"markers and our own stay here", []string{"OPENPHONE_*", "CODEX_*"}, nil, []string{"PATH=/bin"}},
		{"but for what a person passes on", nil, map[string]string{"CODEX_SANDBOX": ""}, []string{"CODEX_SANDBOX=1", "PATH=/bin"}},
		{"a person's value wins", []string{"AB"}, map[string]string{"AB": "3", "NEW": "4", "ABSENT": "", "B=D": "5"}, []string{"AB=3", "NEW=4", "PATH=/bin"}},
		{"values keep their signs", []string{"X"}, nil, []string{"PATH=/bin", "X=a=b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, environment(host, c.named, c.extra)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
