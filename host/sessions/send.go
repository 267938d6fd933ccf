package sessions

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openphone-host/openphone/host/ledger"
	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Send takes a prompt: looks its receipt up, lets the runtime check it, writes the receipt, and answers; the runtime
// gets the prompt afterwards, at most once. The same prompt again answers the same run id and does nothing, for ever.
//
// An error means that nothing was sent and nothing was recorded. Errors: those of PrepareRun, operation_conflict,
// receipts_full, receipt_failed, run_active, prompt_empty, prompt_too_long, attachment_*, key_invalid, session_unknown.
func (c *Conversations) Send(ctx context.Context, in SendInput) (string, error) {
	id, fresh, err := c.send(ctx, in)
	switch {
	case err != nil:
		c.count.prompts.WithLabelValues("refused").Inc()
	case fresh:
		c.count.prompts.WithLabelValues("accepted").Inc()
	default:
		c.count.prompts.WithLabelValues("repeated").Inc()
	}
	return id, err
}

func (c *Conversations) send(ctx context.Context, in SendInput) (id string, fresh bool, err error) {
	c.opts.Fault(killReceived)
	if err := c.checkSend(in); err != nil {
		return "", false, err
	}
	conv, err := c.find(in.SessionKey)
	if err != nil {
		// A conversation that is gone still knows what it was sent.
		id, err = c.repeated(ctx, in, err)
		return id, false, err
	}
	// Both answers are given without waiting for the write lock, which a running dispatch may hold.
	if id, err := c.repeated(ctx, in, nil); id != "" || err != nil {
		return id, false, err
	}
	if err := c.checkFreeFor(conv, in.IdempotencyKey); err != nil {
		// What keeps it busy may be the first copy of this very prompt, whose receipt was written a moment ago.
		id, err = c.repeated(ctx, in, err)
		return id, false, err
	}
	if err := c.lock(ctx, conv); err != nil {
		return "", false, err
	}
	id, r, err := c.sendLocked(ctx, conv, in)
	if r == nil || !c.begin(func() { defer conv.unlock(); c.commit(r) }) {
		// Nothing to dispatch, or the host is ending: the next one asks the runtime, which has never seen the run.
		conv.unlock()
	}
	return id, r != nil, err
}

// sendLocked does what Send does with the write lock. r, when there is one, is to be dispatched.
func (c *Conversations) sendLocked(ctx context.Context, conv *conversation, in SendInput) (id string, r *run, err error) {
	if id, err := c.repeated(ctx, in, nil); id != "" || err != nil {
		return id, nil, err
	}
	if err := c.checkFree(conv); err != nil {
		return "", nil, err
	}
	c.opts.Fault(killLookedUp)
	runID := c.opts.NewID()
	defer c.prepared(conv)
	prepared, err := c.prepare(ctx, conv, runID, in)
	if err != nil {
		return "", nil, err
	}
	r, called, err := c.accept(ctx, conv, runID, in, prepared)
	if err != nil {
		c.abandon(runID)
		return "", nil, err
	}
	c.flush()
	c.opts.Fault(killAnnounced)
	if called { // off while its receipt was written: it is on record, and was never dispatched
		c.abandon(runID)
		c.end(r, &runtime.RunEnded{Reason: runtime.EndReasonCancelled}, time.Time{}, 0)
		return runID, nil, nil
	}
	return runID, r, nil
}

// prepared ends the time in which a prompt has no receipt.
func (c *Conversations) prepared(conv *conversation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conv.prepare = nil
}

// repeated answers a prompt whose key is known: its run id, or operation_conflict. Otherwise it answers other.
func (c *Conversations) repeated(ctx context.Context, in SendInput, other error) (string, error) {
	rec, found, err := c.db.RunByKey(ctx, c.id, in.SessionKey, in.IdempotencyKey)
	if err != nil {
		return "", err
	}
	var known *ledger.Receipt
	if found {
		known = &ledger.Receipt{RunID: rec.RunID, Fingerprint: rec.Fingerprint}
	}
	switch ledger.Decide(known, in.Fingerprint) {
	case ledger.Repeat:
		return rec.RunID, nil
	case ledger.Conflict:
		return "", codes.New(codes.OperationConflict)
	}
	return "", other
}

