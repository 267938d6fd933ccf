// Package artifact delivers files to phones: those an assistant named in its text inside the session's project, and
// images it made. A phone gets an opaque id bound to one conversation and reads in pieces; nothing is copied, kept on
// disk or sent anywhere else (ART-01, ART-02, ART-03).
//
// It knows no phone and no runtime: host/sessions says what an assistant wrote and which directories are verified. A
// Shelf is safe for concurrent use, starts no goroutine and holds its lock during no I/O. Everything it remembers is
// bounded and short-lived; what was forgotten can be found again by reading the history page once more.
package artifact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

const (
	// pieceSize is the size of every piece but the last, in bytes.
	pieceSize = 128 << 10

	maxRoots          = 4  // directories of a conversation
	maxFilesOf        = 16 // files of one message
	maxImagesOf       = 16 // images of one message
	maxFiles          = 128
	maxImages         = 128
	maxImage          = 5 << 20  // bytes of one image
	maxImagesTogether = 20 << 20 // bytes of all images
	maxPages          = 256      // remembered places in histories
	maxRetired        = 256      // conversations whose end a running read is checked against

	fileLife  = 15 * time.Minute
	imageLife = 2 * time.Minute
)

// Options of a Shelf.
type Options struct {
	// Home is what ~ stands for; empty: nothing.
	Home string
	// Reread reads the history page that begins at cursor once more and projects its messages. nil: what was forgotten
	// stays unknown.
	Reread func(ctx context.Context, session, cursor string) error
}

// Image is an image an assistant delivered.
type Image struct {
	MIME, Name string
	Data       []byte // nil: not at hand, or too large
}

// Ref is what a message shows of a file or an image.
type Ref struct {
	ID    string // file_ or image_ and 64 hex digits; empty: an image beyond the limits, which is named but not sent
	Image bool   // a phone shows it; otherwise it is a file to open
	MIME  string
	Name  string
	Data  []byte // of an image with an ID
}

// Projection is what becomes of a message.
type Projection struct {
	Refs []Ref
	// Cut reports that links became files; Display is the text without them, and may be empty then.
	Cut     bool
	Display string
}

// Info describes a file.
type Info struct {
	ID, Name, MIME string
	Size           int64
}

// Piece is a piece of a file.
type Piece struct {
	Offset, Total int64
	Data          []byte
	Done          bool
}

// Shelf holds the handles of one runtime's conversations.
type Shelf struct {
	home   string
	reread func(ctx context.Context, session, cursor string) error

	rereading atomic.Bool // one Reread at a time

	mu      sync.Mutex // guards the rest
	handles map[string]*handle
	pages   map[string]*page
	clock   uint64 // counts uses and retirements
	retired []retirement
}

// handle is a file or an image that can be read.
type handle struct {
	Info
	session string
	file    *fileHandle // nil: an image
	data    []byte
	expires time.Time
	used    uint64
}

type fileHandle struct {
	place
	identity
}

// page is where in a history an id was last seen.
type page struct {
	session, cursor string
	used            uint64
}

type retirement struct {
	session string
	at      uint64
}

// Reading is the permit to project messages read from a history. It is void once the conversation is retired, so that a
// slow read brings nothing back.
type Reading struct {
	session, cursor string
	begun           uint64
}

// New makes an empty Shelf.
func New(o Options) *Shelf {
	return &Shelf{home: o.Home, reread: o.Reread, handles: map[string]*handle{}, pages: map[string]*page{}}
}

// Begin is called before a history page is read, or before the end of a run is told; cursor is how to read the page
// again, empty for the newest.
func (s *Shelf) Begin(session, cursor string) Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Reading{session, cursor, s.clock}
}

// Retire forgets all of a conversation, because it is reset or deleted.
func (s *Shelf) Retire(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, h := range s.handles {
		if h.session == session {
			delete(s.handles, id)
		}
	}
	for id, p := range s.pages {
		if p.session == session {
			delete(s.pages, id)
		}
	}
	s.clock++
	s.retired = append(s.retired, retirement{session, s.clock})
	if n := len(s.retired); n > maxRetired {
		s.retired = slices.Clone(s.retired[n-maxRetired:])
	}
}

