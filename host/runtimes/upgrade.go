package runtimes

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
)

// drainEvery is how often an upgrade looks whether the last reply has ended.
const drainEvery = 50 * time.Millisecond

// upgrade replaces the process g by one of the executable that lies in the plugin directory now (mapping §5.6). It
// answers the process that is ready afterwards; nil: none is, and the owner starts over.
func (i *Instance) upgrade(ctx context.Context, g *generation, c *command) (*generation, error) {
	source, ok := i.sup.executable(i.id)
	if !ok {
		return g, codes.New(codes.RuntimeUnknown)
	}
	sum, err := i.sup.vault.checksum(source)
	if err != nil {
		return g, codes.New(codes.PluginStartFailed).Because(err)
	}
	exe, err := i.sup.admit(ctx, i.id, source, sum)
	if err != nil {
		return g, err // nothing happened
	}
	set := i.sup.settings(i.id)
	began := time.Now()
	if g.desc.SideBySide && exe.desc.SideBySide {
		next, status, err := i.bring(ctx, *exe, set)
		if err != nil {
			return g, err // nothing happened
		}
		if err := i.quiesce(c.ctx, g, next); err != nil {
			next.kill()
			i.buried(next)
			return i.resume(ctx, g), err
		}
		i.hold(g)
		i.end(g)
		if err := i.introduce(ctx, next, status); err != nil {
			i.reopen()
			return nil, err // the old executable is started again: it is still the one in i.exe
		}
		return i.switched(next, exe, began), i.pin(ctx, source, sum)
	}
	if err := i.quiesce(c.ctx, g, nil); err != nil {
		return i.resume(ctx, g), err
	}
	i.hold(g)
	i.end(g)
	next, err := i.start(ctx, *exe, set)
	if err == nil {
		return i.switched(next, exe, began), i.pin(ctx, source, sum)
	}
	i.log.Warn("the new version could not be started; the old one is started again", "error", err)
	i.set(Starting, codes.Restarting, "", nil)
	i.reopen()
	return nil, err
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
	i.log.Info("runtime upgraded", "version", exe.desc.PluginVersion, "took", time.Since(began))
	return next
}

func (i *Instance) pin(ctx context.Context, source, sum string) error {
	if i.sup.opt.Pins == nil {
		return nil
	}
	return i.sup.opt.Pins.SetPin(ctx, filepath.Base(source), sum)
}

// quiesce closes the door and waits until nothing runs any more in g. beside is the new process, which must live.
func (i *Instance) quiesce(ctx context.Context, g, beside *generation) error {
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
			return err
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
		case <-gone:
			return codes.New(codes.PluginStartFailed).Because(errors.New("the new version ended"))
		case <-g.gone():
			return codes.New(codes.PluginCrashed)
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
