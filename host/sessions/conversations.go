package sessions

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openphone-host/openphone/host/consent"
	"github.com/openphone-host/openphone/host/sessions/artifact"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Options make a Conversations.
type Options struct {
	Runtime Runtime
	Store   *store.Store
	Log     *slog.Logger // nil: discard
	// NativeKey makes the name phones use for a native conversation; nil: "native:" and 32 hex digits of sha256.
	NativeKey func(nativeID string) string
	// ProjectPath is the one project of the instance; empty: the whole computer.
	ProjectPath string
	// Projects gives directories the person offered on this computer, absolute, latest first; nil: none.
	Projects func() []string
	// Autonomy is the highest level the person allows this runtime; unspecified: ask before each action.
	Autonomy runtime.Autonomy
	// MaxSessions bounds the conversations of our own; default 1000.
	MaxSessions int
	// MaxTitle bounds titles, in UTF-16 units; default 200.
	MaxTitle int
	// NewID makes run and session ids; nil: UUID version 4.
	NewID   func() string
	Metrics prometheus.Registerer // nil registers nothing
	// Fault is called with one of KillPoints at each step of a send; nil outside of fault tests.
	Fault func(point string)
}

// Conversations is the Service of one runtime. New reads what is durable; Run owns the work that outlives a call.
type Conversations struct {
	opts  Options
	rt    Runtime
	db    *store.Store
	book  *consent.Book
	shelf *artifact.Shelf
	log   *slog.Logger
	count *metrics
	id    string // of the runtime's instance

	life   context.Context // ends when Run ends
	cancel context.CancelFunc
	work   sync.WaitGroup // commits and clean-ups under way; see begin

	mu         sync.Mutex
	closed     bool
	generation uint64 // of the plugin process that is listened to
	down       bool
	// unasked is how to ask a process that had no answer yet what became of open work; nil: nothing is owed.
	unasked reconcileFunc
	// statusChanged is closed and replaced when the runtime's status changes.
	statusChanged chan struct{}
	writes        uint64                   // successful management writes (SYNC-04)
	byKey         map[string]*conversation // every known conversation
	byNative      map[string]*conversation
	own           []*conversation // with a record of ours, in order of creation
	native        []*conversation // without one, in the order of the last scan
	runs          map[string]*run // open runs
	ended         recent          // ids of runs that ended not long ago
	seq           uint64          // last event of this generation that was applied
	seqChanged    chan struct{}   // closed and replaced when seq moves
	seqWaiters    int
	scan          *scan // the catalog read under way
	// projectNames and missing are what was last seen of directories, by path.
	projectNames map[string]string
	missing      map[string]bool
	raised       []store.Attention
	gone         map[string]uint64 // native conversations let go of, and writes by then
	subs         []*subscription   // replaced, never changed
	outbox       []delivery
	delivering   bool
}

// conversation is one conversation in memory. Its fields are guarded by Conversations.mu. What a person decides about rec
// is changed by the holder of write alone, on disk first; what the runtime tells about it is kept as it comes.
type conversation struct {
	key string
	// write serialises everything that changes the conversation, also in the runtime; see lock and docs/locks.md.
	write    chan struct{}
	isOwn    bool
	deleted  bool
	rec      store.Session    // with isOwn
	row      *runtime.Session // what the runtime's store says; nil: never seen there
	rowSeq   uint64           // event that brought row; 0: a scan did
	runs     []*run           // open, oldest first
	prepare  *preparation     // a prompt on its way to its receipt
	thinking string           // of the last prompt
	lastEnd  uint64           // event that ended the last run
	written  uint64           // Conversations.writes after its last management write
	saving   chan struct{}    // held while its record is written; see save
	shown    runtime.AttentionKind
	// endings are what history shows of ended runs beside the runtime's own record, once they were read.
	endings      []ending
	endingsKnown bool
}

var _ Service = (*Conversations)(nil)

// New reads the durable conversations and open runs of the runtime. Nothing is asked of the plugin.
func New(o Options) (*Conversations, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.NativeKey == nil {
		o.NativeKey = hashedKey
	}
	if o.NewID == nil {
		o.NewID = newUUID
	}
	if o.Fault == nil {
		o.Fault = func(string) {}
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = defaultMaxSessions
	}
	if o.MaxTitle <= 0 {
		o.MaxTitle = defaultMaxTitle
	}
	c := &Conversations{
		opts: o, rt: o.Runtime, db: o.Store, log: o.Log, id: o.Runtime.ID(), down: true,
		byKey: map[string]*conversation{}, byNative: map[string]*conversation{}, runs: map[string]*run{},
		seqChanged: make(chan struct{}), statusChanged: make(chan struct{}), projectNames: map[string]string{}, missing: map[string]bool{},
		gone: map[string]uint64{},
	}
	c.shelf = c.newShelf()
	c.life, c.cancel = context.WithCancel(context.Background())
	if err := c.load(c.life); err != nil {
		c.cancel()
		return nil, err
	}
	c.count = newMetrics(o.Metrics, c)
	return c, nil
}

