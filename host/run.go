package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// readyPatience is how long the ready line waits for runtimes that are still starting.
	readyPatience = 15 * time.Second
	// drainPatience is how long a stop waits for requests that are being dispatched.
	drainPatience = 5 * time.Second
)

// Run serves until ctx ends, then drains and stops; it returns nil after an orderly stop. ready is called once, when the
// listener serves and every enabled runtime is up or is known not to come up by itself.
//
// When cut is closed, nothing is waited for any more.
func (h *Host) Run(ctx context.Context, cut <-chan struct{}, ready func()) error {
	base, down := context.WithCancel(context.WithoutCancel(ctx))
	defer down()
	rooms := newStage(context.WithoutCancel(ctx), "conversations", h.log, down)
	plugins := newStage(context.WithoutCancel(ctx), "plugins", h.log, down)
	doors := newStage(context.WithoutCancel(ctx), "doors", h.log, down)
	for id, r := range h.rooms {
		rooms.run("conversations of "+id, r.Conversations.Run)
	}
	plugins.run("runtimes", h.runtimes.Run)
	doors.run("phone listener", h.listener.Run)
	doors.run("control", h.control.Run)
	settled := newStage(base, "start", h.log, func() {})
	settled.run("ready", func(ctx context.Context) error {
		h.settle(ctx)
		if ctx.Err() == nil {
			h.ready.Store(true)
			h.announce()
			if ready != nil {
				ready()
			}
		}
		return nil
	})
	select {
	case <-ctx.Done():
		h.drain(cut)
	case <-h.end:
		h.drain(h.force)
	case <-base.Done():
	}
	var hurry sync.WaitGroup // a second wish to end kills plugins that do not end by themselves
	over := make(chan struct{})
	hurry.Go(func() {
		select {
		case <-cut:
			h.runtimes.Hurry()
		case <-over:
		}
	})
	defer hurry.Wait()
	defer close(over)
	return errors.Join(settled.stop(), doors.stop(), plugins.stop(), rooms.stop(), h.store.Close())
}

// drain closes the door for new requests and waits for those inside.
func (h *Host) drain(cut <-chan struct{}) {
	h.log.Info("draining")
	h.admission.Close()
	deadline := time.NewTimer(drainPatience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for h.admission.InFlight() > 0 {
		select {
		case <-cut:
			return
		case <-deadline.C:
			h.log.Warn("stopped with requests inside", "requests", h.admission.InFlight())
			return
		case <-tick.C:
		}
	}
}

// settle returns when no enabled runtime is starting any more, or patience ends. Where none is of use by then, the demo
// is served, so that a person sees something work.
func (h *Host) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	h.waitSettled(ctx)
	i, err := h.runtimes.Instance(demoID)
	if err != nil || !h.wantsDemo() {
		return
	}
	h.demo.Store(true)
	if err := i.Reload(ctx); err != nil {
		h.log.Warn("demo cannot be started", obs.KeyError, err)
	}
	h.waitSettled(ctx)
}

func (h *Host) waitSettled(ctx context.Context) {
	for {
		changed := h.changed()
		if !h.starting() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// starting reports that a runtime may still become ready by itself.
func (h *Host) starting() bool {
	for _, i := range h.runtimes.Instances() {
		switch state, _ := i.State(); state {
		case runtimes.Starting:
			return true
		case runtimes.Ready:
			if i.Status().Condition == runtime.ConditionStarting {
				return true
			}
		case runtimes.Disabled:
			if h.plugin(i.ID()).Enabled { // not yet looked at
				return true
			}
		}
	}
	return false
}

// wantsDemo reports that no runtime but the demo can reply.
func (h *Host) wantsDemo() bool {
	if h.settings.enabled(demoID) != nil {
		return false // the person decided
	}
	for _, i := range h.runtimes.Instances() {
		if state, _ := i.State(); i.ID() != demoID && state == runtimes.Ready && i.Status().Condition == runtime.ConditionReady {
			return false
		}
	}
	return true
}
