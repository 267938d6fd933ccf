// Package snapshot answers sessions.sync: complete, immutable states of a catalog, handed out in pages of 64 KiB, as
// deltas against a state the reader has, or as the word that nothing has changed.
//
// It knows rows as keys with JSON text, and neither what is in them nor who asks; nothing about a reader is kept. A
// Catalog is safe for concurrent use. One read of the rows runs at a time and its callers share it; a read overtaken by
// a change somebody made here is thrown away (SYNC-04).
package snapshot

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// Limits of a catalog; beyond them it cannot be synchronised at all.
const (
	maxRows  = 10_000
	maxRow   = maxAnswer - 512 // bytes of a row's text
	maxBytes = 8 << 20         // of all rows as one JSON array
	maxKey   = 1024            // UTF-16 units

	maxKept = 2 // states kept for pages and deltas, the newest ones
)

// Row is one row of the catalog, in the order phones shall see.
type Row struct {
	Key  string
	JSON []byte // an object; brought into canonical form here
}

// Options of a Catalog; both are required.
type Options struct {
	// Read gives all rows, or an error when it cannot be sure that it has all: then the former state stays (SYNC-03).
	Read func(context.Context) ([]Row, error)
	// Generation counts the changes successfully made here. It must rise before a change is acknowledged.
	Generation func() uint64
}

// Catalog keeps the states of one catalog.
type Catalog struct {
	opts  Options
	epoch string // of this object's life
	wg    sync.WaitGroup

	mu     sync.Mutex // guards the rest
	kept   []*state   // oldest first; the last one is current
	flight *flight    // the read that may be joined
	closed bool
}

type state struct {
	revision string
	rows     []Row // canonical, never changed
	index    map[string]int
	size     int // bytes as one JSON array
}

// flight is one read in progress.
type flight struct {
	generation uint64
	cancel     context.CancelFunc
	done       chan struct{}
	waiters    int // guarded by Catalog.mu; the last one to leave cancels

	// Set before done is closed.
	result *state
	err    error
}

// New makes a Catalog with an epoch of its own.
func New(o Options) *Catalog { return &Catalog{opts: o, epoch: newID()} }

// Close ends a read in progress and waits for it; requests fail from then on.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	if c.flight != nil {
		c.flight.cancel()
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// Sync answers one request: the text of the payload, at most 65,536 bytes.
//
// Errors: params_invalid for a page beyond the end, catalog_changed when two reads in a row were overtaken,
// catalog_too_large, catalog_incomplete for rows that cannot be (twice the same key, no object), and those of Read.
func (c *Catalog) Sync(ctx context.Context, r Request) (json.RawMessage, error) {
	if r.Page != nil {
		return c.page(*r.Page)
	}
	now, err := c.refresh(ctx)
	if err != nil {
		return nil, err
	}
	if b := r.Base; b != nil && b.Epoch == c.epoch {
		if b.Revision == now.revision {
			return unchanged(c.epoch, now.revision), nil
		}
		if old := c.find(b.Revision); old != nil {
			if d := delta(c.epoch, old, now); d != nil {
				return d, nil
			}
		}
	}
	return first(c.epoch, now, r.PageIndex), nil
}

// page continues a frozen state; it never reads.
func (c *Catalog) page(p Page) (json.RawMessage, error) {
	var s *state
	if p.Epoch == c.epoch {
		s = c.find(p.Revision)
	}
	if s == nil {
		return expired(c.epoch), nil
	}
	if p.Offset > 0 && p.Offset >= len(s.rows) {
		return nil, codes.New(codes.ParamsInvalid)
	}
	text, _ := full(c.epoch, s, p.Offset, maxAnswer)
	return text, nil
}

func (c *Catalog) find(revision string) *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.kept {
		if s.revision == revision {
			return s
		}
	}
	return nil
}

// refresh gives a state no older than the call. A read that a change overtook is replaced by one fresh read.
func (c *Catalog) refresh(ctx context.Context) (*state, error) {
	for range 2 {
		generation := c.opts.Generation()
		f, err := c.join(ctx, generation)
		if err != nil {
			return nil, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			c.leave(f)
			return nil, ctx.Err()
		}
		c.leave(f)
		if generation != c.opts.Generation() {
			continue // whatever it says, it is old
		}
		if f.err != nil {
			return nil, f.err
		}
		return f.result, nil
	}
	return nil, codes.New(codes.CatalogChanged)
}

