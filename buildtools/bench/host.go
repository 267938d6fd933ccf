package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// patience bounds what should take milliseconds.
const patience = 30 * time.Second

// place is a data directory, and the executables used with it.
type place struct {
	bin  string
	home string
}

// place makes an empty data directory.
func (g *ground) place(set string) (*place, error) {
	home, err := os.MkdirTemp(g.dir, "home-")
	return &place{bin: filepath.Join(g.dir, set), home: home}, err
}

func (p *place) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(p.bin, "openphone"), append(args, "--json")...)
	c.Env = []string{"OPENPHONE_HOME=" + p.home, "HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	c.WaitDelay = patience
	return c
}

// host is a running host.
type host struct {
	*place
	cmd    *exec.Cmd
	took   time.Duration // from exec to the ready line
	done   chan struct{}
	wg     sync.WaitGroup
	stderr bytes.Buffer // only read after done
}

// up starts the host and waits for its ready line.
func (p *place) up(ctx context.Context) (*host, error) {
	h := &host{place: p, cmd: p.command(ctx, "up"), done: make(chan struct{})}
	h.cmd.Stderr = &h.stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan time.Duration, 1)
	h.wg.Go(func() { h.follow(out, began, ready) })
	select {
	case h.took = <-ready:
		return h, nil
	case <-h.done:
		return nil, fmt.Errorf("the host ended before it was ready: %s", h.stderr.String())
	case <-time.After(patience):
		h.kill()
		return nil, errors.New("the host was not ready in time")
	}
}

// follow reads what the host prints until it ends.
func (h *host) follow(out io.Reader, began time.Time, ready chan<- time.Duration) {
	defer close(h.done)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if bytes.HasPrefix(line, []byte(`{"ready":true`)) {
			ready <- time.Since(began)
		}
		if err != nil {
			break
		}
	}
	_ = h.cmd.Wait() // how it ended is in stderr
}

// down ends the host in good order.
func (h *host) down() error {
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-h.done:
		return nil
	case <-time.After(patience):
		h.kill()
		return errors.New("the host did not end when asked")
	}
}

// kill ends the host at once. Its plugins notice by themselves.
func (h *host) kill() {
	_ = h.cmd.Process.Kill()
	<-h.done
}

// ask runs a command against the running host.
func (h *host) ask(ctx context.Context, answer any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := h.command(ctx, args...).Output()
	if err != nil {
		return fmt.Errorf("openphone %v: %w: %s", args, err, out)
	}
	return json.Unmarshal(out, answer)
}

// offer is what a phone needs to come in.
type offer struct{ Backend, URL, Token string }

// pair makes a pairing for one runtime.
func (h *host) pair(ctx context.Context, backend string) (offer, error) {
	var p struct{ Backends []offer }
	if err := h.ask(ctx, &p, "pair", "--direct"); err != nil {
		return offer{}, err
	}
	for _, b := range p.Backends {
		if b.Backend == backend {
			return b, nil
		}
	}
	return offer{}, fmt.Errorf("nothing to pair with for %s", backend)
}

// plugins gives the process of each runtime.
func (h *host) plugins(ctx context.Context) (map[string]int, error) {
	var s struct {
		Runtimes []struct {
			ID  string
			PID int
		}
	}
	if err := h.ask(ctx, &s, "status"); err != nil {
		return nil, err
	}
	pids := map[string]int{}
	for _, r := range s.Runtimes {
		if r.PID != 0 {
			pids[r.ID] = r.PID
		}
	}
	return pids, nil
}
