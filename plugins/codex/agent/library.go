package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
)

// library answers everything that only reads: the catalog, projects, history and skills. It starts, loads and locks no
// thread, and it holds no transcript: its caches are previews and archive membership. Safe for concurrent use.
type library struct {
	libraryOptions

	mu       sync.Mutex
	previews map[string]preview // by thread id
	archived archivedLookup
}

// libraryOptions are what the library needs of the agent; all of them are called, never changed.
type libraryOptions struct {
	// client gives the running app server, or an error with a stable code.
	client func(context.Context) (*appserver.Client, error)
	// seq is the number of the last event sent.
	seq func() uint64
	// home is CODEX_HOME; empty while unknown.
	home func() string
	// project is the one directory this instance serves; empty: the whole computer.
	project func() string
	now     func() time.Time
	log     *slog.Logger
}

func newLibrary(o libraryOptions) *library {
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	return &library{libraryOptions: o, previews: map[string]preview{}}
}

// readError turns the failure of a read into a stable code. Reads have no effect, so nothing about them is uncertain.
func readError(err error) error {
	if err == nil {
		return nil
	}
	if e := codes.As(err); e != nil {
		return e
	}
	var rpc *appserver.RPCError
	if !errors.As(err, &rpc) {
		if errors.Is(err, appserver.ErrReply) {
			return codes.New(codes.ReplyInvalid).Because(err)
		}
		return codes.New(codes.RuntimeUnreachable).Because(err)
	}
	switch appserver.Classify(err) {
	case appserver.RefusalNoRollout, appserver.RefusalNotLoaded:
		return codes.New(codes.SessionLost).Because(err)
	case appserver.RefusalCursor:
		return codes.New(codes.CursorInvalid).Because(err)
	}
	return codes.New(codes.StoreUnreadable).Because(err)
}

// canonicalPath is a directory without links; a missing one is taken as it is written.
func canonicalPath(p string) string {
	p = filepath.Clean(p)
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	return p
}
