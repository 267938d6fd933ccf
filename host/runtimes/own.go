package runtimes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/thejerf/suture/v4"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Serve owns the process until ctx ends. The supervisor calls it; nobody else does.
func (i *Instance) Serve(ctx context.Context) error {
	pumping, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	i.wg.Go(func() { i.pump(pumping); close(done) })
	defer func() {
		if i.live != nil { // only after a panic: nobody watches it any more
			i.live.kill()
			i.buried(i.live)
			i.live = nil
		}
		if i.last != nil {
			<-i.last.downSent
		}
		i.set(Stopped, codes.RuntimeUnavailable, "", nil)
		i.answer(codes.New(codes.Restarting))
		if i.next != nil {
			i.next.reply <- codes.New(codes.Restarting)
			i.next.candidate.drop()
		}
		stop()
		<-done
	}()
	for ctx.Err() == nil {
		i.once(ctx)
	}
	return suture.ErrDoNotRestart
}

// once goes from no process to no process.
func (i *Instance) once(ctx context.Context) {
	set := i.sup.settings(i.id)
	if !set.Enabled {
		i.exe = nil
		i.set(Disabled, codes.RuntimeUnavailable, "", nil)
		i.answerDisabled()
		i.idle(ctx, 0)
		return
	}
	if i.exe == nil {
		exe, err := i.resolve(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case codes.Of(err) == codes.PluginStartFailed && !errors.Is(err, errGone):
			i.ended(ctx, 0, err) // it may be better next time
			return
		case err != nil:
			i.refuse(ctx, err)
			return
		}
		i.exe = exe
	}
	reason := ""
	if i.counted {
		reason = codes.PluginCrashed
	}
	i.set(Starting, reason, "", nil)
	g, err := i.start(ctx, *i.exe, set)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		if code := codes.Of(err); code == codes.ConfigInvalid || code == codes.PluginIncompatible {
			i.refuse(ctx, err)
			return
		}
		i.ended(ctx, 0, err)
		return
	}
	i.serveGeneration(ctx, g)
}

// refuse waits for somebody to do something.
func (i *Instance) refuse(ctx context.Context, err error) {
	i.exe = nil
	if ctx.Err() != nil {
		return
	}
	i.set(Refused, codes.Of(err), detail(err), nil)
	i.answer(err)
	i.idle(ctx, 0)
}

// ended follows an exit or a failed start: restart now, later, or not before somebody says so.
func (i *Instance) ended(ctx context.Context, up time.Duration, err error) {
	i.sup.metrics.exits.WithLabelValues(i.id).Inc()
	wait, open := i.restarts.exited(time.Now(), up)
	i.counted = true
	i.mu.Lock()
	i.restarted++
	i.mu.Unlock()
	if wait == 0 {
		return
	}
	state, code := Waiting, codes.Of(err)
	if open {
		state, code = Paused, codes.PluginBreakerOpen
	}
	i.setUntil(state, code, detail(err), nil, time.Now().Add(wait))
	i.answer(err)
	i.idle(ctx, wait)
}

// idle waits without a process: for a command, for the time (0: for ever), or for the end.
func (i *Instance) idle(ctx context.Context, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-due:
	case c := <-i.commands:
		// Whatever was asked, a fresh look at everything is the answer.
		i.afresh()
		switch c.kind {
		case commandStop:
			c.reply <- nil
			return
		case commandUpgrade:
			c.candidate.drop()
			if err := i.pin(ctx, c.candidate.exe); err != nil {
				c.reply <- err
				return
			}
		}
		i.waiting = append(i.waiting, c)
	}
}

// afresh forgets what is known about exits and the executable, because somebody asked for a start.
func (i *Instance) afresh() {
	i.restarts.reset()
	i.counted = false
	i.exe = nil
}

var errGone = errors.New("the executable is not there any more")

