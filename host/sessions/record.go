package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// record is the durable record of the conversation, or the one a native conversation gets with its first prompt: it
// keeps the name phones know it by. mu is held.
func (conv *conversation) record(instance string) store.Session {
	if conv.isOwn {
		return conv.rec
	}
	row := conv.row
	return store.Session{
		Runtime: instance, SessionID: conv.key, NativeID: row.Ref.NativeID, ProjectPath: row.Ref.ProjectPath,
		Title: row.Title, TitleExplicit: row.Title != "", ModelID: row.ModelID, ProviderID: row.ProviderID, Imported: true,
		CreatedAt: time.Now(), UpdatedAt: row.UpdatedAt,
	}
}

// change writes a changed record with put and then changes memory. fn is applied to a copy and, once that is on disk, to
// whatever memory holds by then, so it must set only what it means to change. Only the holder of the write lock calls
// change; records are written one at a time (see save).
func (c *Conversations) change(conv *conversation, fn func(*store.Session), put func(store.Session) error) error {
	conv.saving <- struct{}{}
	defer func() { <-conv.saving }()
	c.mu.Lock()
	rec := conv.record(c.id)
	c.mu.Unlock()
	fn(&rec)
	if err := put(rec); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := conv.record(c.id)
	fn(&now)
	c.become(conv, now)
	return nil
}

// put is what change uses where nothing else is written along.
func (c *Conversations) put(rec store.Session) error {
	return c.db.PutSession(context.WithoutCancel(c.life), rec)
}

// save writes what memory has learnt by itself: preview, activity, a title of the runtime. Losing it costs nothing that
// the next catalog read would not bring back, so a failure is only logged.
func (c *Conversations) save(conv *conversation) {
	conv.saving <- struct{}{}
	defer func() { <-conv.saving }()
	c.mu.Lock()
	rec, current := conv.rec, conv.isOwn && !conv.deleted
	c.mu.Unlock()
	if !current {
		return
	}
	if err := c.put(rec); err != nil {
		c.log.Warn("a conversation's record was not written", obs.KeyError, err)
	}
}

// become makes rec the conversation's record in memory. mu is held.
func (c *Conversations) become(conv *conversation, rec store.Session) {
	if !conv.isOwn {
		for i, x := range c.native {
			if x == conv {
				c.native = append(c.native[:i:i], c.native[i+1:]...)
				break
			}
		}
		c.own = append(c.own, conv)
	} else if old := conv.rec.NativeID; old != rec.NativeID && c.byNative[old] == conv {
		delete(c.byNative, old)
		conv.row, conv.rowSeq = nil, 0
	}
	conv.isOwn, conv.rec = true, rec
	c.bind(conv, rec.NativeID)
}

// bind makes a native conversation one of ours; a row the catalog had of it goes away. mu is held.
func (c *Conversations) bind(conv *conversation, nativeID string) {
	if nativeID == "" {
		return
	}
	if other := c.byNative[nativeID]; other != nil && other != conv && !other.isOwn {
		conv.row, conv.rowSeq = other.row, other.rowSeq
		for _, r := range other.runs {
			r.conv = conv
			conv.runs = append(conv.runs, r)
		}
		c.drop(other)
	}
	c.byNative[nativeID] = conv
}

// drop removes a conversation from memory. mu is held.
func (c *Conversations) drop(conv *conversation) {
	conv.deleted = true
	delete(c.byKey, conv.key)
	if conv.row != nil && c.byNative[conv.row.Ref.NativeID] == conv {
		delete(c.byNative, conv.row.Ref.NativeID)
	}
	if c.byNative[conv.rec.NativeID] == conv {
		delete(c.byNative, conv.rec.NativeID)
	}
	for _, list := range []*[]*conversation{&c.own, &c.native} {
		for i, x := range *list {
			if x == conv {
				*list = append((*list)[:i:i], (*list)[i+1:]...)
				break
			}
		}
	}
}

// discover makes a native conversation known. mu is held.
func (c *Conversations) discover(row runtime.Session) *conversation {
	key := c.opts.NativeKey(row.Ref.NativeID)
	if conv := c.byKey[key]; conv != nil {
		return conv // continued from a phone and reset since, or two native names with one key
	}
	conv := newConversation(key)
	row.Ref.SessionID = ""
	conv.row = &row
	c.byKey[key] = conv
	c.byNative[row.Ref.NativeID] = conv
	c.native = append(c.native, conv)
	return conv
}

// ensureMain makes the conversation that always exists, where the runtime has one.
func (c *Conversations) ensureMain(ctx context.Context) error {
	c.mu.Lock()
	n := len(c.own)
	c.mu.Unlock()
	if n > 0 || c.layout() != runtime.SessionLayoutMainAndMany && c.layout() != runtime.SessionLayoutSingle {
		return nil
	}
	_, err := c.create(ctx, store.Session{ProjectPath: c.opts.ProjectPath})
	return err
}

func (c *Conversations) layout() runtime.SessionLayout {
	if d := c.rt.Description(); d != nil {
		return d.SessionLayout
	}
	return runtime.SessionLayoutMany
}

// create writes a new record of ours.
func (c *Conversations) create(ctx context.Context, rec store.Session) (*conversation, error) {
	c.mu.Lock()
	full := len(c.own) >= c.opts.MaxSessions
	c.mu.Unlock()
	if full {
		return nil, codes.New(codes.SessionsFull)
	}
	now := time.Now()
	rec.Runtime, rec.CreatedAt, rec.UpdatedAt = c.id, now, now
	if rec.SessionID == "" {
		rec.SessionID = c.opts.NewID()
	}
	if err := c.db.PutSession(ctx, rec); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	conv := c.adopt(rec)
	c.bind(conv, rec.NativeID)
	return conv, nil
}
