// Package consent keeps what a runtime waits for: approvals and questions, from the moment they are asked to their one
// and only answer.
//
// Each has a durable record, a public id that no two conversations share, and at most one answer: whoever claims it
// first holds a ticket, and a ticket of an earlier life of the same request settles nothing. What was pending when the
// host ended is expired at the next start; when the plugin ends it is cancelled, and opens again only if the runtime
// then says that it still asks. It knows no phone, no plugin call and no policy: host/sessions claims, asks the runtime
// and settles.
//
// A Book is safe for concurrent use. It starts no goroutine; Run waits for expiries, for as long as it is called.
package consent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// maxPerSession is how many requests of one conversation may wait.
	maxPerSession = 16
	// maxPerRuntime is how many requests of one runtime may wait.
	maxPerRuntime = 32
)

// Store keeps the records; *store.Store implements it.
type Store interface {
	PutInteraction(context.Context, store.Interaction) error
	Interaction(ctx context.Context, rt, interactionID string) (store.Interaction, bool, error)
	ClaimInteraction(ctx context.Context, rt, interactionID, by string) (bool, error)
	ReleaseInteraction(ctx context.Context, rt, interactionID string) (bool, error)
	CloseInteraction(ctx context.Context, rt, interactionID string, closure int32, by string, at time.Time) (bool, error)
	LoseInteractions(ctx context.Context, rt string, closure int32, at time.Time) ([]store.Interaction, error)
	ReopenInteraction(ctx context.Context, rt, interactionID, subjectHash string) (bool, error)
}

// Options of a Book. Runtime and Store are required.
type Options struct {
	Runtime string // instance id
	Store   Store
	Clock   Clock        // nil: the system's
	Log     *slog.Logger // nil: none
}

// Asked is one open request.
type Asked struct {
	// ID is what phones call it.
	ID string
	// NativeID is what the runtime calls it.
	NativeID   string
	SessionKey string
	RunID      string
	// Request has ID as its InteractionID.
	Request runtime.Interaction
	// Answering: somebody's answer is on its way, or it is not known whether it arrived.
	Answering bool
}

// Ended is a request that waits no more.
type Ended struct {
	Asked
	Closure runtime.Closure
	By      string // who answered; empty: nobody here
}

// Ticket is the right to give the one answer.
type Ticket struct {
	Asked
	by    string
	fence uint64
}

// Book holds the open requests of one runtime.
type Book struct {
	runtime string
	store   Store
	clock   Clock
	log     *slog.Logger
	changed chan struct{} // capacity 1: the next expiry may have moved

	mu    sync.Mutex // guards open, fence and the entries; never held during I/O
	open  map[string]*entry
	fence uint64 // counts openings and claims
}

type entry struct {
	Asked
	order    uint64
	fence    uint64 // of the claim that counts
	stage    stage
	closure  runtime.Closure // of the end being written
	shown    bool            // Open has returned it, so its end is told too
	deadline time.Duration   // on the boot-time clock; 0: none
}

type stage int

const (
	opening   stage = iota // the record is being written
	pending                // may be claimed
	answering              // claimed
	uncertain              // answered, and nobody knows whether that arrived; the runtime will tell
	closing                // the end is being written
)

// New makes an empty Book and expires what a former host left pending: nobody may consent for a caller that is gone.
// It gives the records of those, so that their conversations can say so.
func New(ctx context.Context, o Options) (*Book, []store.Interaction, error) {
	b := &Book{
		runtime: o.Runtime, store: o.Store, clock: o.Clock, log: o.Log,
		changed: make(chan struct{}, 1), open: map[string]*entry{},
	}
	if b.clock == nil {
		b.clock = systemClock{}
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	left, err := b.store.LoseInteractions(ctx, b.runtime, int32(runtime.ClosureExpired), b.clock.Wall())
	if err != nil {
		return nil, nil, err
	}
	return b, left, nil
}

// ID is the public name of a runtime's request: 32 hex digits.
func ID(sessionKey, nativeID string) string {
	h := sha256.Sum256([]byte(sessionKey + "\x00" + nativeID))
	return hex.EncodeToString(h[:16])
}

// Open takes a request of the runtime. The same request again is the same request: fresh is false, and nothing changes.
// One that has ended stays ended, unless it was lost with its process and is exactly the same.
//
// Errors: interactions_full, interaction_not_pending for one that has ended, answer_invalid for one without a name or a
// body, and those of the store.
func (b *Book) Open(ctx context.Context, sessionKey, runID string, in runtime.Interaction) (a Asked, fresh bool, err error) {
	if in.InteractionID == "" || (in.Approval == nil) == (in.Question == nil) {
		return Asked{}, false, codes.New(codes.AnswerInvalid)
	}
	id := ID(sessionKey, in.InteractionID)
	e := &entry{Asked: Asked{ID: id, NativeID: in.InteractionID, SessionKey: sessionKey, RunID: runID, Request: in}}
	e.Request.InteractionID = id
	if !in.ExpiresAt.IsZero() {
		// Already past is due at once; 0 would mean never.
		e.deadline = b.clock.Mono() + max(in.ExpiresAt.Sub(b.clock.Wall()), 1)
	}

	b.mu.Lock()
	if old := b.open[id]; old != nil {
		a = old.asked()
		b.mu.Unlock()
		return a, false, nil
	}
	of := 0
	for _, o := range b.open {
		if o.SessionKey == sessionKey {
			of++
		}
	}
	if of >= maxPerSession || len(b.open) >= maxPerRuntime {
		b.mu.Unlock()
		return Asked{}, false, codes.New(codes.InteractionsFull)
	}
	b.fence++
	e.order, e.fence = b.fence, b.fence
	b.open[id] = e
	b.mu.Unlock()

	err = b.record(ctx, e)

	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		if b.open[id] == e {
			delete(b.open, id)
		}
		return Asked{}, false, err
	}
	if e.stage != opening { // ended before it was there; its record is expired by the next start at the latest
		return Asked{}, false, codes.New(codes.InteractionNotPending)
	}
	e.stage, e.shown = pending, true
	b.signal()
	return e.asked(), true, nil
}

