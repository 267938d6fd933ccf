package sessions

import (
	"context"
	"errors"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// previewRows is how many of the newest native conversations get their last message read in a scan (SYNC-09).
const previewRows = 12

// scan is one read of the runtime's store that several callers may wait for.
type scan struct {
	done   chan struct{}
	writes uint64 // management writes before it began
	seq    uint64 // last event applied before it began
	rows   []runtime.Session
	end    runtime.ScanEnd
	err    error
}

// List gives our conversations in order of creation, then the native ones in the runtime's order, archived ones left
// out. Callers that come while a scan runs share it, unless something was changed since it began. strict: a scan that
// is not whole is catalog_incomplete and nothing was removed; otherwise what is known is given (STORE-02, SYNC-03).
func (c *Conversations) List(ctx context.Context, strict bool) ([]Row, error) {
	s := c.refresh()
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil, codes.New(codes.CatalogIncomplete).Because(ctx.Err())
	}
	if strict && codes.Of(s.err) == codes.RuntimeUnavailable {
		return nil, s.err // nothing is wrong with the list
	}
	if strict && (s.err != nil || !s.end.Complete) {
		return nil, codes.New(codes.CatalogIncomplete).Because(s.err)
	}
	if !strict && s.end.WarningCode != "" {
		c.warn(s.end.WarningCode)
	}
	c.caughtUp(ctx, s.end.AsOfSeq)
	c.mu.Lock()
	var rows []Row
	for _, list := range [][]*conversation{c.own, c.native} {
		for _, conv := range list {
			if !conv.archived() {
				rows = append(rows, c.row(conv))
			}
		}
	}
	c.mu.Unlock()
	c.lookAtProjects(rows)
	return rows, nil
}

// Archived gives the archived conversations. It needs a runtime that can list them.
func (c *Conversations) Archived(ctx context.Context) ([]Row, error) {
	if !c.can(runtime.CapabilityArchive) {
		return nil, codes.New(codes.MethodUnsupported)
	}
	s := &scan{done: make(chan struct{})}
	c.mu.Lock()
	s.writes = c.writes
	c.mu.Unlock()
	c.readCatalog(ctx, s, true)
	if s.err != nil || !s.end.Complete {
		return nil, codes.New(codes.CatalogIncomplete).Because(s.err)
	}
	c.mu.Lock()
	seen := map[*conversation]bool{}
	var rows []Row
	for i := range s.rows {
		conv := c.byNative[s.rows[i].Ref.NativeID]
		if conv == nil || seen[conv] || !conv.archived() {
			continue
		}
		seen[conv] = true
		rows = append(rows, c.row(conv))
	}
	for _, conv := range c.own { // archived by us; absence from the scan is no evidence
		if conv.archived() && !seen[conv] {
			rows = append(rows, c.row(conv))
		}
	}
	c.mu.Unlock()
	c.lookAtProjects(rows)
	return rows, nil
}

// Lookup finds one conversation without a scan.
func (c *Conversations) Lookup(_ context.Context, key string) (Row, error) {
	conv, err := c.find(key)
	if err != nil {
		return Row{}, err
	}
	c.mu.Lock()
	row := c.row(conv)
	c.mu.Unlock()
	rows := []Row{row}
	c.lookAtProjects(rows)
	return rows[0], nil
}

// refresh joins the scan under way, or begins one.
func (c *Conversations) refresh() *scan {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.scan != nil && c.scan.writes == c.writes {
		return c.scan
	}
	s := &scan{done: make(chan struct{}), writes: c.writes}
	if c.closed {
		s.err = codes.New(codes.Restarting)
		close(s.done)
		return s
	}
	c.scan = s
	c.work.Go(func() {
		c.readCatalog(c.life, s, false)
		c.mu.Lock()
		if c.scan == s {
			c.scan = nil
		}
		c.mu.Unlock()
		c.flush()
		close(s.done)
	})
	return s
}

var errTooManyRows = errors.New("the runtime's store has too many rows")

// readCatalog scans the runtime's store and lays the result over what is known.
func (c *Conversations) readCatalog(ctx context.Context, s *scan, archived bool) {
	c.mu.Lock()
	generation := c.generation
	s.seq = c.seq
	var bound []runtime.SessionRef
	for _, conv := range c.own {
		if ref := conv.ref(); ref.NativeID != "" {
			bound = append(bound, ref)
		}
	}
	c.mu.Unlock()
	req := &runtime.ListSessionsRequest{Archived: archived, Previews: previewRows, Bound: bound}
	end, err := readAs(ctx, c, func() (*runtime.ScanEnd, error) {
		s.rows = nil
		return c.rt.ListSessions(ctx, req, func(batch []runtime.Session) error {
			s.rows = append(s.rows, batch...)
			if len(s.rows) > maxNativeRows {
				return errTooManyRows
			}
			return nil
		})
	})
	s.err = err
	if end != nil && err == nil {
		s.end = *end
	}
	if errors.Is(err, errTooManyRows) {
		s.rows = s.rows[:maxNativeRows]
	}
	switch {
	case err != nil:
		c.count.scans.WithLabelValues("failed").Inc()
	case s.end.Complete:
		c.count.scans.WithLabelValues("complete").Inc()
	default:
		c.count.scans.WithLabelValues("incomplete").Inc()
	}
	if err != nil {
		c.log.Warn("the runtime's conversations could not be listed", obs.KeyError, err)
	}
	c.mu.Lock()
	var changed []*conversation
	if generation == c.generation { // a row of a dead process may be older than what the present one said
		changed = c.lay(s, archived)
	}
	c.mu.Unlock()
	for _, conv := range changed {
		c.save(conv)
	}
}

