package appserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// minVersion is the oldest version whose App Server is understood.
const minVersion = "0.153.3"

const (
	versionTimeout = 10 * time.Second
	versionOutput  = 4 << 10 // bytes of `codex --version` read
)

// Errors of discovery.
var (
	ErrMissing = errors.New("appserver: no codex executable")
	ErrTooOld  = errors.New("appserver: codex is too old")
	errVersion = errors.New("appserver: version not recognised")
)

// Executable is a command line that starts Codex.
type Executable struct {
	Path string   // program to run, absolute where it was found
	Args []string // arguments before Codex' own: the script when Path is Node
}

// Finder looks for the executable. The zero value looks at this computer.
type Finder struct {
	GOOS string              // operating system; empty: this one
	Home string              // home directory; empty: this user's
	Path string              // value of PATH; empty: of the environment
	Env  func(string) string // nil: os.Getenv
}

// Find resolves a command: an explicit one as it is, otherwise the desktop application's own runtime, otherwise PATH.
// Whoever starts the runtime and whoever asks its version use the same answer; nothing is tried after it fails.
func (f Finder) Find(command string) (Executable, error) {
	goos := f.GOOS
	if goos == "" {
		goos = runtime.GOOS
	}
	if command == "" {
		command = "codex"
	}
	if filepath.IsAbs(command) || strings.ContainsAny(command, `/\`) {
		return f.resolve(command, goos), nil
	}
	if goos == "darwin" && command == "codex" {
		if p := f.bundled(); p != "" {
			return f.resolve(p, goos), nil
		}
	}
	names := []string{command}
	if goos == "windows" && filepath.Ext(command) == "" {
		names = []string{command + ".exe", command + ".cmd", command}
	}
	path := f.Path
	if path == "" {
		path = f.env("PATH")
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			continue
		}
		for _, name := range names {
			if p := filepath.Join(dir, name); runnable(p, goos) {
				return f.resolve(p, goos), nil
			}
		}
	}
	return Executable{}, ErrMissing
}

func (f Finder) env(name string) string {
	if f.Env != nil {
		return f.Env(name)
	}
	return os.Getenv(name)
}

// bundled is the runtime inside a desktop application. An application without one is no installation.
func (f Finder) bundled() string {
	home := f.Home
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	for _, root := range []string{filepath.Join(home, "Applications"), "/Applications"} {
		for _, app := range []string{"Codex.app", "ChatGPT.app"} {
			for _, inner := range []string{
				"Contents/Resources/codex",
				"Contents/Resources/codex-cli/CodexCLI.app/Contents/MacOS/codex",
				"Contents/Resources/codex-cli/bin/codex",
			} {
				if p := filepath.Join(root, app, filepath.FromSlash(inner)); runnable(p, "darwin") {
					return p
				}
			}
		}
	}
	return ""
}

func runnable(path, goos string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (goos == "windows" || info.Mode().Perm()&0o111 != 0)
}

// resolve follows links and launchers to the program itself. A launcher script becomes the native program beside it,
// where there is one, so that no Node process stands between; otherwise Node runs it, never a shell.
func (f Finder) resolve(path, goos string) Executable {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if goos == "windows" && strings.EqualFold(filepath.Ext(path), ".cmd") {
		script := filepath.Join(filepath.Dir(path), "node_modules", "@openai", "codex", "bin", "codex.js")
		if _, err := os.Stat(script); err == nil {
			path = script
		}
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".js", ".mjs", ".cjs":
		if native := nativeBeside(path, goos); native != "" {
			return Executable{Path: native}
		}
		return Executable{Path: "node", Args: []string{path}}
	}
	return Executable{Path: path}
}

// nativeBeside finds the native program of the npm package a launcher script belongs to.
func nativeBeside(script, goos string) string {
	name := "codex"
	if goos == "windows" {
		name = "codex.exe"
	}
	pkg := filepath.Dir(filepath.Dir(script))
	platform := map[string]string{"windows": "win32"}[goos]
	if platform == "" {
		platform = goos
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	optional := "codex-" + platform + "-" + arch
	for _, root := range []string{
		filepath.Join(pkg, "node_modules", "@openai", optional),
		filepath.Join(filepath.Dir(pkg), optional),
		pkg,
	} {
		entries, err := os.ReadDir(filepath.Join(root, "vendor"))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if p := filepath.Join(root, "vendor", e.Name(), "bin", name); e.IsDir() && runnable(p, goos) {
				return p
			}
		}
	}
	return ""
}

var versionLine = regexp.MustCompile(`^(?:codex-cli )?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$`)

// parseVersion reads the answer of `codex --version`; empty when it has another form.
func parseVersion(out string) string {
	m := versionLine.FindStringSubmatch(strings.TrimSpace(out))
	if m == nil {
		return ""
	}
	return m[1]
}

// Version asks the executable. It proves nothing about readiness, which is a successful Initialize.
func (e Executable) Version(ctx context.Context, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Path, append(append([]string{}, e.Args...), "--version")...)
	cmd.Env = env
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return "", ErrMissing
		}
		return "", err
	}
	text, _ := io.ReadAll(io.LimitReader(out, versionOutput))
	if err := cmd.Wait(); err != nil {
		return "", err
	}
	v := parseVersion(string(bytes.TrimSpace(text)))
	switch {
	case v == "":
		return "", errVersion
	case olderThan(v, minVersion):
		return v, ErrTooOld
	}
	return v, nil
}

// olderThan compares the three numbers; a prerelease counts as its release.
func olderThan(v, min string) bool {
	a, b := numbers(v), numbers(min)
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(v string) (n [3]int) {
	v, _, _ = strings.Cut(v, "+")
	v, _, _ = strings.Cut(v, "-")
	for i, s := range strings.SplitN(v, ".", 3) {
		n[i], _ = strconv.Atoi(s)
	}
	return n
}
