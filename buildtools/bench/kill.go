package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// pluginKilled measures from the kill of a plugin to the receipt of a prompt, which a phone sends again until it is
// taken. Each sample has a host of its own: what is asked is the first restart, not the pause that grows after several.
func pluginKilled(ctx context.Context, g *ground, size effort, note noter) error {
	p, err := g.place("one")
	if err != nil {
		return err
	}
	var with, floor []time.Duration
	for range size.kills {
		d, err := killPlugin(ctx, p)
		if err != nil {
			return err
		}
		with = append(with, d)
		if d, err = bareRestart(g.plugin("bare", one)); err != nil {
			return err
		}
		floor = append(floor, d)
	}
	note("B3.p50", millis(percentile(with, 0.5)), millis(percentile(floor, 0.5)))
	note("B3.p99", millis(percentile(with, 0.99)), millis(percentile(floor, 0.99)))
	return nil
}

func killPlugin(ctx context.Context, p *place) (took time.Duration, err error) {
	h, err := p.up(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.down()) }()
	o, err := h.pair(ctx, one)
	if err != nil {
		return 0, err
	}
	ph, err := dial(ctx, o, false)
	if err != nil {
		return 0, err
	}
	defer ph.close()
	key, err := ph.conversation()
	if err != nil {
		return 0, err
	}
	pids, err := h.plugins(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := killed(pids[one]); err != nil {
		return 0, err
	}
	for {
		run, err := ph.send(key, "/say back")
		if err == nil {
			return time.Since(began), ph.finish(run)
		}
		if time.Since(began) > patience {
			return 0, fmt.Errorf("no prompt was taken after the kill: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// killed kills a process and returns when it runs no more, so that nothing is taken by the old one.
func killed(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	for {
		stat := read(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(stat, ") ")
		if stat == "" || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
			return nil
		}
	}
}

// bareRestart is the same with go-plugin alone, which looks every millisecond whether its process has ended.
func bareRestart(path string) (time.Duration, error) {
	c, err := startPlugin(path)
	if err != nil {
		return 0, err
	}
	defer func() { c.Kill() }()
	var pid int
	if _, err := fmt.Sscan(c.ID(), &pid); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, err
	}
	for !c.Exited() {
		time.Sleep(time.Millisecond)
	}
	old := c
	if c, err = startPlugin(path); err != nil {
		c = old
		return 0, err
	}
	return time.Since(began), nil
}

// phonesOfHost is how many must be back.
const phonesOfHost = 8

// hostKilled measures from the kill of the host, which is started again at once, until the last of eight phones has the
// changes of its list and the history of a conversation. The floor is a bare WebSocket server under the same treatment.
func hostKilled(ctx context.Context, g *ground, size effort, note noter) error {
	p, err := g.place("one")
	if err != nil {
		return err
	}
	if _, err := p.settle(ctx); err != nil {
		return err
	}
	var with, floor []float64
	for range size.hosts {
		d, err := killHost(ctx, p)
		if err != nil {
			return err
		}
		with = append(with, millis(d))
		if d, err = killBare(ctx); err != nil {
			return err
		}
		floor = append(floor, millis(d))
	}
	note("B4", median(with), median(floor))
	return nil
}

func killHost(ctx context.Context, p *place) (time.Duration, error) {
	h, err := p.up(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = h.down() }()
	o, err := h.pair(ctx, one)
	if err != nil {
		return 0, err
	}
	first, err := dial(ctx, o, false)
	if err != nil {
		return 0, err
	}
	defer first.close()
	key, err := first.conversation()
	if err != nil {
		return 0, err
	}
	run, err := first.send(key, "/fill 20\n/say done")
	if err != nil {
		return 0, err
	}
	if err := first.finish(run); err != nil {
		return 0, err
	}
	var base struct{ Epoch, Revision string }
	if err := first.call(clawket.MethodSessionsSync, map[string]any{}, &base); err != nil {
		return 0, err
	}
	phones := []*phone{first}
	for range phonesOfHost - 1 {
		ph, err := dial(ctx, o, false)
		if err != nil {
			return 0, err
		}
		defer ph.close()
		phones = append(phones, ph)
	}
	began := time.Now()
	h.kill()
	return everyone(began, func() (err error) { h, err = restarted(ctx, p, h); return err }, func(i int) error {
		phones[i].close()
		ph, err := dial(ctx, o, false)
		if err != nil {
			return err
		}
		defer ph.close()
		sync := map[string]any{"base": map[string]any{"epoch": base.Epoch, "revision": base.Revision}}
		if err := ph.call(clawket.MethodSessionsSync, sync, nil); err != nil {
			return err
		}
		return ph.call(clawket.MethodChatHistory, map[string]any{"sessionKey": key}, nil)
	})
}

// restarted starts a host anew; on an error the old one, which is dead, stays what there is.
func restarted(ctx context.Context, p *place, old *host) (*host, error) {
	h, err := p.up(ctx)
	if err != nil {
		return old, err
	}
	return h, nil
}

func killBare(ctx context.Context) (time.Duration, error) {
	b, err := startBare(ctx, bareSocket, "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	url := b.line
	addr := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/")
	began := time.Now()
	b.kill()
	defer func() { b.end() }()
	return everyone(began, func() error {
		again, err := startBare(ctx, bareSocket, addr)
		if err == nil {
			b = again
		}
		return err
	}, func(int) error {
		c, _, err := websocket.Dial(ctx, url, nil)
		if err != nil {
			return err
		}
		defer c.CloseNow()
		if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
			return err
		}
		_, _, err = c.Read(ctx)
		return err
	})
}

// everyone starts a server while phones try to come back every two milliseconds, and gives the time since began at which
// the last one had succeeded.
func everyone(began time.Time, start func() error, back func(i int) error) (time.Duration, error) {
	var failed error
	last := make([]time.Duration, phonesOfHost)
	errs := make([]error, phonesOfHost)
	var wg sync.WaitGroup
	wg.Go(func() { failed = start() })
	for i := range phonesOfHost {
		wg.Go(func() {
			for time.Since(began) < patience {
				if errs[i] = back(i); errs[i] == nil {
					last[i] = time.Since(began)
					return
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	var most time.Duration
	for _, d := range last {
		most = max(most, d)
	}
	return most, errors.Join(append(errs, failed)...)
}
