package sessions

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Create makes a conversation. Nothing native is started for an empty one, unless the runtime must know it beforehand.
// fromKey makes a copy of another conversation, in its project; the original stays as it is.
//
// Errors: title_invalid, project_unknown, project_unavailable, session_unknown, session_busy, sessions_full, those of
// CreateSession.
func (c *Conversations) Create(ctx context.Context, title, projectID, fromKey string) (Row, error) {
	if !utf8.ValidString(title) {
		return Row{}, codes.New(codes.TitleInvalid)
	}
	if c.layout() == runtime.SessionLayoutSingle {
		return Row{}, codes.New(codes.SessionsFull)
	}
	title = jsonframe.CutUnits(strings.TrimSpace(title), c.opts.MaxTitle)
	rec := store.Session{SessionID: c.opts.NewID(), Title: title, TitleExplicit: title != "", ProjectPath: c.opts.ProjectPath}
	if projectID != "" {
		path, err := c.projectPath(ctx, projectID)
		if err != nil {
			return Row{}, err
		}
		rec.ProjectPath = path
	}
	var conv *conversation
	var err error
	switch {
	case fromKey != "":
		conv, err = c.branch(ctx, rec, fromKey)
	case c.can(runtime.CapabilityCreate):
		conv, err = c.createNative(ctx, rec, runtime.SessionRef{})
	default:
		conv, err = c.create(ctx, rec)
	}
	if err != nil {
		return Row{}, err
	}
	return c.wrote(conv), nil
}

// branch copies a conversation. The source is held, so that no prompt slips into it while it is read.
func (c *Conversations) branch(ctx context.Context, rec store.Session, fromKey string) (*conversation, error) {
	source, err := c.find(fromKey)
	if err != nil {
		return nil, err
	}
	if !c.can(runtime.CapabilityBranch) {
		return nil, codes.New(codes.MethodUnsupported)
	}
	if err := c.lock(ctx, source); err != nil {
		return nil, err
	}
	defer source.unlock()
	c.mu.Lock()
	ref, busy := source.ref(), source.busy()
	row := c.row(source)
	c.mu.Unlock()
	if busy {
		return nil, codes.New(codes.SessionBusy)
	}
	if ref.NativeID == "" {
		return nil, codes.New(codes.SessionLost) // nothing was ever said in it
	}
	rec.ProjectPath, rec.ParentID = ref.ProjectPath, source.key
	if rec.Title == "" {
		rec.Title, rec.TitleExplicit = row.Title, true
	}
	rec.Preview, rec.LastActivityAt, rec.ModelID, rec.ProviderID = row.Preview, row.LastActivityAt, row.ModelID, row.ProviderID
	return c.createNative(ctx, rec, ref)
}

// createNative makes a conversation in the runtime and then the record.
func (c *Conversations) createNative(ctx context.Context, rec store.Session, source runtime.SessionRef) (*conversation, error) {
	c.mu.Lock()
	full := len(c.own) >= c.opts.MaxSessions
	c.mu.Unlock()
	if full {
		return nil, codes.New(codes.SessionsFull)
	}
	resp, err := c.rt.CreateSession(ctx, &runtime.CreateSessionRequest{
		Source: source, Title: rec.Title,
		Session: runtime.SessionRef{SessionID: rec.SessionID, ProjectPath: rec.ProjectPath},
	})
	if err != nil {
		return nil, err
	}
	if s := resp.Session; s != nil {
		rec.NativeID = s.Ref.NativeID
		pick(&rec.ProjectPath, s.Ref.ProjectPath)
		pick2(&rec.Title, s.Title)
		pick(&rec.ModelID, s.ModelID)
		pick(&rec.ProviderID, s.ProviderID)
	}
	return c.create(ctx, rec)
}

// wrote counts a management write and tells what the conversation is now.
func (c *Conversations) wrote(conv *conversation) Row {
	c.mu.Lock()
	c.writes++
	conv.written = c.writes
	row := c.row(conv)
	c.publishRow(conv)
	c.mu.Unlock()
	c.flush()
	rows := []Row{row}
	c.lookAtProjects(rows)
	return rows[0]
}

// Rename gives a conversation a title, in the runtime too once it has the conversation. Errors: title_invalid,
// session_read_only, those of UpdateSession.
func (c *Conversations) Rename(ctx context.Context, key, title string) (Row, error) {
	title = strings.TrimSpace(title)
	if title == "" || !utf8.ValidString(title) || jsonframe.Units(title) > c.opts.MaxTitle {
		return Row{}, codes.New(codes.TitleInvalid)
	}
	return c.manage(ctx, key, false, func(a Actions) bool { return a.Rename }, func(conv *conversation) error {
		return c.update(ctx, conv, runtime.CapabilityRename, &runtime.UpdateSessionRequest{Title: &title},
			func(rec *store.Session) { rec.Title, rec.TitleExplicit = title, true })
	})
}

// Archive takes a conversation out of the list, or puts it back. It must exist in the runtime and be idle.
func (c *Conversations) Archive(ctx context.Context, key string, archived bool) (Row, error) {
	if !c.can(runtime.CapabilityArchive) {
		return Row{}, codes.New(codes.MethodUnsupported)
	}
	return c.manage(ctx, key, true, func(a Actions) bool { return a.Archive }, func(conv *conversation) error {
		return c.update(ctx, conv, runtime.CapabilityArchive, &runtime.UpdateSessionRequest{Archived: &archived},
			func(rec *store.Session) { rec.Archived = archived })
	})
}

