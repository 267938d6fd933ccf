package sessions

import (
	"context"
	"time"

	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// attention is why a conversation wants to be looked at: consent before a question, then what a plugin raised, then what
// the runtime's store says. It authorises nothing (SYNC-11). mu is held.
func (c *Conversations) attention(conv *conversation) runtime.AttentionKind {
	if a := c.book.Attention(conv.key); a != runtime.AttentionKindUnspecified {
		return a
	}
	now := time.Now()
	kind := runtime.AttentionKindUnspecified
	for _, a := range c.raised {
		if (a.ExpiresAt.IsZero() || a.ExpiresAt.After(now)) && c.concerns(a, conv) {
			kind = runtime.AttentionKind(a.Kind)
		}
	}
	if kind == runtime.AttentionKindUnspecified && conv.row != nil && !conv.isOwn {
		kind = conv.row.Attention
	}
	return kind
}

func (c *Conversations) concerns(a store.Attention, conv *conversation) bool {
	ref := conv.ref()
	if a.SessionID != "" {
		return a.SessionID == ref.SessionID
	}
	return a.NativeID != "" && a.NativeID == ref.NativeID
}

// publishAttention tells a change of attention, right after what caused it. mu is held.
func (c *Conversations) publishAttention(conv *conversation) {
	a := c.attention(conv)
	if a == conv.shown || conv.deleted {
		return
	}
	conv.shown = a
	c.publish(Update{Kind: AttentionChanged, SessionKey: conv.key, At: time.Now(), Attention: a})
}

// RaiseAttention keeps what a plugin wants the person to know. Errors: attention_full, session_unknown.
func (c *Conversations) RaiseAttention(ctx context.Context, _ string, r *runtime.RaiseAttentionRequest) error {
	if r.AttentionID == "" || len(r.AttentionID) > maxName {
		return codes.New(codes.ParametersInvalid)
	}
	var conv *conversation
	c.mu.Lock()
	if !r.Session.IsZero() {
		if conv = c.ofNames(r.Session.SessionID, r.Session.NativeID); conv == nil {
			c.mu.Unlock()
			return codes.New(codes.SessionUnknown)
		}
	}
	c.mu.Unlock()
	a := store.Attention{
		Runtime: c.id, AttentionID: r.AttentionID, SessionID: r.Session.SessionID,
		NativeID: r.Session.NativeID, Kind: int32(r.Kind), Code: r.Code, Parameters: r.Parameters, ExpiresAt: r.ExpiresAt,
	}
	if err := c.db.PutAttention(ctx, a, time.Now()); err != nil {
		return err
	}
	c.mu.Lock()
	c.raise(a)
	u := Update{Kind: NoticeRaised, At: time.Now(), Notice: c.notice(severityOf(r.Kind), r.Code, r.Parameters)}
	if conv != nil {
		u.SessionKey = conv.key
	}
	c.publish(u)
	if conv != nil {
		c.publishAttention(conv)
	}
	c.mu.Unlock()
	c.flush()
	return nil
}

// ClearAttention takes it back.
func (c *Conversations) ClearAttention(ctx context.Context, _, attentionID string) error {
	if err := c.db.DeleteAttention(ctx, c.id, attentionID); err != nil {
		return err
	}
	c.mu.Lock()
	for i, a := range c.raised {
		if a.AttentionID == attentionID {
			c.raised = append(c.raised[:i:i], c.raised[i+1:]...)
			if conv := c.ofNames(a.SessionID, a.NativeID); conv != nil {
				c.publishAttention(conv)
			}
			break
		}
	}
	c.mu.Unlock()
	c.flush()
	return nil
}

// raise keeps a notice in memory; the last one of a name wins. mu is held.
func (c *Conversations) raise(a store.Attention) {
	for i := range c.raised {
		if c.raised[i].AttentionID == a.AttentionID {
			c.raised[i] = a
			return
		}
	}
	c.raised = append(c.raised, a)
}

func severityOf(k runtime.AttentionKind) runtime.Severity {
	switch k {
	case runtime.AttentionKindError, runtime.AttentionKindCronFailed:
		return runtime.SeverityError
	}
	return runtime.SeverityInfo
}
