package agent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	threadPage  = 100    // threads asked for at once
	maxThreads  = 10_000 // rows of one scan
	maxScan     = 200    // native pages of one scan; rows may repeat
	shownUnits  = 2000   // characters of a last message
	previewRead = 3      // turns read for a last message
)

// listedSources are the kinds of threads a person talks to; nested agents are not listed.
var listedSources = []string{"cli", "vscode", "appServer", "exec", "unknown"}

// ListSessions reads every page of the native catalog, newest first. A page that cannot be read ends the scan as an
// incomplete one; a row that cannot be read is left out and makes it incomplete too. Nothing is concluded from a row
// that is missing (CX-06).
func (l *library) ListSessions(ctx context.Context, r *runtime.ListSessionsRequest, send func([]runtime.Session) error) (*runtime.ScanEnd, error) {
	end := &runtime.ScanEnd{AsOfSeq: l.seq()}
	client, err := l.client(ctx)
	if err != nil {
		return nil, err
	}
	s := &scan{library: l, native: client, archived: r.Archived, seen: map[string]bool{}, available: map[string]bool{}, lookUps: int(r.Previews)}
	complete, err := s.run(ctx, maxScan, send)
	if err != nil {
		return nil, err
	}
	end.Complete = complete
	if !complete {
		end.WarningCode = codes.CatalogIncomplete
		return end, nil
	}
	if !r.Archived {
		found, err := l.findArchived(ctx, s, r.Bound)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return end, send(found)
		}
	}
	return end, nil
}

// scan is one pass over the native catalog.
type scan struct {
	*library
	native    *appserver.Client
	archived  bool
	lookUps   int // rows that still get a last message
	seen      map[string]bool
	available map[string]bool // directory: it exists
	malformed bool
	rows      int
}

// run reads at most pages pages and reports whether all rows were read. The only errors are those of send and ctx.
func (s *scan) run(ctx context.Context, pages int, send func([]runtime.Session) error) (complete bool, err error) {
	cursors := map[string]bool{}
	var cursor *string
	for range pages {
		page, err := s.page(ctx, cursor)
		if err != nil {
			s.log.Warn("catalog scan ended early", "err", readError(err))
			return false, ctx.Err()
		}
		batch := s.sessions(ctx, page.Data)
		if s.rows += len(batch); s.rows > maxThreads {
			return false, nil
		}
		if len(batch) > 0 {
			if err := send(batch); err != nil {
				return false, err
			}
		}
		if page.Next == nil || *page.Next == "" {
			return !s.malformed, nil
		}
		if cursors[*page.Next] {
			return false, nil
		}
		cursors[*page.Next] = true
		cursor = page.Next
	}
	return false, nil
}

func (s *scan) page(ctx context.Context, cursor *string) (appserver.ThreadPage, error) {
	return s.native.ThreadList(ctx, appserver.ThreadListParams{
		Cursor: cursor, Limit: threadPage, Archived: s.archived, Cwd: s.project(),
		SourceKinds: listedSources, SortKey: "updated_at", StateDBOnly: true,
	})
}

// sessions turns the rows of a page into sessions, with last messages as long as there are any to give.
func (s *scan) sessions(ctx context.Context, rows []json.RawMessage) []runtime.Session {
	var threads []appserver.Thread
	for _, raw := range rows {
		t, ok := s.thread(raw)
		if !ok {
			s.malformed = true
			continue
		}
		if s.seen[t.ID] || t.Ephemeral {
			continue
		}
		s.seen[t.ID] = true
		threads = append(threads, t)
	}
	n := min(s.lookUps, len(threads))
	s.lookUps -= n
	last := s.lastMessages(ctx, s.native, threads[:n])
	batch := make([]runtime.Session, len(threads))
	for i, t := range threads {
		batch[i] = s.session(t)
		if i < n {
			batch[i].LastMessage = last[i]
		}
	}
	return batch
}

// thread reads a row; ok is false for one that names no thread or no directory, or one of another project.
func (s *scan) thread(raw json.RawMessage) (t appserver.Thread, ok bool) {
	if json.Unmarshal(raw, &t) != nil || t.ID == "" || !filepath.IsAbs(string(t.Cwd)) {
		return t, false
	}
	if p := s.project(); p != "" && !samePath(p, string(t.Cwd)) {
		return t, false
	}
	return t, true
}

// session is a row of the catalog. The first prompt is no title, and a missing name erases none.
func (s *scan) session(t appserver.Thread) runtime.Session {
	archived := s.archived
	row := runtime.Session{
		Ref:       runtime.SessionRef{NativeID: t.ID, ProjectPath: string(t.Cwd)},
		Kind:      runtime.SessionKindDirect,
		Title:     strings.TrimSpace(string(t.Name)),
		UpdatedAt: seconds(&t.UpdatedAt),
		ModelID:   string(t.Model), ProviderID: string(t.ModelProvider),
		Archived: &archived, ParentNativeID: string(t.ForkedFromID),
	}
	row.Activity, row.Attention = activityOf(t.Status)
	switch {
	case s.archived:
		row.Continuation = runtime.ContinuationReadOnly
	case s.project() != "":
		row.Continuation = runtime.ContinuationReadOnly
		return row // its name and archive state belong to the whole computer
	case !s.exists(string(t.Cwd)):
		row.Continuation = runtime.ContinuationProjectUnavailable
	default:
		row.Continuation = runtime.ContinuationAllowed
	}
	row.Actions = []runtime.SessionAction{runtime.SessionActionRename, runtime.SessionActionArchive}
	return row
}

func (s *scan) exists(dir string) bool {
	known, ok := s.available[dir]
	if !ok {
		known = isDirectory(dir)
		s.available[dir] = known
	}
	return known
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// activityOf reads a thread's status. A thread that is not loaded here may be running in another process.
func activityOf(st appserver.Status) (runtime.Activity, runtime.AttentionKind) {
	switch st.Type {
	case "idle", "systemError":
		return runtime.ActivityIdle, runtime.AttentionKindUnspecified
	case "active":
		for _, f := range st.ActiveFlags {
			switch f {
			case "waitingOnApproval":
				return runtime.ActivityWaiting, runtime.AttentionKindApproval
			case "waitingOnUserInput":
				return runtime.ActivityWaiting, runtime.AttentionKindInput
			}
		}
		return runtime.ActivityRunning, runtime.AttentionKindUnspecified
	}
	return runtime.ActivityUnspecified, runtime.AttentionKindUnspecified
}