// manage runs one change of a conversation with its write lock.
func (c *Conversations) manage(ctx context.Context, key string, idle bool, allowed func(Actions) bool, change func(*conversation) error) (Row, error) {
	conv, err := c.find(key)
	if err != nil {
		return Row{}, err
	}
	if idle {
		if err := c.checkIdle(conv); err != nil { // without waiting for a dispatch under way
			return Row{}, err
		}
	}
	if err := c.lock(ctx, conv); err != nil {
		return Row{}, err
	}
	defer conv.unlock()
	if idle {
		if err := c.checkIdle(conv); err != nil {
			return Row{}, err
		}
	}
	c.mu.Lock()
	ok := allowed(c.actions(conv))
	c.mu.Unlock()
	if !ok {
		return Row{}, codes.New(codes.SessionReadOnly)
	}
	if err := change(conv); err != nil {
		return Row{}, err
	}
	return c.wrote(conv), nil
}

func (c *Conversations) checkIdle(conv *conversation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conv.busy() {
		return codes.New(codes.SessionBusy)
	}
	return nil
}

// update changes a conversation in the runtime, if it has it, and then our record of it.
func (c *Conversations) update(ctx context.Context, conv *conversation, needs runtime.Capability, req *runtime.UpdateSessionRequest, fn func(*store.Session)) error {
	req.Session = c.refOf(conv)
	if req.Session.NativeID != "" && c.can(needs) {
		// The runtime confirms first: a title or state it refused is never shown.
		resp, err := c.rt.UpdateSession(ctx, req)
		if err != nil {
			return err
		}
		if resp.Session != nil {
			c.mu.Lock()
			row := *resp.Session
			row.Ref.NativeID = req.Session.NativeID
			c.learn(conv, &row)
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	own := conv.isOwn
	if !own {
		row := *conv.row
		pick(&row.Title, value(req.Title))
		if req.Archived != nil {
			row.Archived = req.Archived
		}
		conv.row = &row
	}
	c.mu.Unlock()
	if !own {
		return nil // the runtime keeps it; a row nobody has continued needs no record
	}
	return c.change(conv, func(rec *store.Session) {
		fn(rec)
		rec.Revision++
		rec.UpdatedAt = time.Now()
	}, c.put)
}

// Reset begins a conversation anew. Receipts stay, so that a prompt sent before is not sent again into the empty one;
// the runtime's record of the old conversation stays untouched (STORE-03).
func (c *Conversations) Reset(ctx context.Context, key string) error {
	_, err := c.manage(ctx, key, true, func(a Actions) bool { return a.Reset }, func(conv *conversation) error {
		native, begun := c.refOf(conv).NativeID, time.Now()
		if err := c.detach(ctx, conv, runtime.DetachModeReset); err != nil {
			return err
		}
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.writes++
			c.letGo(native)
			conv.endings, conv.endingsKnown = nil, false
		}()
		return c.change(conv, func(rec *store.Session) {
			rec.NativeID, rec.Preview, rec.ModelID, rec.ProviderID, rec.Archived = "", "", "", "", false
			rec.LastActivityAt = time.Time{}
			rec.Revision++
			rec.CreatedAt, rec.UpdatedAt = begun, begun
		}, c.put)
	})
	return err
}

// Delete removes a conversation of ours. Its receipts stay.
func (c *Conversations) Delete(ctx context.Context, key string) error {
	conv, err := c.find(key)
	if err != nil {
		return err
	}
	if err := c.checkIdle(conv); err != nil {
		return err
	}
	if err := c.lock(ctx, conv); err != nil {
		return err
	}
	defer conv.unlock()
	if err := c.checkIdle(conv); err != nil {
		return err
	}
	c.mu.Lock()
	ok, main := c.actions(conv).Delete, len(c.own) == 1 && conv.isOwn && !conv.rec.Imported
	c.mu.Unlock()
	switch {
	case !ok && main:
		return codes.New(codes.SessionLast)
	case !ok:
		return codes.New(codes.SessionReadOnly)
	}
	if err := c.detach(ctx, conv, runtime.DetachModeDelete); err != nil {
		return err
	}
	conv.saving <- struct{}{}
	defer func() { <-conv.saving }()
	if err := c.db.DeleteSession(context.WithoutCancel(ctx), c.id, conv.key); err != nil {
		return err
	}
	c.mu.Lock()
	c.drop(conv)
	c.writes++
	c.letGo(conv.rec.NativeID)
	c.publish(Update{Kind: CatalogInvalidated, SessionKey: conv.key, At: time.Now()})
	c.mu.Unlock()
	c.flush()
	return nil
}

// detach lets go of everything the host and the plugin hold for a conversation (STORE-04).
func (c *Conversations) detach(ctx context.Context, conv *conversation, mode runtime.DetachMode) error {
	ref := c.refOf(conv)
	if c.can(runtime.CapabilityDetach) {
		if err := c.rt.DetachSession(ctx, &runtime.DetachSessionRequest{Session: ref, Mode: mode}); err != nil {
			return err
		}
	}
	list, err := c.book.CloseSession(context.WithoutCancel(ctx), conv.key, runtime.ClosureExpired)
	if err != nil {
		c.log.Error("the end of an interaction was not written", obs.KeyError, err)
	}
	c.shut(list...)
	c.shelf.Retire(conv.key)
	return nil
}

// letGo keeps a scan that began before from bringing a native conversation back. mu is held.
func (c *Conversations) letGo(nativeID string) {
	if nativeID == "" {
		return
	}
	if len(c.gone) >= maxEndedKept {
		clear(c.gone) // scans are short: what is this old concerns none of them
	}
	c.gone[nativeID] = c.writes
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
