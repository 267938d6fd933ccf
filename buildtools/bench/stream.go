package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/buildtools/bench/stamp"
	"github.com/openphone-host/openphone/protocol/clawket"
)

// deltas measures how long a piece of text needs from the plugin to a phone, and from a bare process to a bare client.
func deltas(ctx context.Context, g *ground, size effort, note noter) error {
	p, err := g.place("one")
	if err != nil {
		return err
	}
	h, err := p.up(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = h.down() }()
	o, err := h.pair(ctx, one)
	if err != nil {
		return err
	}
	ph, err := dial(ctx, o, false)
	if err != nil {
		return err
	}
	defer ph.close()
	for _, c := range []struct {
		name    string
		n, rate int
	}{{"B1.500", size.deltas, 500}, {"B1.5000", 5 * size.deltas, 5000}} {
		if _, err := stream(ph, c.n/10, c.rate); err != nil { // warms up
			return err
		}
		with, err := stream(ph, c.n, c.rate)
		if err != nil {
			return err
		}
		floor, err := bareStream(ctx, c.n, c.rate)
		if err != nil {
			return err
		}
		for _, q := range []struct {
			name  string
			share float64
		}{{".p50", 0.5}, {".p99", 0.99}} {
			note(c.name+q.name, micros(percentile(with, q.share)), micros(percentile(floor, q.share)))
		}
	}
	return nil
}

// stream lets the plugin stream n pieces and gives their ages at the phone, and at others beside it.
func stream(p *phone, n, rate int, others ...*phone) ([]time.Duration, error) {
	key, err := p.conversation()
	if err != nil {
		return nil, err
	}
	_ = p.taken()
	run, err := p.send(key, fmt.Sprintf("/stream n=%d rate=%d", n, rate))
	if err != nil {
		return nil, err
	}
	all := append([]*phone{p}, others...)
	var list []time.Duration
	for _, x := range all {
		if err := x.finish(run); err != nil {
			return nil, err
		}
		ages := x.taken()
		if len(ages) != n {
			return nil, fmt.Errorf("%d of %d pieces arrived", len(ages), n)
		}
		list = append(list, ages...)
	}
	return list, nil
}

func bareStream(ctx context.Context, n, rate int) ([]time.Duration, error) {
	b, err := startBare(ctx, bareSocket, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer b.end()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, b.line, nil)
	if err != nil {
		return nil, err
	}
	defer c.CloseNow()
	c.SetReadLimit(clawket.MaxFrame)
	if err := c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, "%d %d", n, rate)); err != nil {
		return nil, err
	}
	list := make([]time.Duration, 0, n)
	var moments []int64
	for len(list) < n {
		_, frame, err := c.Read(ctx)
		now := time.Now().UnixNano()
		if err != nil {
			return nil, err
		}
		for _, m := range stamp.Find(moments[:0], frame) {
			list = append(list, time.Duration(now-m))
		}
	}
	return list, nil
}

// beside measures seven phones once with an eighth that reads and once with one that does not; the floor is the first.
// Afterwards the paused phone reads on, and must have lost nothing.
func beside(ctx context.Context, g *ground, size effort, note noter) error {
	p, err := g.place("one")
	if err != nil {
		return err
	}
	h, err := p.up(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = h.down() }()
	o, err := h.pair(ctx, one)
	if err != nil {
		return err
	}
	phones := make([]*phone, 8)
	for i := range phones {
		if phones[i], err = dial(ctx, o, i == 7); err != nil {
			return err
		}
		defer phones[i].close()
	}
	reading, paused := phones[:7], phones[7]
	const rate = 500
	if _, err := stream(reading[0], size.deltas/10, rate, phones[1:]...); err != nil { // warms up
		return err
	}
	all, err := stream(reading[0], size.deltas, rate, phones[1:]...)
	if err != nil {
		return err
	}
	fair := all[:7*size.deltas]
	token := <-paused.gate
	beside, err := stream(reading[0], size.deltas, rate, reading[1:]...)
	paused.gate <- token
	if err != nil {
		return err
	}
	note("B2.p99", micros(percentile(beside, 0.99)), micros(percentile(fair, 0.99)))
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		select {
		case <-paused.ended:
			if n := len(paused.taken()); n != size.deltas {
				return fmt.Errorf("the paused phone got %d of %d pieces", n, size.deltas)
			}
			return nil
		case <-paused.lost:
			return errors.New("the paused phone was dropped")
		default:
		}
		if time.Now().After(deadline) {
			return errors.New("the paused phone got no end")
		}
	}
}