// void reports that a conversation was, or may have been, retired since a reading began; s.mu is held.
func (s *Shelf) void(r Reading) bool {
	if len(s.retired) == maxRetired && r.begun < s.retired[0].at {
		return true // too long ago to know
	}
	for _, x := range s.retired {
		if x.session == r.session && x.at > r.begun {
			return true
		}
	}
	return false
}

// Project makes the files and images of one assistant message. Text of anybody else, and of tools, must not get here.
// roots are the verified directories of the conversation.
func (s *Shelf) Project(r Reading, roots []string, text string, images []Image) Projection {
	var out Projection
	var found []*handle
	var cut []reference
	byPlace := map[place]int{} // index in found
	written := references(text)
	var resolved []string
	if len(written) > 0 {
		resolved = resolve(roots)
	}
	for _, ref := range written {
		h := s.deliver(r.session, ref.target, resolved)
		if h == nil {
			continue
		}
		if _, known := byPlace[h.file.place]; !known {
			if len(found) == maxFilesOf {
				continue
			}
			byPlace[h.file.place] = len(found)
			found = append(found, h)
		}
		if ref.start < ref.end {
			cut = append(cut, ref)
		}
	}
	for _, h := range found {
		out.Refs = append(out.Refs, Ref{ID: h.ID, Image: raster(h.MIME), MIME: h.MIME, Name: h.Name})
	}
	for i, img := range images {
		ref := Ref{Image: true, MIME: img.MIME, Name: img.Name}
		if i < maxImagesOf && raster(img.MIME) && len(img.Data) > 0 && len(img.Data) <= maxImage {
			ref.ID, ref.Data = imageID(r.session, img.MIME, img.Data), img.Data
			found = append(found, &handle{
				Info:    Info{ID: ref.ID, Name: cmp.Or(img.Name, "image"), MIME: img.MIME, Size: int64(len(img.Data))},
				session: r.session, data: img.Data,
			})
		}
		out.Refs = append(out.Refs, ref)
	}
	if len(cut) > 0 {
		out.Cut, out.Display = true, without(text, cut)
	}
	if !s.keep(r, found) {
		return Projection{}
	}
	return out
}

