package artifact

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// maxFile is the largest file that is delivered, in bytes.
const maxFile = 10 << 20

var errNotDeliverable = errors.New("artifact: not a deliverable file")

// identity is what makes a file the same file with the same content, as far as the file system tells.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

// open opens the file at a place, one directory after the other, and refuses any symbolic link on the way below the
// root: each step is compared with what was looked at, so that nothing can be exchanged in between. The file is regular,
// has one name and at most maxFile bytes.
func open(p place) (*os.File, identity, error) {
	dir, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, identity{}, err
	}
	defer func() { _ = dir.Close() }()
	parts := strings.Split(p.rel, "/")
	for _, name := range parts[:len(parts)-1] {
		seen, err := dir.Lstat(name)
		if err != nil {
			return nil, identity{}, err
		}
		if !seen.IsDir() {
			return nil, identity{}, errNotDeliverable
		}
		next, err := dir.OpenRoot(name)
		if err != nil {
			return nil, identity{}, err
		}
		_ = dir.Close()
		dir = next
		if got, err := dir.Stat("."); err != nil || !os.SameFile(seen, got) {
			return nil, identity{}, errNotDeliverable
		}
	}
	name := parts[len(parts)-1]
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, identity{}, err
	}
	if !deliverable(seen) {
		return nil, identity{}, errNotDeliverable
	}
	// Not blocking, should it have become a pipe by now.
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, identity{}, err
	}
	got, err := f.Stat()
	if err == nil && (!os.SameFile(seen, got) || !deliverable(got)) {
		err = errNotDeliverable
	}
	var id identity
	if err == nil {
		var links uint64
		if id, links, err = identify(f); err == nil && links != 1 {
			err = errNotDeliverable
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, identity{}, err
	}
	return f, id, nil
}

func deliverable(i fs.FileInfo) bool { return i.Mode().IsRegular() && i.Size() <= maxFile }