// checkFreeFor is checkFree, but lets the same prompt wait for its first copy.
func (c *Conversations) checkFreeFor(conv *conversation, key string) error {
	c.mu.Lock()
	same := conv.prepare != nil && conv.prepare.key == key
	c.mu.Unlock()
	if same {
		return nil
	}
	return c.checkFree(conv)
}

func (c *Conversations) checkFree(conv *conversation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case conv.deleted:
		return codes.New(codes.SessionUnknown)
	case conv.busy():
		return codes.New(codes.RunActive)
	}
	return nil
}

// prepare lets the runtime check the prompt. Until the receipt is written, Abort can call it off.
func (c *Conversations) prepare(ctx context.Context, conv *conversation, runID string, in SendInput) (*runtime.PrepareRunResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	c.mu.Lock()
	p := &preparation{runID: runID, key: in.IdempotencyKey, cancel: cancel}
	conv.prepare = p
	ref := conv.ref()
	if !conv.isOwn {
		ref.SessionID = conv.key // from its first prompt on it is one of ours, under the name phones know
	}
	c.mu.Unlock()
	c.opts.Fault(killPreparing)
	resp, err := c.rt.PrepareRun(ctx, &runtime.PrepareRunRequest{
		Session: ref, RunID: runID, Input: input(in),
		Options: promptOptions(in),
	})
	c.opts.Fault(killPrepared)

	c.mu.Lock()
	// A run that began in the runtime meanwhile, a deletion, or a phone that called it off.
	other, gone, called := len(conv.runs) > 0, conv.deleted, ctx.Err()
	taken := false
	if resp != nil {
		owner := c.byNative[resp.Session.NativeID]
		taken = owner != nil && owner != conv && owner.isOwn
	}
	c.mu.Unlock()
	switch {
	case err != nil && called != nil:
		c.abandon(runID) // the plugin may still agree after nobody waits
		return nil, refusal(err)
	case err != nil:
		return nil, err
	case gone:
		err = codes.New(codes.SessionUnknown)
	case other:
		err = codes.New(codes.RunActive)
	case called != nil:
		err = codes.New(codes.RunNotDispatched).Because(called)
	case taken: // two conversations of ours in one of the runtime's would mix
		err = codes.New(codes.ReplyInvalid).With(codes.NotDispatched)
	}
	if err != nil {
		c.abandon(runID)
		return nil, err
	}
	return resp, nil
}

// refusal names the end of a preparation that nobody waits for any more. It is always clean: nothing was sent.
func refusal(err error) error {
	if e := codes.As(err); e != nil {
		return e.With(codes.NotDispatched)
	}
	return codes.New(codes.RunNotDispatched).Because(err)
}

// abandon lets the plugin forget a prepared run, without keeping anybody waiting.
func (c *Conversations) abandon(runID string) {
	c.begin(func() {
		if err := c.rt.AbandonRun(c.life, &runtime.AbandonRunRequest{RunID: runID}); err != nil {
			c.log.Debug("a prepared run was not abandoned", obs.KeyError, err)
		}
	})
}

