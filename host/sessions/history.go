package sessions

import (
	"context"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// History reads a page, the newest for an empty cursor; messages within it are oldest first. It starts, resumes and
// locks nothing. With a running reply the newest page says so.
func (c *Conversations) History(ctx context.Context, key, cursor string, maxMessages int) (*History, error) {
	conv, err := c.find(key)
	if err != nil {
		return nil, err
	}
	if maxMessages <= 0 || maxMessages > maxHistoryPage {
		maxMessages = maxHistoryPage
	}
	reading := c.shelf.Begin(key, cursor)
	page, err := c.readPage(ctx, conv, cursor, maxMessages)
	if err != nil {
		return nil, err
	}
	keys, err := c.phoneKeys(ctx, conv, page.Messages)
	if err != nil {
		return nil, err
	}
	endings, err := c.endings(ctx, conv)
	if err != nil {
		return nil, err
	}
	h := &History{Key: key, NextCursor: page.NextCursor}
	c.mu.Lock()
	roots := conv.roots()
	c.mu.Unlock()
	for _, m := range page.Messages {
		row := c.project(reading, roots, m)
		if m.Role == runtime.RoleUser {
			row.IdempotencyKey = keys[m.RunID]
		}
		h.Messages = append(h.Messages, row)
	}
	h.Messages = withEndings(h.Messages, endings, c.id, cursor == "", page.NextCursor == "")
	c.mu.Lock()
	defer c.mu.Unlock()
	if conv.deleted {
		return nil, codes.New(codes.SessionUnknown)
	}
	h.SessionID = conv.ref().SessionID
	h.Thinking = conv.thinking
	if r := conv.current(); r != nil && cursor == "" {
		h.ActiveRun = &ActiveRun{
			RunID: r.id, NativeRunID: r.nativeID, InputMessageID: r.inputID, InputKey: r.key,
			Text: r.text.full(), StartedAt: r.startedAt, Abortable: true,
		}
	}
	return h, nil
}

// current is the run phones are shown, ours before one begun elsewhere. mu is held.
func (conv *conversation) current() *run {
	var found *run
	for _, r := range conv.runs {
		if found == nil || found.elsewhere && !r.elsewhere {
			found = r
		}
	}
	return found
}

// readPage reads a page that does not contradict the events: if a run ended after the plugin looked, it looks again, and
// what the page already reflects is waited for.
func (c *Conversations) readPage(ctx context.Context, conv *conversation, cursor string, n int) (*runtime.ReadHistoryResponse, error) {
	for again := false; ; again = true {
		c.mu.Lock()
		ref, generation := conv.ref(), c.generation
		c.mu.Unlock()
		if ref.NativeID == "" {
			return &runtime.ReadHistoryResponse{}, nil // the runtime has never heard of it
		}
		page, err := readAs(ctx, c, func() (*runtime.ReadHistoryResponse, error) {
			return c.rt.ReadHistory(ctx, &runtime.ReadHistoryRequest{
				Session: ref, Cursor: cursor, MaxMessages: uint32(n),
				MaxBytes: maxHistoryBytes,
			})
		})
		if err != nil {
			return nil, err
		}
		if cursor != "" || page.AsOfSeq == 0 {
			return page, nil
		}
		c.caughtUp(ctx, page.AsOfSeq)
		c.mu.Lock()
		old := conv.lastEnd > page.AsOfSeq && generation == c.generation
		c.mu.Unlock()
		if !old || again {
			return page, nil
		}
	}
}

// phoneKeys finds the phones' keys of the prompts of ours among messages. Only the runtime's own record ties a row to a
// run, and only our receipt ties a run to a key (CX-29).
func (c *Conversations) phoneKeys(ctx context.Context, conv *conversation, list []runtime.Message) (map[string]string, error) {
	keys := map[string]string{}
	for _, m := range list {
		if m.Role != runtime.RoleUser || m.RunID == "" {
			continue
		}
		if _, done := keys[m.RunID]; done {
			continue
		}
		rec, found, err := c.db.Run(ctx, c.id, m.RunID)
		if err != nil {
			return nil, err
		}
		if found && rec.SessionID == conv.key {
			keys[m.RunID] = rec.Key
		}
	}
	return keys, nil
}