func (c *Conversations) load(ctx context.Context) error {
	var err error
	// What a former host left open is expired: whoever asked is gone, or asks again through Reconcile.
	if c.book, _, err = consent.New(ctx, consent.Options{Runtime: c.id, Store: c.db, Log: c.log}); err != nil {
		return err
	}
	if c.raised, err = c.db.Attention(ctx, c.id, time.Now()); err != nil {
		return err
	}
	list, err := c.db.Sessions(ctx, c.id)
	if err != nil {
		return err
	}
	for _, rec := range list {
		c.adopt(rec)
	}
	open, err := c.db.OpenRuns(ctx, c.id)
	if err != nil {
		return err
	}
	for _, rec := range open {
		conv := c.byKey[rec.SessionID]
		if conv == nil { // deleted while its end could not be written
			if err := c.db.EndRun(ctx, c.id, rec.RunID, int32(runtime.EndReasonUnspecified), codes.Interrupted, time.Now()); err != nil {
				return err
			}
			continue
		}
		conv.thinking = rec.ThinkingLevel
		c.track(conv, restored(rec))
	}
	return nil
}

// Run expires interactions and lets background work go on until ctx ends, then refuses new work and waits for what is
// under way. It returns nil.
func (c *Conversations) Run(ctx context.Context) error {
	_ = c.book.Run(ctx, func(e consent.Ended) { c.shut(e) })
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
	return nil
}

// begin starts background work that Run waits for; false when the host is ending.
func (c *Conversations) begin(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(fn)
	return true
}

// RuntimeID is the name of the instance.
func (c *Conversations) RuntimeID() string { return c.id }

// Generation counts successful management writes.
func (c *Conversations) Generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// adopt takes a record of ours into memory. mu is held, or nobody else knows c yet.
func (c *Conversations) adopt(rec store.Session) *conversation {
	conv := c.byKey[rec.SessionID]
	if conv == nil {
		conv = newConversation(rec.SessionID)
		c.byKey[conv.key] = conv
	}
	if !conv.isOwn {
		c.own = append(c.own, conv)
	}
	conv.isOwn, conv.rec = true, rec
	if rec.NativeID != "" {
		c.byNative[rec.NativeID] = conv
	}
	return conv
}

func newConversation(key string) *conversation {
	return &conversation{key: key, write: make(chan struct{}, 1), saving: make(chan struct{}, 1)}
}

// find looks a conversation up by what phones call it.
func (c *Conversations) find(key string) (*conversation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conv := c.byKey[key]; conv != nil && !conv.deleted {
		return conv, nil
	}
	return nil, codes.New(codes.SessionUnknown)
}

// lock takes the right to change a conversation, waiting for who has it. The holder of the lock calls unlock, perhaps
// from another goroutine.
func (c *Conversations) lock(ctx context.Context, conv *conversation) error {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	select {
	case conv.write <- struct{}{}:
	case <-ctx.Done():
		return codes.New(codes.SessionBusy).Because(ctx.Err())
	}
	c.mu.Lock()
	gone, closed := conv.deleted, c.closed
	c.mu.Unlock()
	switch {
	case gone:
		conv.unlock()
		return codes.New(codes.SessionUnknown)
	case closed:
		conv.unlock()
		return codes.New(codes.Restarting)
	}
	return nil
}

func (conv *conversation) unlock() { <-conv.write }

// ref names a conversation to the plugin. mu is held.
func (conv *conversation) ref() runtime.SessionRef {
	if conv.isOwn {
		return runtime.SessionRef{SessionID: conv.rec.SessionID, NativeID: conv.rec.NativeID, ProjectPath: conv.rec.ProjectPath}
	}
	return conv.row.Ref
}

func (c *Conversations) refOf(conv *conversation) runtime.SessionRef {
	c.mu.Lock()
	defer c.mu.Unlock()
	return conv.ref()
}

// can reports whether the runtime offers a capability now.
func (c *Conversations) can(x runtime.Capability) bool {
	d, s := c.rt.Description(), c.rt.Status()
	return d != nil && runtime.Has(d.Capabilities, x) && runtime.Has(s.Capabilities, x)
}

func hashedKey(nativeID string) string {
	sum := sha256.Sum256([]byte(nativeID))
	return "native:" + hex.EncodeToString(sum[:16])
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (package documentation)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