// accept writes the receipt together with title and activity, makes the run and announces it. called: a phone stopped it
// meanwhile.
func (c *Conversations) accept(ctx context.Context, conv *conversation, runID string, in SendInput, p *runtime.PrepareRunResponse) (r *run, called bool, err error) {
	now := time.Now()
	r = &run{id: runID, key: in.IdempotencyKey, state: ledger.Accepted, startedAt: now}
	err = c.change(conv, func(rec *store.Session) {
		rec.UpdatedAt, rec.LastActivityAt = now, now
		pick(&rec.NativeID, p.Session.NativeID)
		pick(&rec.ProjectPath, p.Session.ProjectPath)
		pick(&rec.ModelID, p.ModelID)
		pick(&rec.ProviderID, p.ProviderID)
		pick2(&rec.Title, firstCharacters(strings.TrimSpace(in.Text), promptTitle))
		pick(&rec.Preview, promptPreview(in))
	}, func(rec store.Session) error {
		c.opts.Fault(killAccepting)
		return c.db.Accept(ctx, store.Run{
			Runtime: c.id, SessionID: rec.SessionID, RunID: runID, Key: in.IdempotencyKey,
			Fingerprint: in.Fingerprint, ThinkingLevel: in.Thinking, AcceptedAt: now,
		}, rec)
	})
	if err != nil {
		c.log.Warn("a receipt was not written", obs.KeyError, err)
		if codes.As(err) == nil || codes.Of(err) == codes.Internal {
			err = codes.New(codes.ReceiptFailed).Because(err)
		}
		return nil, false, err
	}
	c.opts.Fault(killAccepted)

	c.mu.Lock()
	defer c.mu.Unlock()
	called = conv.prepare.called
	conv.prepare = nil
	conv.thinking = in.Thinking
	r.committing = c.generation
	c.track(conv, r)
	// A phone must know that the conversation is busy before the run appears in it (app-protocol §5 rule 1).
	c.publishRow(conv)
	c.publish(r.update(RunStarted, now))
	return r, called, nil
}

func (c *Conversations) checkSend(in SendInput) error {
	if !ledger.KeyValid(in.IdempotencyKey) {
		return codes.New(codes.KeyInvalid)
	}
	if len(in.Fingerprint) != 64 {
		return codes.New(codes.ParamsInvalid)
	}
	if err := c.checkText(in.Text); err != nil {
		return err
	}
	if in.Text == "" && len(in.Attachments) == 0 {
		return codes.New(codes.PromptEmpty)
	}
	l := c.limits()
	if len(in.Attachments) > int(l.Attachments) {
		return codes.New(codes.AttachmentsTooMany, "limit", itoa(int(l.Attachments)))
	}
	var size uint64
	types := c.rt.Status().ContentTypes
	for _, a := range in.Attachments {
		size += uint64(len(a.Data))
		switch {
		case len(a.Data) == 0 || !utf8.ValidString(a.Name):
			return codes.New(codes.AttachmentMalformed)
		case types != nil && !contains(types, a.MIME):
			return codes.New(codes.AttachmentUnsupported)
		}
	}
	if size > l.AttachmentBytes {
		return codes.New(codes.AttachmentTooLarge)
	}
	return nil
}

func input(in SendInput) []runtime.Part {
	var parts []runtime.Part
	if in.Text != "" {
		parts = append(parts, runtime.Part{Text: in.Text})
	}
	for _, a := range in.Attachments {
		size := uint64(len(a.Data))
		parts = append(parts, runtime.Part{Data: a.Data, ContentType: a.MIME, Name: a.Name, Size: &size})
	}
	return parts
}

func promptOptions(in SendInput) map[string]string {
	if in.Thinking == "" {
		return nil
	}
	return map[string]string{optionThinking: in.Thinking}
}

// PromptStatus tells whether the host has a receipt of a prompt. It proves no execution, and "not recorded" permits no
// second send (SYNC-12).
func (c *Conversations) PromptStatus(ctx context.Context, key, idempotencyKey string) (string, bool, error) {
	if !ledger.KeyValid(idempotencyKey) {
		return "", false, codes.New(codes.KeyInvalid)
	}
	rec, found, err := c.db.RunByKey(ctx, c.id, key, idempotencyKey)
	if err != nil || found {
		return rec.RunID, found, err
	}
	_, err = c.find(key)
	return "", false, err
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
