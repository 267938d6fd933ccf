package runtimes

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// drainEvery is how often an upgrade looks whether the last reply has ended.
const drainEvery = 50 * time.Millisecond

// candidate is a new executable that was admitted and, where both versions can live side by side, its process: configured,
// unknown to the observer yet.
type candidate struct {
	exe    *executable
	beside *generation     // nil: it starts when the old one has ended
	status *runtime.Status // of beside
}

// propose admits the executable that lies in the plugin directory now and starts it beside the running one, if both allow
// it. It answers nil when that executable is the one that runs. It works in the caller's goroutine, so that the owner goes
// on watching the running process meanwhile.
func (i *Instance) propose(ctx context.Context) (*candidate, error) {
	source, ok := i.sup.executable(i.id)
	if !ok {
		return nil, codes.New(codes.RuntimeUnknown)
	}
	sum, err := i.sup.vault.checksum(source)
	if err != nil {
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	g, down := i.ready(ctx, 0)
	if down == nil && g.exe.sum == sum {
		return nil, nil
	}
	exe, err := i.sup.admit(ctx, i.id, source, sum)
	if err != nil {
		return nil, err
	}
	c := &candidate{exe: exe}
	if down == nil && g.desc.SideBySide && exe.desc.SideBySide {
		c.beside, c.status, err = i.bring(ctx, *exe, i.sup.settings(i.id))
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// drop ends a candidate's process that nobody wants any more.
func (c *candidate) drop() {
	if c != nil && c.beside != nil {
		c.beside.destroy()
		c.beside = nil
	}
}

// upgrade replaces the process g by the candidate (mapping §5.6). It answers the process that is ready afterwards; nil:
// none is, and the owner starts the old executable again.
func (i *Instance) upgrade(ctx context.Context, g *generation, c *command) (*generation, error) {
	began := time.Now()
	if err := i.quiesce(c.ctx, g, c.candidate.beside); err != nil {
		c.candidate.drop()
		return i.resume(ctx, g), err
	}
	i.hold(g)
	i.end(g)
	next, err := c.candidate.beside, error(nil)
	if next != nil {
		err = i.introduce(ctx, next, c.candidate.status)
	} else {
		next, err = i.start(ctx, *c.candidate.exe, i.sup.settings(i.id))
	}
	if err != nil {
		i.log.Warn("the new version could not be started; the old one is started again", obs.KeyError, err)
		i.set(Starting, codes.Restarting, "", nil)
		i.reopen()
		return nil, err
	}
	return i.switched(next, c.candidate.exe, began), i.pin(ctx, c.candidate.exe)
}

// hold tells everybody that a start is coming, so that calls wait for it rather than fail.
func (i *Instance) hold(g *generation) {
	g.stopping.Store(true)
	i.set(Starting, codes.Restarting, "", nil)
}

func (i *Instance) switched(next *generation, exe *executable, began time.Time) *generation {
	old := i.exe
	i.exe = exe
	i.restarts.reset()
	i.counted = false
	i.reopen()
	keep := []string{exe.sum}
	if old != nil && old.sum != exe.sum {
		keep = append(keep, old.sum)
	}
	i.sup.vault.prune(filepath.Base(exe.source), keep...)
	i.log.Info("runtime upgraded", "version", exe.desc.PluginVersion, obs.KeyTook, time.Since(began))
	return next
}

func (i *Instance) pin(ctx context.Context, exe *executable) error {
	if i.sup.opt.Pins == nil {
		return nil
	}
	return i.sup.opt.Pins.SetPin(ctx, pinName(exe.source), exe.sum)
}

// quiesce closes the door and waits until nothing runs any more in g. beside is the new process, which must live.
func (i *Instance) quiesce(ctx context.Context, g, beside *generation) error {
	i.shut()
	i.set(Draining, codes.Draining, "", g)
	limit := time.NewTimer(i.sup.opt.DrainFor)
	defer limit.Stop()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	var gone <-chan struct{}
	if beside != nil {
		gone = beside.gone()
	}
	for {
		left, err := i.Drain(ctx, false)
		if err != nil {
			select {
			case <-g.gone():
				return nil
			default:
				return err
			}
		}
		if len(left.RunIds) == 0 && left.OtherWork == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return codes.New(codes.SessionBusy).Because(errBusy)
		case <-ctx.Done():
			return codes.New(codes.SessionBusy).Because(errBusy)
		case <-i.sup.ended():
			return codes.New(codes.Restarting)
		case <-gone:
			return codes.New(codes.PluginStartFailed).Because(errors.New("the new version ended"))
		case <-g.gone():
			return nil // nothing is left to wait for
		case c := <-i.commands:
			i.next = c // somebody wants something else; that comes first
			return codes.New(codes.SessionBusy).Because(errBusy)
		}
	}
}

// resume goes on with the old process after an upgrade that was called off.
func (i *Instance) resume(ctx context.Context, g *generation) *generation {
	_, _ = i.Drain(ctx, true)
	i.mu.Lock()
	status := i.status
	i.mu.Unlock()
	i.set(Ready, "", "", g)
	i.setStatus(&status)
	return g
}