// resolve finds, verifies and admits the executable.
func (i *Instance) resolve(ctx context.Context) (*executable, error) {
	i.sup.Rescan()
	source, ok := i.sup.executable(i.id)
	if !ok {
		return nil, codes.New(codes.PluginStartFailed).Because(errGone)
	}
	sum, err := i.sup.vault.checksum(source)
	if err != nil {
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	pin := ""
	if i.sup.opt.Pins != nil {
		pin = i.sup.opt.Pins.Pin(pinName(source))
	}
	if pin != sum {
		return nil, codes.New(codes.PluginChanged).Because(errors.New("the checksum is not the one that was trusted"))
	}
	exe, err := i.sup.admit(ctx, i.id, source, sum)
	if err == nil {
		i.sup.vault.prune(filepath.Base(source), sum)
	}
	return exe, err
}

// start brings a process up to the point where it is ready. The observer has been told about it when there is no error.
func (i *Instance) start(ctx context.Context, exe executable, set Settings) (*generation, error) {
	began := time.Now()
	g, status, err := i.bring(ctx, exe, set)
	if err != nil {
		return nil, err
	}
	if err := i.introduce(ctx, g, status); err != nil {
		return nil, err
	}
	i.sup.metrics.ready.WithLabelValues(i.id).Observe(time.Since(began).Seconds())
	return g, nil
}

// bring starts and configures a process; the observer knows nothing of it yet.
func (i *Instance) bring(ctx context.Context, exe executable, set Settings) (*generation, *runtime.Status, error) {
	env := environment(i.sup.opt.Environ(), exe.desc.Environment, set.Environment)
	n := i.spawned.Add(1)
	i.sup.metrics.starts.WithLabelValues(i.id).Inc()
	log := i.log.With(obs.KeyGeneration, n)
	g, err := spawn(ctx, exe, append(hostSide(set.LogLevel), env...), i.sup.socketDir(), log, i.swept)
	if err != nil {
		return nil, nil, err
	}
	g.n, g.settings, g.environment = n, set, names(env)
	if err := admissible(i.id, g.desc); err != nil {
		g.destroy()
		return nil, nil, err
	}
	req, err := i.configuration(g.desc, set)
	if err == nil {
		var status *runtime.Status
		status, err = g.configure(ctx, req, &hostService{instance: i.id, state: i.sup.opt.State, attention: i.sup.opt.Attention})
		if err == nil {
			return g, status, nil
		}
	}
	g.destroy()
	return nil, nil, err
}

// introduce tells the observer about a configured process, lets it reconcile, and opens the doors.
func (i *Instance) introduce(ctx context.Context, g *generation, status *runtime.Status) error {
	if i.last != nil { // nothing of an older process comes after a newer one started
		select {
		case <-i.last.downSent:
		case <-ctx.Done():
			g.destroy()
			return ctx.Err()
		}
	}
	i.mu.Lock()
	i.number, i.desc, i.pid, i.sum, i.env = g.n, g.desc, g.proc.pid(), g.exe.sum, g.environment
	i.mu.Unlock()
	started := make(chan error, 1)
	i.queue <- func() { started <- i.tellStarted(g) }
	var err error
	select {
	case err = <-started:
	case <-g.gone():
		err = codes.New(codes.PluginCrashed)
		g.cancel()
		<-started
	}
	i.last = g
	if err != nil {
		g.wg.Go(func() { i.read(g) }) // for the news of its end
		g.kill()
		i.buried(g)
		return codes.New(codes.PluginStartFailed).Because(err)
	}
	g.readyAt = time.Now()
	i.setStatus(status)
	i.set(Ready, "", "", g)
	g.wg.Go(func() { i.read(g) }) // from here on, so that a younger status in an event comes after the one of Health
	i.answer(nil)
	return nil
}

func (i *Instance) tellStarted(g *generation) error {
	if i.observer == nil {
		return nil
	}
	return i.observer.Started(g.ctx, g.n, g.reconcile)
}

// answer replies to every command that waits for the instance.
func (i *Instance) answer(err error) {
	for _, c := range i.waiting {
		if c.err != nil {
			c.reply <- c.err
			continue
		}
		c.reply <- err
	}
	i.waiting = nil
}

// answerDisabled replies while nothing may run: only who wanted it running is disappointed.
func (i *Instance) answerDisabled() {
	for _, c := range i.waiting {
		if c.kind == commandReload {
			c.reply <- nil
			continue
		}
		c.reply <- codes.New(codes.RuntimeUnavailable).Because(errDisabled)
	}
	i.waiting = nil
}

var errDisabled = errors.New("it is disabled")

// detail is what a person at this computer may read about an error.
func detail(err error) string {
	if e := codes.As(err); e != nil {
		if c := e.Unwrap(); c != nil {
			return clip(c.Error())
		}
		return ""
	}
	if err == nil {
		return ""
	}
	return clip(err.Error())
}

// dataDir makes and names the private directory of an instance.
func (i *Instance) dataDir() (string, error) {
	dir := filepath.Join(i.sup.opt.DataDir, "plugins", i.id)
	return dir, os.MkdirAll(dir, 0o700)
}
