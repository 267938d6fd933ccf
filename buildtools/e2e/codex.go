package main

import (
	"context"
	"errors"
	"fmt"
)

// scenario is one thing a person does with Codex.
type scenario struct {
	name string
	play func(*scene)
}

// codexScenarios plays everything a phone can do with Codex on one computer, one scenario after the other.
func codexScenarios(ctx context.Context, g *ground, r *report) (err error) {
	list := append(append(append(append([]scenario{}, chatScenarios...), askScenarios...), catalogScenarios...), crashScenarios...)
	wanted := false
	for _, sc := range list {
		wanted = wanted || r.wants("codex/"+sc.name)
	}
	if !wanted {
		return nil
	}
	c, err := g.newComputer("scenarios", g.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	ready, err := c.up(ctx)
	if err != nil {
		return err
	}
	for _, rt := range ready.Runtimes {
		if rt.State != "ready" {
			return fmt.Errorf("%s is %s: %s", rt.ID, rt.State, rt.Reason)
		}
	}
	s := &scene{computer: c, ctx: ctx, backend: "codex"}
	if s.paired, err = c.pair(ctx); err != nil {
		return err
	}
	if s.phone, err = s.paired.connect(ctx, s.backend); err != nil {
		return err
	}
	defer func() { s.phone.close() }()
	for _, sc := range list {
		s.play(r, "codex", "codex/"+sc.name, sc.play)
	}
	return nil
}
