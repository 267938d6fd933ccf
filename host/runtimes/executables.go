package runtimes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
)

const (
	// filePrefix begins the file name of every plugin executable; the rest is the id of its runtime.
	filePrefix = "openphone-runtime-"
	// settled is how old a file's change must be before its checksum is remembered by it: a younger file may change
	// again within one tick of the file system's clock.
	settled = 2 * time.Second
	// copiesKept is how many verified executables stay per plugin: the one in use and the one before it.
	copiesKept = 2
	// maxDescription bounds a remembered description.
	maxDescription = 1 << 20
)

// discover lists plugin executables by runtime id. The first directory that has one wins. A directory that cannot be
// read is as good as an empty one.
func discover(dirs []string) map[string]string {
	found := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := e.Name()
			if runtime.GOOS == "windows" {
				var ok bool
				if name, ok = strings.CutSuffix(name, ".exe"); !ok {
					continue
				}
			}
			id, ok := strings.CutPrefix(name, filePrefix)
			if !ok || !validID(id) || found[id] != "" {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || (runtime.GOOS != "windows" && info.Mode()&0o111 == 0) {
				continue
			}
			if abs, err := filepath.Abs(path); err == nil {
				found[id] = abs
			}
		}
	}
	return found
}

// pinName is what an executable is called where checksums are kept, on every system alike.
func pinName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// validID: 1 to 64 characters of a-z, 0-9, dot, dash, and no way to leave a directory.
func validID(id string) bool {
	if id == "" || len(id) > 64 || id[0] == '.' || strings.Contains(id, "..") {
		return false
	}
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}

// vault keeps verified copies of executables, named by their checksum, in a directory of the host's own: what was checked
// is what is started, and the version before the last upgrade stays at hand. It also remembers the checksums of files that
// have not changed and the description of each executable. Safe for concurrent use.
type vault struct {
	dir string
	mu  sync.Mutex
	sum map[string]fingerprint // guarded by mu; by path
}

// fingerprint tells that a file is the one whose checksum was computed.
type fingerprint struct {
	ID  string `json:"id"` // device, inode and times, as far as the system has them
	Sum string `json:"sum"`
}

func newVault(dir string) *vault {
	v := &vault{dir: dir, sum: map[string]fingerprint{}}
	if b, err := os.ReadFile(filepath.Join(dir, "index.json")); err == nil {
		_ = json.Unmarshal(b, &v.sum) // a damaged index only costs the time to compute again
	}
	return v
}

// checksum is the sha256 of a file in hex.
func (v *vault) checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	id := identity(info)
	v.mu.Lock()
	known, ok := v.sum[path]
	v.mu.Unlock()
	if ok && id != "" && known.ID == id {
		return known.Sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if after, err := f.Stat(); err == nil && id != "" && identity(after) == id && time.Since(changed(info)) > settled {
		v.remember(path, fingerprint{ID: id, Sum: sum})
	}
	return sum, nil
}

func (v *vault) remember(path string, f fingerprint) {
	v.mu.Lock()
	v.sum[path] = f
	b, err := json.MarshalIndent(v.sum, "", " ")
	v.mu.Unlock()
	if err == nil {
		_ = writeFile(filepath.Join(v.dir, "index.json"), b, 0o600)
	}
}

// take gives the verified copy of the executable with the checksum, made from path if there is none yet.
func (v *vault) take(path, sum string) (string, error) {
	dir := filepath.Join(v.dir, sum)
	dst := filepath.Join(dir, filepath.Base(path))
	if got, err := v.checksum(dst); err == nil && got == sum {
		return dst, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	src, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer src.Close()
	tmp, err := os.CreateTemp(dir, ".copy-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name())
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(tmp, h), src)
	err = errors.Join(err, tmp.Chmod(0o500), tmp.Close())
	if err != nil {
		return "", err
	}
	if hex.EncodeToString(h.Sum(nil)) != sum {
		return "", errChanged
	}
	return dst, os.Rename(tmp.Name(), dst)
}

// errChanged: the file is not the one that was pinned.
var errChanged = errors.New("the executable has changed")

// description gives what was remembered for a checksum.
func (v *vault) description(sum string) *runtimev1.Description {
	b, err := os.ReadFile(filepath.Join(v.dir, sum, "description.binpb"))
	if err != nil || len(b) > maxDescription {
		return nil
	}
	d := &runtimev1.Description{}
	if proto.Unmarshal(b, d) != nil {
		return nil
	}
	return d
}

func (v *vault) rememberDescription(sum string, d *runtimev1.Description) error {
	b, err := proto.Marshal(d)
	if err != nil {
		return err
	}
	if len(b) > maxDescription {
		return fmt.Errorf("the description has %d bytes", len(b))
	}
	return writeFile(filepath.Join(v.dir, sum, "description.binpb"), b, 0o600)
}

// prune removes old copies of one executable; those in keep stay, and the newest others up to copiesKept.
func (v *vault) prune(name string, keep ...string) {
	dirs, err := os.ReadDir(v.dir)
	if err != nil {
		return
	}
	type old struct {
		sum string
		at  time.Time
	}
	var list []old
	for _, d := range dirs {
		if info, err := os.Stat(filepath.Join(v.dir, d.Name(), name)); err == nil && !slices.Contains(keep, d.Name()) {
			list = append(list, old{d.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b old) int { return b.at.Compare(a.at) })
	for i, o := range list {
		if i+len(keep) >= copiesKept {
			_ = os.RemoveAll(filepath.Join(v.dir, o.sum))
		}
	}
}

func writeFile(path string, b []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