// record writes the record of a new request, or finds that it was only lost.
func (b *Book) record(ctx context.Context, e *entry) error {
	hash := subjectHash(e.Request)
	known, ok, err := b.store.Interaction(ctx, b.runtime, e.ID)
	if err != nil {
		return err
	}
	if ok && known.State == store.Lost {
		if ok, err = b.store.ReopenInteraction(ctx, b.runtime, e.ID, hash); err != nil || ok {
			return err
		}
		return codes.New(codes.InteractionNotPending)
	}
	if ok {
		return codes.New(codes.InteractionNotPending)
	}
	return b.store.PutInteraction(ctx, store.Interaction{
		Runtime: b.runtime, InteractionID: e.ID, SessionID: e.SessionKey, RunID: e.RunID,
		Approval: e.Request.Approval != nil, SubjectHash: hash, State: store.Pending, OpenedAt: b.clock.Wall(),
	})
}

// Get finds an open request.
func (b *Book) Get(id string) (Asked, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.open[id]
	if e == nil || e.stage == opening || e.stage == closing {
		return Asked{}, false
	}
	return e.asked(), true
}

// List gives the open requests of a conversation (empty: of all), approvals or questions, oldest first.
func (b *Book) List(sessionKey string, approvals bool) []Asked {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*entry
	for _, e := range b.open {
		if e.stage != opening && e.stage != closing && (e.Request.Approval != nil) == approvals &&
			(sessionKey == "" || e.SessionKey == sessionKey) {
			list = append(list, e)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].order < list[j].order })
	asked := make([]Asked, len(list))
	for i, e := range list {
		asked[i] = e.asked()
	}
	return asked
}

// Attention is why the conversation wants a person: an approval before a question, else nothing (SYNC-11).
func (b *Book) Attention(sessionKey string) runtime.AttentionKind {
	b.mu.Lock()
	defer b.mu.Unlock()
	kind := runtime.AttentionKindUnspecified
	for _, e := range b.open {
		switch {
		case e.SessionKey != sessionKey, e.stage == opening, e.stage == closing:
		case e.Request.Approval != nil:
			return runtime.AttentionKindApproval
		default:
			kind = runtime.AttentionKindInput
		}
	}
	return kind
}

// Claim takes the right to answer, for exactly one caller. by is a label for people.
//
// Errors: interaction_not_pending, interaction_answered, answer_unknown while it is not known what became of an answer,
// and those of the store, after which another try is allowed.
func (b *Book) Claim(ctx context.Context, id, by string) (Ticket, error) {
	now := b.clock.Mono()
	b.mu.Lock()
	e := b.open[id]
	var refused string
	switch {
	case e == nil:
		b.mu.Unlock()
		return Ticket{}, b.past(ctx, id)
	case e.stage == answering:
		refused = codes.InteractionAnswered
	case e.stage == uncertain:
		refused = codes.AnswerUnknown
	case e.stage == closing && answered(e.closure):
		refused = codes.InteractionAnswered
	case e.stage != pending, e.deadline != 0 && now >= e.deadline:
		refused = codes.InteractionNotPending
	}
	if refused != "" {
		b.mu.Unlock()
		return Ticket{}, codes.New(refused)
	}
	b.fence++
	e.stage, e.fence = answering, b.fence
	t := Ticket{Asked: e.asked(), by: by, fence: e.fence}
	b.mu.Unlock()

	won, err := b.store.ClaimInteraction(ctx, b.runtime, id, by)
	if err == nil && won {
		return t, nil
	}
	var refusal error
	if err == nil {
		refusal = b.past(ctx, id) // it ended while we asked
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[id] == e && e.stage == answering && e.fence == t.fence && err != nil {
		e.stage = pending
	}
	if err != nil {
		return Ticket{}, err
	}
	return Ticket{}, refusal
}

// past explains a request that is not open.
func (b *Book) past(ctx context.Context, id string) error {
	known, ok, err := b.store.Interaction(ctx, b.runtime, id)
	if err != nil {
		return err
	}
	if ok && known.State == store.Answering {
		return codes.New(codes.InteractionAnswered)
	}
	if ok && known.State == store.Closed && answered(runtime.Closure(known.Closure)) {
		return codes.New(codes.InteractionAnswered)
	}
	return codes.New(codes.InteractionNotPending)
}

// answered reports an end that somebody's answer made.
func answered(c runtime.Closure) bool {
	return c == runtime.ClosureAllowed || c == runtime.ClosureDenied || c == runtime.ClosureAnswered
}

func (e *entry) asked() Asked {
	a := e.Asked
	a.Answering = e.stage == answering || e.stage == uncertain
	return a
}

// subjectHash is a fingerprint of all that is consented to or asked.
func subjectHash(in runtime.Interaction) string {
	b, _ := json.Marshal(struct {
		Agent    string
		Approval *runtime.Approval
		Question *runtime.Question
	}{in.AgentName, in.Approval, in.Question})
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
