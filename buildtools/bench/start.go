package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// starts measures from exec to the ready line: the first start on an empty data directory, which also looks at the
// plugin for the first time, then ordinary ones. The floor is go-plugin alone with the same number of plugins.
func starts(ctx context.Context, g *ground, size effort, note noter) error {
	for _, c := range []struct {
		name, set string
		ids       []string
	}{{"B5.one", "one", []string{one}}, {"B5.three", "three", three}} {
		p, err := g.place(c.set)
		if err != nil {
			return err
		}
		first, err := p.settle(ctx)
		if err != nil {
			return err
		}
		var with, floor []float64
		for range size.starts {
			d, err := upAndDown(ctx, p)
			if err != nil {
				return err
			}
			with = append(with, millis(d))
			b, err := startBare(ctx, append([]string{barePlugins}, g.bare(c.ids)...)...)
			if err != nil {
				return err
			}
			b.end()
			floor = append(floor, millis(b.took))
		}
		note(c.name, median(with), median(floor))
		if c.set == "one" {
			note("B5.first", millis(first), median(floor))
		}
	}
	return nil
}

func (g *ground) bare(ids []string) []string {
	var paths []string
	for _, id := range ids {
		paths = append(paths, g.plugin("bare", id))
	}
	return paths
}

// fileAge is when the host begins to trust that a file which looks unchanged is unchanged; until then it computes the
// checksum of each plugin at each start.
const fileAge = 2500 * time.Millisecond

// settle brings a data directory to the state of every day, and gives how long the very first start took.
func (p *place) settle(ctx context.Context) (first time.Duration, err error) {
	if first, err = upAndDown(ctx, p); err != nil {
		return 0, err
	}
	if err := pause(ctx, fileAge); err != nil {
		return 0, err
	}
	_, err = upAndDown(ctx, p)
	return first, err
}

func upAndDown(ctx context.Context, p *place) (time.Duration, error) {
	h, err := p.up(ctx)
	if err != nil {
		return 0, err
	}
	return h.took, h.down()
}

// settling is the time after a start that is not idling.
const settling = 2 * time.Second

// idle measures what the host and three plugins hold and use while nobody wants anything. The floor is go-plugin alone
// with three plugins, in the same minute; its executables are other files, so that neither shares memory with the other.
func idle(ctx context.Context, g *ground, size effort, note noter) error {
	p, err := g.place("three")
	if err != nil {
		return err
	}
	h, err := p.up(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = h.down() }()
	b, err := startBare(ctx, append([]string{barePlugins}, g.bare(three)...)...)
	if err != nil {
		return err
	}
	defer b.end()
	pids, err := h.plugins(ctx)
	if err != nil {
		return err
	}
	if len(pids) != len(three) {
		return fmt.Errorf("%d of %d plugins run", len(pids), len(three))
	}
	product, floor := []int{h.cmd.Process.Pid}, []int{b.cmd.Process.Pid}
	for _, pid := range pids {
		product = append(product, pid)
	}
	for _, word := range strings.Fields(b.line) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		floor = append(floor, pid)
	}
	if err := pause(ctx, settling); err != nil {
		return err
	}
	began := time.Now()
	before, beforeFloor, err := spent(product, floor)
	if err != nil {
		return err
	}
	if err := pause(ctx, size.idle); err != nil {
		return err
	}
	after, afterFloor, err := spent(product, floor)
	if err != nil {
		return err
	}
	whole := time.Since(began)
	share := func(d time.Duration) float64 { return 100 * float64(d) / float64(whole) }
	note("B8.processor", share(after-before), share(afterFloor-beforeFloor))
	held, err := pss(product)
	if err != nil {
		return err
	}
	heldFloor, err := pss(floor)
	if err != nil {
		return err
	}
	note("B8.memory", float64(held)/(1<<20), float64(heldFloor)/(1<<20))
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pss is the memory of processes in bytes, with what several share counted by parts.
func pss(pids []int) (bytes int64, err error) {
	for _, pid := range pids {
		var kib int64
		for line := range strings.Lines(read(fmt.Sprintf("/proc/%d/smaps_rollup", pid))) {
			if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kib); n == 1 {
				break
			}
		}
		if kib == 0 {
			return 0, errors.New("the memory of a process cannot be read")
		}
		bytes += kib << 10
	}
	return bytes, nil
}

// spent is the processor time of two sets of processes so far.
func spent(a, b []int) (ofA, ofB time.Duration, err error) {
	if ofA, err = processor(a); err != nil {
		return 0, 0, err
	}
	ofB, err = processor(b)
	return ofA, ofB, err
}

// processor sums the threads' nanoseconds, because the time of a process is told in hundredths of a second only.
func processor(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			return 0, err
		}
		if len(threads) == 0 {
			return 0, errors.New("the processor time of a process cannot be read")
		}
		for _, t := range threads {
			var ns int64
			if n, _ := fmt.Sscan(read(t), &ns); n == 1 {
				sum += time.Duration(ns)
			}
		}
	}
	return sum, nil
}
