package agent

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	archivedPages = 2                // native pages one refresh may read
	archivedKept  = 30 * time.Second // how long an answer is good for
)

// archivedLookup remembers one look into the archive: for which threads, and what it found. A signature of fixed size
// stands for the threads.
type archivedLookup struct {
	signature [sha256.Size]byte
	at        time.Time
	found     []runtime.Session
	changes   uint64 // grows with each management write
}

// noteManagement voids what is known about the archive after a name, an archive state or a thread was changed.
func (l *library) noteManagement() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.archived.changes++
	l.archived.at = time.Time{}
}

// findArchived looks for threads the host knows that a complete active list does not have: at most two pages of the
// archive, and not again for 30 s (CX-07). Only a thread that is positively there, under the same directory, is
// reported; everything else says nothing.
func (l *library) findArchived(ctx context.Context, active *scan, bound []runtime.SessionRef) ([]runtime.Session, error) {
	missing := map[string]string{}
	for _, ref := range bound {
		if ref.NativeID != "" && !active.seen[ref.NativeID] {
			missing[ref.NativeID] = ref.ProjectPath
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	signature := signatureOf(missing)
	l.mu.Lock()
	known, changes := l.archived, l.archived.changes
	l.mu.Unlock()
	if known.signature == signature && l.now().Sub(known.at) < archivedKept {
		return known.found, nil
	}
	var found []runtime.Session
	s := &scan{library: l, native: active.native, archived: true, seen: map[string]bool{}, available: map[string]bool{}}
	_, err := s.run(ctx, archivedPages, func(batch []runtime.Session) error {
		for _, row := range batch {
			dir, ok := missing[row.Ref.NativeID]
			if ok && (dir == "" || samePath(dir, row.Ref.ProjectPath)) {
				found = append(found, row)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.archived.changes == changes {
		l.archived = archivedLookup{signature: signature, at: l.now(), found: found, changes: changes}
		return found, nil
	}
	return nil, nil // somebody changed something meanwhile: the next refresh looks again
}

func signatureOf(threads map[string]string) [sha256.Size]byte {
	list := make([]string, 0, len(threads))
	for id, dir := range threads {
		list = append(list, id+"\x00"+dir+"\x00")
	}
	slices.Sort(list)
	h := sha256.New()
	for _, s := range list {
		h.Write([]byte(s))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
