package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// one is the runtime most benchmarks use, three what a start and idling are also measured with.
const one = "bench"

var three = []string{"bench-a", "bench-b", "bench-c"}

// ground is the directory of a run: the host and the plugin, built as the product is, and the data directories.
type ground struct {
	root string // checkout
	dir  string
}

// newGround builds what is measured. The directory is in the checkout, so that it is on a real disk.
func newGround(ctx context.Context, root string) (*ground, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	base := filepath.Join(root, ".cache", "bench")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	g := &ground{root: root}
	if g.dir, err = os.MkdirTemp(base, "run-"); err != nil {
		return nil, err
	}
	host, plugin := filepath.Join(g.dir, "openphone"), filepath.Join(g.dir, "plugin")
	err = errors.Join(build(ctx, root, host, "./cmd/openphone"), build(ctx, filepath.Join(root, "buildtools"), plugin, "./bench/plugin"))
	if err == nil {
		err = errors.Join(g.equip("one", one), g.equip("three", three...), g.equip("bare", append([]string{one}, three...)...))
	}
	if err != nil {
		_ = os.RemoveAll(g.dir)
		return nil, err
	}
	return g, nil
}

// tags are those of the Makefile.
const tags = "grpcnotrace"

func build(ctx context.Context, dir, out, pkg string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", tags, "-o", out, pkg)
	c.Dir, c.Stderr, c.Env = dir, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	return c.Run()
}

// equip fills a directory with the host and a plugin executable for each id, and their checksums. The executables differ
// in the last bytes: for the host and for the memory of the computer they are different programs, as real ones are.
func (g *ground) equip(set string, ids ...string) error {
	dir := filepath.Join(g.dir, set)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	host, err := os.ReadFile(filepath.Join(g.dir, "openphone"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "openphone"), host, 0o700); err != nil {
		return err
	}
	code, err := os.ReadFile(filepath.Join(g.dir, "plugin"))
	if err != nil {
		return err
	}
	pins := map[string]string{}
	for _, id := range ids {
		program := append(code[:len(code):len(code)], set+"/"+id...)
		sum := sha256.Sum256(program)
		pins["openphone-runtime-"+id] = hex.EncodeToString(sum[:])
		if err := os.WriteFile(g.plugin(set, id), program, 0o700); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(pins)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "plugins.json"), raw, 0o600)
}

// plugin is the path of a plugin executable.
func (g *ground) plugin(set, id string) string {
	return filepath.Join(g.dir, set, "openphone-runtime-"+id)
}

// machine says where the numbers come from.
func (g *ground) machine(ctx context.Context) string {
	model, memory := "unknown processor", "unknown memory"
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(v)
			break
		}
	}
	var kib int
	if n, _ := fmt.Sscanf(read("/proc/meminfo"), "MemTotal: %d kB", &kib); n == 1 {
		memory = fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
	}
	kernel := strings.TrimSpace(read("/proc/sys/kernel/osrelease"))
	commit := "no commit"
	git := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=10")
	git.Dir = g.root
	if out, err := git.Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("%s, %d processors, %s, %s, %s %s, %s, commit %s",
		model, runtime.NumCPU(), memory, g.fileSystem(), runtime.GOOS, kernel, runtime.Version(), commit)
}

// fileSystem is what the data directories lie on.
func (g *ground) fileSystem() string {
	var st syscall.Statfs_t
	if syscall.Statfs(g.dir, &st) != nil {
		return "unknown file system"
	}
	names := map[int64]string{0xef53: "ext4", 0x9123683e: "btrfs", 0x58465342: "xfs", 0x01021994: "tmpfs", 0x794c7630: "overlayfs"}
	if name, ok := names[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", st.Type)
}

func read(path string) string {
	raw, _ := os.ReadFile(path) // an empty answer is visible in the result
	return string(raw)
}
