package runtimes

import (
	"context"
	"errors"
	"reflect"
	"time"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

type commandKind int

const (
	commandRestart commandKind = iota + 1
	commandReload              // look at the settings and the executable again
	commandStop                // end the process and look at the settings again
	commandUpgrade
)

// command is what somebody asks of the goroutine that owns the process.
type command struct {
	kind  commandKind
	ctx   context.Context // of the caller, who may stop waiting
	reply chan error      // capacity 1
	err   error           // the answer is this once the instance is ready again

	candidate *candidate // of an upgrade
}

func (i *Instance) ask(ctx context.Context, kind commandKind) error {
	return i.send(&command{kind: kind, ctx: ctx, reply: make(chan error, 1)})
}

// send hands a command to the owner and waits for the answer. A caller who stops waiting does not stop what has begun.
func (i *Instance) send(c *command) error {
	ctx := c.ctx
	select {
	case i.commands <- c:
	case <-ctx.Done():
		c.candidate.drop()
		return codes.New(codes.DeadlineExceeded).Because(ctx.Err())
	case <-i.sup.ended():
		c.candidate.drop()
		return codes.New(codes.Restarting)
	}
	select {
	case err := <-c.reply:
		return err
	case <-ctx.Done():
		return codes.New(codes.DeadlineExceeded).Because(ctx.Err())
	case <-i.sup.ended():
		return codes.New(codes.Restarting)
	}
}

// Restart ends the process, if there is one, and starts it again; it closes the breaker. It answers when the runtime is
// ready or cannot be. Replies that are running are cut and reconciled.
func (i *Instance) Restart(ctx context.Context) error { return i.ask(ctx, commandRestart) }

// Reload looks at settings and executable again: an instance that was enabled starts, one that was disabled ends.
func (i *Instance) Reload(ctx context.Context) error {
	if !i.sup.settings(i.id).Enabled {
		return i.ask(ctx, commandStop)
	}
	return i.ask(ctx, commandReload)
}

// Upgrade switches to the executable that lies in the plugin directory now and trusts it from then on. It waits for
// running replies, rolls back when the new one is no good, and answers with how it went. When that executable is the one
// that runs, there is nothing to do.
func (i *Instance) Upgrade(ctx context.Context) error {
	bound, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := context.AfterFunc(i.sup.life(), cancel) // no process is left behind by a host that ends
	defer unhook()
	c, err := i.propose(bound)
	if c == nil || err != nil {
		return err
	}
	return i.send(&command{kind: commandUpgrade, ctx: ctx, reply: make(chan error, 1), candidate: c})
}

// Trust pins the executable that lies in the plugin directory now, after asking it who it is.
func (i *Instance) Trust(ctx context.Context) (*runtime.Description, error) {
	if i.sup.opt.Pins == nil {
		return nil, codes.New(codes.PluginChanged)
	}
	source, ok := i.sup.executable(i.id)
	if !ok {
		return nil, codes.New(codes.RuntimeUnknown)
	}
	sum, err := i.sup.vault.checksum(source)
	if err != nil {
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	exe, err := i.sup.admit(ctx, i.id, source, sum)
	if err != nil {
		return nil, err
	}
	return exe.desc, i.sup.opt.Pins.SetPin(ctx, pinName(source), sum)
}

// Drain closes admission at once and then counts what an exit now would cut: calls on their way, prepared runs, and what
// the plugin says (UPD-02). Empty means it may go. With reopen the door opens again.
func (i *Instance) Drain(ctx context.Context, reopen bool) (*runtime.DrainResponse, error) {
	if reopen {
		defer i.reopen()
		if g, err := i.ready(ctx, 0); err == nil && runtime.Has(g.desc.Capabilities, runtime.CapabilityDrain) {
			_, _ = g.drain(ctx, true)
		}
		return &runtime.DrainResponse{}, nil
	}
	i.shut()
	inside := i.busy(time.Now())
	g, err := i.ready(ctx, 0)
	if err != nil {
		return &runtime.DrainResponse{OtherWork: uint32(inside)}, nil
	}
	if !runtime.Has(g.desc.Capabilities, runtime.CapabilityDrain) {
		// Such a plugin is idle when no run is open.
		return &runtime.DrainResponse{RunIds: i.runs(), OtherWork: uint32(inside)}, nil
	}
	resp, err := g.drain(ctx, false)
	if err != nil {
		return nil, err
	}
	resp.OtherWork += uint32(inside)
	return resp, nil
}

// drain closes or reopens the plugin's own door.
func (g *generation) drain(ctx context.Context, reopen bool) (*runtime.DrainResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, classFast)
	defer cancel()
	resp, err := g.rpc.Runtime.Drain(ctx, &runtimev1.DrainRequest{Reopen: reopen})
	if err != nil {
		return nil, g.failed(err)
	}
	return &runtime.DrainResponse{RunIds: resp.GetRunIds(), OtherWork: resp.GetOtherWork()}, nil
}

// obey does what was asked while g is ready. It answers the process that is ready now, or nil when none is.
func (i *Instance) obey(ctx context.Context, g *generation, c *command) *generation {
	switch c.kind {
	case commandUpgrade:
		next, err := i.upgrade(ctx, g, c)
		if next == nil { // the old version is on its way back
			c.err = err
			i.waiting = append(i.waiting, c)
			return nil
		}
		c.reply <- err
		return next
	case commandStop:
		i.end(g)
		i.exe = nil
		c.reply <- nil
		return nil
	case commandReload:
		if done, err := i.reconfigure(ctx, g); done {
			c.reply <- err
			return g
		}
	}
	i.hold(g)
	i.end(g)
	i.afresh()
	i.waiting = append(i.waiting, c)
	return nil
}

// reconfigure takes changed settings into the running process, where that is possible: done is false when a new process
// is needed. An error leaves the former configuration in force.
func (i *Instance) reconfigure(ctx context.Context, g *generation) (done bool, err error) {
	set := i.sup.settings(i.id)
	source, ok := i.sup.executable(i.id)
	if !ok {
		return false, nil
	}
	if sum, err := i.sup.vault.checksum(source); err != nil || sum != g.exe.sum {
		return false, nil
	}
	if reflect.DeepEqual(set, g.settings) {
		return true, nil
	}
	was := g.settings
	was.Config, was.ProjectPath = set.Config, set.ProjectPath
	if !reflect.DeepEqual(set, was) {
		return false, nil // environment and secrets are given at the start
	}
	req, err := i.configuration(g.desc, set)
	if err != nil {
		return true, err
	}
	if err := g.reconfigure(ctx, req); err != nil {
		return codes.Of(err) != codes.RestartRequired, err
	}
	g.settings = set
	return true, nil
}

var errBusy = errors.New("replies are still running")