// lay puts the rows of a scan over what is known and says whose records changed. mu is held.
func (c *Conversations) lay(s *scan, archived bool) (changed []*conversation) {
	reflected := s.end.AsOfSeq // events the rows know of already
	if reflected == 0 {
		reflected = s.seq // the plugin does not say: at least what was there before it looked
	}
	seen := map[*conversation]bool{}
	var order []*conversation
	for i := range s.rows {
		row := &s.rows[i]
		if row.Ref.NativeID == "" {
			s.end.Complete = false
			continue
		}
		conv := c.byNative[row.Ref.NativeID]
		if conv == nil {
			if row.Unreadable || c.gone[row.Ref.NativeID] > s.writes {
				continue // let go of since the scan began (SYNC-04)
			}
			conv = c.discover(*row)
		}
		if seen[conv] {
			s.end.Complete = false // a store that names one conversation twice was not read well
			continue
		}
		seen[conv] = true
		if !conv.isOwn {
			order = append(order, conv)
		}
		// An unreadable row keeps the old descriptor; one that an event or a management write overtook is too old.
		if row.Unreadable || conv.rowSeq > reflected || conv.written > s.writes {
			continue
		}
		if archived && row.Archived == nil {
			yes := true
			row.Archived = &yes // it was found among the archived ones
		}
		if c.learn(conv, row) {
			changed = append(changed, conv)
		}
	}
	if archived {
		return changed
	}
	for _, conv := range c.native {
		switch {
		case seen[conv]:
		case s.end.Complete && s.err == nil && len(conv.runs) == 0 && conv.prepare == nil && conv.rowSeq <= reflected && !conv.archived():
			delete(c.byKey, conv.key)
			delete(c.byNative, conv.row.Ref.NativeID)
			conv.deleted = true
		default:
			order = append(order, conv)
		}
	}
	c.native = order
	return changed
}

// learn lays one row over a conversation and reports whether its record changed. An empty field erases nothing, and a
// record of ours takes title and archive state only from a row of exactly its conversation (CX-06). mu is held.
func (c *Conversations) learn(conv *conversation, row *runtime.Session) bool {
	merged := *row
	if old := conv.row; old != nil {
		pick2(&merged.Title, old.Title)
		pick2(&merged.ModelID, old.ModelID)
		pick2(&merged.ProviderID, old.ProviderID)
		pick2(&merged.ParentNativeID, old.ParentNativeID)
		pick2(&merged.Channel, old.Channel)
		pick2(&merged.Ref.ProjectPath, old.Ref.ProjectPath)
		pick2(&merged.UpdatedAt, old.UpdatedAt)
		pick2(&merged.Kind, old.Kind)
		pick2(&merged.LastMessage, old.LastMessage)
		pick2(&merged.Archived, old.Archived)
		pick2(&merged.ContextTokens, old.ContextTokens)
	}
	conv.row = &merged
	if !conv.isOwn || conv.rec.NativeID != row.Ref.NativeID || !sameProject(conv.rec.ProjectPath, row.Ref.ProjectPath) {
		return false
	}
	old := conv.rec
	if row.Title != "" && row.Title != conv.rec.Title {
		conv.rec.Title, conv.rec.TitleExplicit = jsonframe.CutUnits(row.Title, c.opts.MaxTitle), true
	}
	if row.Archived != nil {
		conv.rec.Archived = *row.Archived
	}
	pick(&conv.rec.ModelID, row.ModelID)
	pick(&conv.rec.ProviderID, row.ProviderID)
	return old != conv.rec
}

// pick2 takes the old value where the new one is empty.
func pick2[T comparable](into *T, old T) {
	var zero T
	if *into == zero {
		*into = old
	}
}

func sameProject(ours, theirs string) bool { return ours == theirs || ours == "" || theirs == "" }

// sessionChanged takes a row the runtime told about by itself, its native name perhaps.
func (c *Conversations) sessionChanged(ev *runtime.Event) {
	row := *ev.SessionChanged
	session, native := row.Ref.SessionID, row.Ref.NativeID
	pick2(&session, ev.SessionID)
	pick2(&native, ev.NativeID)
	row.Ref.NativeID = native
	c.mu.Lock()
	conv := c.ofNames(session, native)
	if conv == nil || row.Unreadable {
		c.mu.Unlock()
		return
	}
	changed := false
	if conv.isOwn && native != "" && conv.rec.NativeID != native {
		rec := conv.rec
		rec.NativeID = native
		pick(&rec.ProjectPath, row.Ref.ProjectPath)
		c.become(conv, rec)
		changed = true
	}
	if native != "" {
		changed = c.learn(conv, &row) || changed
		conv.rowSeq = ev.Seq
	}
	c.publishRow(conv)
	c.publishAttention(conv)
	c.mu.Unlock()
	c.flush()
	if changed {
		c.save(conv)
	}
}

func (conv *conversation) archived() bool {
	if conv.isOwn {
		return conv.rec.Archived
	}
	return conv.row.Archived != nil && *conv.row.Archived
}

// warn tells phones that the list is not whole.
func (c *Conversations) warn(code string) {
	c.mu.Lock()
	c.publish(Update{Kind: NoticeRaised, At: time.Now(), Notice: c.notice(runtime.SeverityWarning, code, nil)})
	c.mu.Unlock()
	c.flush()
}