// resolve makes the roots real directories; one that does not exist delivers nothing.
func resolve(roots []string) []string {
	var out []string
	for _, root := range roots[:min(len(roots), maxRoots)] {
		if !filepath.IsAbs(root) {
			continue
		}
		for _, p := range []string{real(root), filepath.Clean(root)} { // also as the assistant may write it
			if p != "" && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func real(root string) string {
	p, err := filepath.EvalSymlinks(root)
	if err != nil {
		return ""
	}
	return p
}

// deliver finds the file a reference names; nil when there is none that may be delivered.
func (s *Shelf) deliver(session, target string, roots []string) *handle {
	for _, p := range places(target, s.home, roots) {
		f, id, err := open(p)
		if err != nil {
			continue
		}
		_ = f.Close()
		if r := real(p.root); r != "" {
			p.root = r // one name for one place
		}
		return &handle{
			Info: Info{
				ID: fileID(session, p, id), Name: path.Base(p.rel), MIME: types[strings.ToLower(path.Ext(p.rel))], Size: id.size,
			},
			session: session, file: &fileHandle{p, id},
		}
	}
	return nil
}

// keep remembers handles, forgetting expired and least recently used ones. It reports false for a void reading.
func (s *Shelf) keep(r Reading, found []*handle) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.void(r) {
		return false
	}
	for _, h := range found {
		s.clock++
		h.used, h.expires = s.clock, now.Add(fileLife)
		if h.file == nil {
			h.expires = now.Add(imageLife)
		}
		s.handles[h.ID] = h
		s.pages[h.ID] = &page{r.session, r.cursor, s.clock}
	}
	s.trim(now)
	return true
}

// trim keeps the bounds; s.mu is held.
func (s *Shelf) trim(now time.Time) {
	var files, images []*handle
	for id, h := range s.handles {
		switch {
		case !now.Before(h.expires):
			delete(s.handles, id)
		case h.file != nil:
			files = append(files, h)
		default:
			images = append(images, h)
		}
	}
	newestFirst := func(a, b *handle) int { return cmp.Compare(b.used, a.used) }
	slices.SortFunc(files, newestFirst)
	slices.SortFunc(images, newestFirst)
	for _, h := range files[min(len(files), maxFiles):] {
		delete(s.handles, h.ID)
	}
	total := 0
	for i, h := range images {
		if total += len(h.data); i >= maxImages || total > maxImagesTogether {
			delete(s.handles, h.ID)
			total -= len(h.data)
		}
	}
	for len(s.pages) > maxPages {
		oldest := ""
		for id, p := range s.pages {
			if oldest == "" || p.used < s.pages[oldest].used {
				oldest = id
			}
		}
		delete(s.pages, oldest)
	}
}

// Open describes a file or image. One that was forgotten is looked for once on the history page where it was last seen.
//
// Errors: artifact_unknown, also for an id of another conversation; artifact_changed; artifact_busy while another one is
// looked for.
func (s *Shelf) Open(ctx context.Context, session, id string) (Info, error) {
	h, p := s.find(session, id)
	if h == nil {
		if p == nil || s.reread == nil {
			return Info{}, codes.New(codes.ArtifactUnknown)
		}
		if !s.rereading.CompareAndSwap(false, true) {
			return Info{}, codes.New(codes.ArtifactBusy)
		}
		err := s.reread(ctx, session, p.cursor)
		s.rereading.Store(false)
		if err != nil {
			return Info{}, codes.New(codes.ArtifactUnknown).Because(err)
		}
		if h, _ = s.find(session, id); h == nil {
			return Info{}, codes.New(codes.ArtifactUnknown)
		}
	}
	if h.file != nil {
		f, err := h.file.open()
		if err != nil {
			return Info{}, err
		}
		_ = f.Close()
	}
	return h.Info, nil
}

// Read gives the piece at offset, a multiple of pieceSize not beyond the end.
//
// Errors: artifact_unknown, artifact_offset, artifact_changed when the file is not what was opened, before or after the
// read.
func (s *Shelf) Read(_ context.Context, session, id string, offset int64) (Piece, error) {
	h, _ := s.find(session, id)
	if h == nil {
		return Piece{}, codes.New(codes.ArtifactUnknown)
	}
	if offset < 0 || offset > h.Size || offset%pieceSize != 0 {
		return Piece{}, codes.New(codes.ArtifactOffset)
	}
	end := min(offset+pieceSize, h.Size)
	out := Piece{Offset: offset, Total: h.Size, Done: end == h.Size}
	if h.file == nil {
		out.Data = h.data[offset:end:end]
	} else {
		data, err := h.file.read(offset, int(end-offset))
		if err != nil {
			return Piece{}, err
		}
		out.Data = data
	}
	if now, _ := s.find(session, id); now == nil { // retired meanwhile
		return Piece{}, codes.New(codes.ArtifactUnknown)
	}
	return out, nil
}

func (s *Shelf) find(session, id string) (*handle, *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, p := s.handles[id], s.pages[id]
	if h != nil && (h.session != session || !time.Now().Before(h.expires)) {
		h = nil
	}
	if p != nil && p.session != session {
		p = nil
	}
	return h, p
}

// open opens the very file of the handle.
func (h *fileHandle) open() (*os.File, error) {
	f, id, err := open(h.place)
	switch {
	case err != nil:
		return nil, codes.New(codes.ArtifactUnknown).Because(err)
	case id != h.identity:
		_ = f.Close()
		return nil, codes.New(codes.ArtifactChanged)
	}
	return f, nil
}

func (h *fileHandle) read(offset int64, n int) ([]byte, error) {
	f, err := h.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(f, offset, int64(n)), data); err != nil {
		return nil, codes.New(codes.ArtifactChanged).Because(err)
	}
	if id, _, err := identify(f); err != nil || id != h.identity {
		return nil, codes.New(codes.ArtifactChanged)
	}
	return data, nil
}

// fileID is bound to the conversation and to this state of this file.
func fileID(session string, p place, id identity) string {
	text, _ := jsonframe.Marshal([]any{
		session, filepath.Join(p.root, filepath.FromSlash(p.rel)), id.dev, id.ino, id.size,
		float64(id.mtime) / 1e6, float64(id.ctime) / 1e6,
	})
	h := sha256.Sum256(text)
	return "file_" + hex.EncodeToString(h[:])
}

// imageID is bound to the conversation and to the bytes.
func imageID(session, mime string, data []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, session+"\x00"+mime+"\x00")
	e := base64.NewEncoder(base64.StdEncoding, h)
	_, _ = e.Write(data)
	_ = e.Close()
	return "image_" + hex.EncodeToString(h.Sum(nil))
}
