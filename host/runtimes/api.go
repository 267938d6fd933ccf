// Package runtimes owns plugin processes: it finds executables, verifies and launches them, watches their health,
// restarts, drains and upgrades them, and is the only place where the host speaks gRPC to a plugin.
//
// It knows nothing about phones or conversations: events go to an Observer in order, calls come through Instance, which
// implements sessions.Runtime. One goroutine owns the life of one process; see Supervisor.
package runtimes

import (
	"context"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// Observer follows one runtime. Calls come from one goroutine at a time and belong to the generation they name; a
// generation is one plugin process, numbered from 1. Nothing of an older generation comes after a newer one started.
type Observer interface {
	// Started is called after Configure and the first Health of a process, before the instance counts as ready. It asks
	// what became of the open runs; an error makes the process count as unhealthy.
	Started(ctx context.Context, generation uint64, reconcile ReconcileFunc) error
	// Events hands over a batch, in order. It must not block for long: the plugin waits behind it.
	Events(generation uint64, events []runtime.Event)
	// Down says that the process is gone; code is the stable reason.
	Down(generation uint64, code string)
	// Changed says that Status or State changed.
	Changed()
}

// ReconcileFunc is the Reconcile call of exactly the process that started.
type ReconcileFunc = func(context.Context, *runtime.ReconcileRequest) (*runtime.ReconcileResponse, error)

// StateStore keeps HostService.State durably; host/store implements it. instance scopes every name.
type StateStore interface {
	GetState(ctx context.Context, instance string, key runtime.StateKey) (*runtime.StateEntry, error)
	PutState(ctx context.Context, instance string, key runtime.StateKey, value []byte, expected *uint64) (uint64, error)
	DeleteState(ctx context.Context, instance string, key runtime.StateKey, expected *uint64) error
	ListState(ctx context.Context, instance, sessionID, prefix string) ([]runtime.StateEntry, error)
}

// AttentionStore takes attention a plugin raises; host/sessions implements it.
type AttentionStore interface {
	RaiseAttention(ctx context.Context, instance string, r *runtime.RaiseAttentionRequest) error
	ClearAttention(ctx context.Context, instance, attentionID string) error
}
