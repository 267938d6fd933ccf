package runtimes

import (
	"context"
	"errors"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// hangsAfter is how many looks in a row may miss their deadline before the process counts as hung: on a busy computer
// one may be late.
const hangsAfter = 2

// serveGeneration watches over a ready process until it is gone.
func (i *Instance) serveGeneration(ctx context.Context, g *generation) {
	i.live = g
	look := time.NewTicker(i.sup.opt.HealthEvery)
	defer look.Stop()
	missed := 0
	looked := make(chan error, 1)
	looking := false
	probe := func() {
		if looking {
			return
		}
		looking = true
		g, looked := g, looked
		g.wg.Go(func() {
			s, err := g.health(g.ctx, nil)
			if err == nil && i.current(g) {
				i.setStatus(s)
			}
			looked <- err
		})
	}
	crashed := func(code string) {
		i.live = nil
		up := time.Since(g.readyAt)
		i.set(Starting, code, g.exitText(), nil)
		i.reopen()
		g.release()
		g.wg.Go(g.client.Kill)
		i.buried(g)
		i.ended(ctx, up, codes.New(code).Because(errors.New(g.exitText())))
	}
	obey := func(c *command) (over bool) {
		next := i.obey(ctx, g, c)
		i.live = next
		if next != nil && next != g {
			g, missed = next, 0
			looked, looking = make(chan error, 1), false
		}
		return next == nil
	}
	for {
		if c := i.next; c != nil {
			i.next = nil
			if obey(c) {
				return
			}
			continue
		}
		select {
		case <-g.gone():
			crashed(codes.PluginCrashed)
			return
		case <-g.lost:
			// The end of the stream is the end of the process for the host.
			_ = g.proc.Kill(context.Background())
			<-g.gone()
			crashed(codes.PluginCrashed)
			return
		case <-look.C:
			probe()
		case <-g.suspect:
			probe()
		case err := <-looked:
			looking = false
			if codes.Of(err) != codes.DeadlineExceeded {
				missed = 0
				continue
			}
			select { // our own missed deadline is no news
			case <-g.suspect:
			default:
			}
			if missed++; missed < hangsAfter {
				probe()
				continue
			}
			i.sup.metrics.hangs.WithLabelValues(i.id).Inc()
			g.log.Warn("plugin does not answer and is killed")
			_ = g.proc.Kill(context.Background())
			<-g.gone()
			crashed(codes.PluginCrashed)
			return
		case c := <-i.commands:
			if obey(c) {
				return
			}
		case <-ctx.Done():
			i.end(g)
			i.live = nil
			return
		}
	}
}

// read hands the events of one process to the observer and, when they end, the news that it is gone.
func (i *Instance) read(g *generation) {
	defer close(g.downSent)
	var seq uint64
	for {
		m, err := g.watch.Recv()
		if err != nil {
			break
		}
		events := make([]runtime.Event, 0, len(m.GetEvents()))
		gap := false
		for _, p := range m.GetEvents() {
			e := protomap.FromEvent(p)
			if e == nil || e.Seq != 0 && e.Seq <= seq {
				continue // a number that was already there: it was told before
			}
			gap = gap || e.Seq != seq+1
			seq = e.Seq
			if e.StatusChanged != nil && i.current(g) {
				i.setStatus(e.StatusChanged)
			}
			i.follow(e)
			events = append(events, *e)
		}
		if gap {
			i.sup.metrics.gaps.WithLabelValues(i.id).Inc()
			g.log.Warn("events are missing; what is open is compared again", "seq", seq)
			i.queue <- func() {
				if err := i.tellStarted(g); err != nil {
					g.log.Warn("comparing after missing events failed", obs.KeyError, err)
				}
			}
		}
		if len(events) > 0 && i.observer != nil {
			i.queue <- func() { i.observer.Events(g.n, events) }
		}
	}
	close(g.lost)
	<-g.gone()
	i.forgetRuns()
	if i.observer != nil {
		code := codes.PluginCrashed
		if i.stopping(g) {
			code = codes.Restarting
		}
		i.queue <- func() { i.observer.Down(g.n, code) }
	}
}

// end stops a process in order, because somebody wanted it.
func (i *Instance) end(g *generation) {
	i.mu.Lock()
	g2 := i.gen
	i.mu.Unlock()
	if g2 == g {
		i.set(Stopped, codes.Restarting, "", nil)
	}
	g.stopping.Store(true)
	g.shutdown(i.sup.hurried)
	i.buried(g)
}

func (i *Instance) stopping(g *generation) bool { return g.stopping.Load() }

func (i *Instance) current(g *generation) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.gen == g
}

// swept counts what a dead plugin left behind.
func (i *Instance) swept(ended, kept int) {
	i.sup.metrics.spared.WithLabelValues(i.id).Add(float64(kept))
	if ended > 0 {
		i.sup.metrics.children.WithLabelValues(i.id).Add(float64(ended))
		i.log.Info("processes the plugin left behind were ended", obs.KeyCount, ended)
	}
}

// buried lets go of a process that is gone; its remains are collected beside the next start.
func (i *Instance) buried(g *generation) {
	i.mu.Lock()
	if i.pid == g.proc.pid() {
		i.pid = 0
	}
	i.mu.Unlock()
	i.wg.Go(func() {
		g.collect()
		if s := g.proc.exit(); s != nil && !s.Success() && !i.stopping(g) {
			g.log.Warn("plugin crashed", "exit", g.exitText(), "stderr", g.stderr.Tail())
		}
	})
}
