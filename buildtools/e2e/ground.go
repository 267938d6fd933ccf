package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// codexVersion is the Codex all scenarios are about.
const codexVersion = "0.171.0"

// ground is what all parts of a run share: the executables and a directory for everything that is written.
type ground struct {
	root  string // checkout
	dir   string // of this run
	bin   string // the product as it was built
	fault string // the same with a host that dies at kill points
	codex string // native executable

	mu      sync.Mutex
	secrets []string // planted texts that must turn up nowhere
	public  []string // planted texts that must turn up: they prove that the search finds what is there
	homes   []string // data directories to search for them
}

func newGround(ctx context.Context, root string) (*ground, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	g := &ground{root: root}
	if g.codex, err = findCodex(ctx, filepath.Join(root, ".cache", "codex")); err != nil {
		return nil, err
	}
	// To Codex a home under the system's temporary directory is another one, and all files there may be written.
	base := filepath.Join(root, ".cache", "e2e")
	if below(base, "/tmp") || below(base, os.TempDir()) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		base = filepath.Join(cache, "openphone-test", "e2e")
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	if g.dir, err = os.MkdirTemp(base, "run-"); err != nil {
		return nil, err
	}
	return g, g.copyProduct(ctx, filepath.Join(root, "bin"))
}

// below reports that a path lies in a directory.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func exe(name string) string {
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		return name + ".exe"
	}
	return name
}

// findCodex finds the native executable inside the npm package, which it installs when it is not there.
func findCodex(ctx context.Context, cache string) (string, error) {
	pattern := filepath.Join(cache, "node_modules", "@openai", "codex-*", "vendor", "*", "bin", exe("codex"))
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		if err := os.MkdirAll(cache, 0o755); err != nil {
			return "", err
		}
		npm := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", cache, "@openai/codex@"+codexVersion)
		npm.Stderr = os.Stderr
		if err := npm.Run(); err != nil {
			return "", fmt.Errorf("npm install: %w", err)
		}
		found, _ = filepath.Glob(pattern)
	}
	if len(found) == 0 {
		return "", errors.New("the npm package holds no Codex for this computer")
	}
	out, err := exec.CommandContext(ctx, found[0], "--version").Output()
	if err != nil || !strings.Contains(string(out), codexVersion) {
		return "", fmt.Errorf("%s is not Codex %s: %s %v", found[0], codexVersion, bytes.TrimSpace(out), err)
	}
	return found[0], nil
}

// copyProduct takes the built executables aside, so that a build meanwhile changes nothing, and builds the second host.
// Each set has the checksums the build would have written.
func (g *ground) copyProduct(ctx context.Context, built string) error {
	g.bin, g.fault = filepath.Join(g.dir, "bin"), filepath.Join(g.dir, "fault")
	pins := map[string]string{}
	for _, name := range []string{"openphone-runtime-codex", "openphone-runtime-demo"} {
		b, err := os.ReadFile(filepath.Join(built, exe(name)))
		if err != nil {
			return fmt.Errorf("run make build first: %w", err)
		}
		sum := sha256.Sum256(b)
		pins[exe(name)] = hex.EncodeToString(sum[:])
		for _, dir := range []string{g.bin, g.fault} {
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, exe(name)), b, 0o755)); err != nil {
				return err
			}
		}
	}
	b, err := json.Marshal(pins)
	if err != nil {
		return err
	}
	for _, dir := range []string{g.bin, g.fault} {
		if err := os.WriteFile(filepath.Join(dir, "plugins.json"), b, 0o644); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(built, exe("openphone")), filepath.Join(g.bin, exe("openphone")), 0o755); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", "fault", "-o", filepath.Join(g.fault, exe("openphone")), "./cmd/openphone")
	build.Dir, build.Stderr = g.root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build.Run()
}

func copyFile(from, to string, mode fs.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", b, mode); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// plant makes a text that nothing but the conversation itself may hold.
func (g *ground) plant(what string) string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	s := "planted" + what + hex.EncodeToString(b[:])
	g.keepSecret(s)
	return s
}

func (g *ground) keepSecret(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.secrets = append(g.secrets, s)
}

// showPublicly notes a text that the host may keep, such as a title.
func (g *ground) showPublicly(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.public = append(g.public, s)
}

func (g *ground) searchHome(dir string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.homes = append(g.homes, dir)
}

// leaks searches all logs and databases, and what the hosts printed, for what was planted.
func (g *ground) leaks() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []string
	seen := map[string]bool{}
	for _, home := range g.homes {
		err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "executables" || path == filepath.Join(home, "plugins", "demo")):
				return filepath.SkipDir // programs, and the demo's journal, which is its native store
			case !d.Type().IsRegular():
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, s := range g.secrets {
				if bytes.Contains(b, []byte(s)) {
					found = append(found, d.Name()+" holds "+s[:min(16, len(s))])
				}
			}
			for _, s := range g.public {
				seen[s] = seen[s] || bytes.Contains(b, []byte(s))
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			found = append(found, "not searched: "+err.Error())
		}
	}
	for _, s := range g.public {
		if !seen[s] {
			found = append(found, "the search does not even find "+s)
		}
	}
	return found
}

// orphans lists the processes of this run that are still there: those with its directory in their environment. It
// works on Linux alone.
func (g *ground) orphans() ([]string, error) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		return nil, err
	}
	var left []string
	processes, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range processes {
		env, err := os.ReadFile(p)
		if err != nil || !bytes.Contains(env, []byte(g.dir)) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "comm"))
		left = append(left, string(bytes.TrimSpace(name))+" "+filepath.Base(filepath.Dir(p)))
	}
	return left, nil
}
