package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// keptHandovers is how many prompts of a conversation are remembered as handed over; only the open one is ever asked for.
const keptHandovers = 8

// record is all that is kept about a conversation: one state entry.
type record struct {
	Thread string `json:"thread,omitempty"` // native id of the thread that was made for it
	// Created: the thread was made here. Only then may its writer lock alone prove that nobody else has it.
	Created bool `json:"created,omitempty"`
	// HandedOver are the run ids of prompts whose writing was about to begin. Without one the thread is empty, has no
	// record in Codex, and is made anew instead of resumed.
	HandedOver []string `json:"handed_over,omitempty"`
	Title      string   `json:"title,omitempty"`    // given before the thread had a record
	Detached   string   `json:"detached,omitempty"` // thread that was let go for good, so that it is done once

	// What a person chose and Codex confirmed; empty: the default.
	Model       string `json:"model,omitempty"`
	Effort      string `json:"effort,omitempty"`
	Fast        *bool  `json:"fast,omitempty"`
	Permissions string `json:"permissions,omitempty"`
	Mode        string `json:"mode,omitempty"`
	// Guard: the permissions could not be restored; nothing is sent before a person has chosen again.
	Guard bool `json:"guard,omitempty"`

	revision uint64
	key      runtime.StateKey
}

// empty reports that no prompt can have reached the thread.
func (r *record) empty() bool { return len(r.HandedOver) == 0 }

func (r *record) handOver(runID string) {
	r.HandedOver = append(r.HandedOver, runID)
	if len(r.HandedOver) > keptHandovers {
		r.HandedOver = slices.Delete(r.HandedOver, 0, len(r.HandedOver)-keptHandovers)
	}
}

func stateKey(ref runtime.SessionRef) runtime.StateKey {
	if ref.SessionID == "" {
		return runtime.StateKey{Name: "thread/" + ref.NativeID}
	}
	return runtime.StateKey{SessionID: ref.SessionID, Name: "thread"}
}

// load reads the record of a conversation. A record that cannot be read is an error, never an empty one: it might be
// the proof that something was handed over.
func (a *Agent) load(ctx context.Context, ref runtime.SessionRef) (*record, error) {
	rec := &record{key: stateKey(ref)}
	a.mu.Lock()
	host := a.host
	a.mu.Unlock()
	if host == nil {
		return nil, codes.New(codes.RuntimeUnavailable)
	}
	e, err := host.GetState(ctx, rec.key)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return rec, nil
	}
	if err := json.Unmarshal(e.Value, rec); err != nil {
		return nil, codes.New(codes.OwnerUnknown).Because(err)
	}
	rec.revision = e.Revision
	if ref.NativeID != "" && rec.Thread != ref.NativeID && (!rec.Created || !rec.empty()) {
		// The conversation was bound to another thread since: nothing that is kept speaks of this one.
		return &record{key: rec.key, revision: rec.revision, Detached: rec.Detached}, nil
	}
	return rec, nil
}

// saveTries bounds how often a change is laid over a record somebody else has just written.
const saveTries = 4

// revise changes the record of a conversation, over whatever it holds by then.
func (a *Agent) revise(ctx context.Context, ref runtime.SessionRef, change func(*record)) error {
	var err error
	for range saveTries {
		var rec *record
		if rec, err = a.load(ctx, ref); err != nil {
			return err
		}
		change(rec)
		if err = a.save(ctx, rec); codes.Of(err) != codes.RevisionConflict {
			return err
		}
	}
	return err
}

// save writes the record if nobody else has written it since it was read.
func (a *Agent) save(ctx context.Context, rec *record) error {
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	revision, err := a.host.PutState(ctx, rec.key, b, &rec.revision)
	if err != nil {
		return err
	}
	rec.revision = revision
	return nil
}
