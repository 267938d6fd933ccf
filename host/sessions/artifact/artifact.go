// Package artifact delivers files to phones: those an assistant named in its text inside the session's project, and
// images it made. A phone gets an opaque id bound to one conversation and reads in pieces; nothing is copied, kept on
// disk or sent anywhere else (ART-01, ART-02, ART-03).
//
// It knows no phone and no runtime: host/sessions says what an assistant wrote and which directories are verified. A
// Shelf is safe for concurrent use, starts no goroutine and holds its lock during no I/O. Everything it remembers is
// bounded and short-lived; what was forgotten can be found again by reading the history page once more.
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
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
