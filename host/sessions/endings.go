package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxEndings is how many notices of ended runs a conversation keeps at hand, the newest ones.
const maxEndings = 100

// ending is the end of a run of ours that the runtime's own record cannot show: it never had the prompt, or forgot it.
// History shows it, because a phone that was away when it happened has no other way to learn of it.
type ending struct {
	runID, nativeID, code string
	at                    time.Time
}

// endingOf gives the ending of a run; false: the runtime's record tells it.
func endingOf(r store.Run) (ending, bool) {
	hosts := r.Outcome == int32(runtime.OutcomeNotDispatched) || r.EndReason == int32(runtime.EndReasonUnspecified)
	switch r.EndCode {
	case codes.RunNotDispatched, codes.Interrupted, codes.OutcomeUnknown:
		hosts = true
	}
	code := endCode(&runtime.RunEnded{Reason: runtime.EndReason(r.EndReason), Code: r.EndCode})
	return ending{r.RunID, r.NativeRunID, code, r.EndedAt}, hosts && r.Ended && code != ""
}

// endings reads them once and keeps them.
func (c *Conversations) endings(ctx context.Context, conv *conversation) ([]ending, error) {
	c.mu.Lock()
	known, loaded, own := conv.endings, conv.endingsKnown, conv.isOwn
	c.mu.Unlock()
	if loaded || !own {
		return known, nil
	}
	list, err := c.db.RunsOf(ctx, c.id, conv.key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if conv.endingsKnown {
		return conv.endings, nil
	}
	conv.endingsKnown = true
	for _, r := range list {
		// Runs from before a reset belong to the conversation that was let go of.
		if e, ok := endingOf(r); ok && !r.EndedAt.Before(conv.rec.CreatedAt) {
			conv.addEnding(e)
		}
	}
	return conv.endings, nil
}

// addEnding keeps one more. mu is held; the list is replaced, never changed.
func (conv *conversation) addEnding(e ending) {
	list := append(conv.endings[:len(conv.endings):len(conv.endings)], e)
	conv.endings = list[max(0, len(list)-maxEndings):]
}

// message is its row of history. Its id is that of the notice phones get with the end itself.
func (e ending) message(backend string) HistoryMessage {
	turn := e.nativeID
	if turn == "" {
		turn = "run:" + e.runID
	}
	return HistoryMessage{Message: runtime.Message{
		MessageID: backend + "-turn-error:" + turn, Role: runtime.RoleSystem,
		CreatedAt: e.at, RunID: e.runID, NativeRunID: e.nativeID, NoticeCode: e.code,
	}}
}

func (e ending) is(m *runtime.Message) bool {
	return m.RunID == e.runID || e.nativeID != "" && m.NativeRunID == e.nativeID
}

// place finds where on a page the notice belongs; false: elsewhere, or the page has one already. newest and oldest say
// that no page comes after or before it.
func (e ending) place(page []HistoryMessage, newest, oldest bool) (int, bool) {
	at, timed := -1, false
	for i := range page {
		m := &page[i].Message
		if e.is(m) {
			if m.NoticeCode != "" {
				return 0, false
			}
			at, timed = i, true
			continue
		}
		if !m.CreatedAt.IsZero() {
			timed = true
			if !m.CreatedAt.After(e.at) {
				at = i
			}
		}
	}
	switch {
	case !timed:
		return len(page), newest
	case at < 0:
		return 0, oldest
	case at == len(page)-1:
		return len(page), newest
	}
	return at + 1, true
}

// withEndings puts the notices into a page.
func withEndings(page []HistoryMessage, list []ending, backend string, newest, oldest bool) []HistoryMessage {
	native := map[string]string{} // the host may have ended before it learnt them
	for i := range page {
		if m := &page[i].Message; m.RunID != "" && m.NativeRunID != "" {
			native[m.RunID] = m.NativeRunID
		}
	}
	for _, e := range list {
		known := e // its own id stays the one phones were told
		pick2(&known.nativeID, native[e.runID])
		if i, ok := known.place(page, newest, oldest); ok {
			page = append(page[:i:i], append([]HistoryMessage{e.message(backend)}, page[i:]...)...)
		}
	}
	return page
}