// join takes part in the read of this generation, or starts it. A read of an older one is left to its fate: it finds
// itself outdated.
func (c *Catalog) join(ctx context.Context, generation uint64) (*flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, codes.New(codes.Restarting)
	}
	if f := c.flight; f != nil && f.generation == generation {
		f.waiters++
		return f, nil
	}
	// The read belongs to all who wait for it, not to the first of them.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{generation: generation, cancel: cancel, done: make(chan struct{}), waiters: 1}
	c.flight = f
	c.wg.Go(func() { c.read(ctx, f) })
	return f, nil
}

func (c *Catalog) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	f.cancel()
	if c.flight == f {
		c.flight = nil
	}
}

func (c *Catalog) read(ctx context.Context, f *flight) {
	defer f.cancel()
	rows, err := c.opts.Read(ctx)
	var s *state
	if err == nil {
		s, err = build(rows, c.current())
	}
	overtaken := f.generation != c.opts.Generation()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight == f {
		c.flight = nil // who comes now wants a newer one
	}
	if err == nil && !overtaken { // overtaken from here on is harmless: its callers see that too
		s = c.keep(s)
	}
	f.result, f.err = s, err
	close(f.done)
}

// keep makes s current, unless it equals what is; c.mu is held.
func (c *Catalog) keep(s *state) *state {
	if n := len(c.kept); n > 0 && c.kept[n-1].equal(s) {
		return c.kept[n-1]
	}
	s.revision = newID()
	c.kept = append(c.kept, s)
	if len(c.kept) > maxKept {
		c.kept = append([]*state(nil), c.kept[len(c.kept)-maxKept:]...)
	}
	return s
}

func (c *Catalog) current() *state {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.kept); n > 0 {
		return c.kept[n-1]
	}
	return &state{}
}

// build checks rows and makes them canonical. A row whose text is that of old is so already.
func build(rows []Row, old *state) (*state, error) {
	if len(rows) > maxRows {
		return nil, codes.New(codes.CatalogTooLarge).Because(fmt.Errorf("%d rows", len(rows)))
	}
	s := &state{rows: make([]Row, len(rows)), index: make(map[string]int, len(rows)), size: 2 + max(len(rows)-1, 0)}
	for i, r := range rows {
		var text []byte
		var err error
		if j, known := old.index[r.Key]; known && bytes.Equal(old.rows[j].JSON, r.JSON) {
			text = old.rows[j].JSON
		} else {
			text, err = jsonframe.Canonical(r.JSON)
		}
		switch n := jsonframe.Units(r.Key); {
		case err != nil:
			return nil, codes.New(codes.CatalogIncomplete).Because(err)
		case text[0] != '{':
			return nil, codes.New(codes.CatalogIncomplete).Because(jsonframe.ErrNotObject)
		case n < 1 || n > maxKey:
			return nil, codes.New(codes.CatalogIncomplete).Because(fmt.Errorf("row %d has a key of %d characters", i, n))
		case len(text) > maxRow:
			return nil, codes.New(codes.CatalogTooLarge).Because(fmt.Errorf("row %d has %d bytes", i, len(text)))
		}
		if _, twice := s.index[r.Key]; twice {
			return nil, codes.New(codes.CatalogIncomplete).Because(fmt.Errorf("row %d has the key of another one", i))
		}
		s.index[r.Key] = i
		s.rows[i] = Row{r.Key, text}
		s.size += len(text)
	}
	if s.size > maxBytes {
		return nil, codes.New(codes.CatalogTooLarge).Because(fmt.Errorf("%d bytes", s.size))
	}
	return s, nil
}

func (s *state) equal(t *state) bool {
	if len(s.rows) != len(t.rows) || s.size != t.size {
		return false
	}
	for i := range s.rows {
		if s.rows[i].Key != t.rows[i].Key || !bytes.Equal(s.rows[i].JSON, t.rows[i].JSON) {
			return false
		}
	}
	return true
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
