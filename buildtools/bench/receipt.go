package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver the host uses
)

// breath lies between two samples, so that neither the end of one reply nor the other's write falls into the next.
const breath = 10 * time.Millisecond

// receipts measures from a send to its receipt at the phone. The floor is one row written with a full sync, taken in turn
// with the sends, on the same disk.
func receipts(ctx context.Context, g *ground, size effort, note noter) error {
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
	key, err := ph.conversation()
	if err != nil {
		return err
	}
	db, err := bareDatabase(filepath.Join(p.home, "bare.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	var with, floor []time.Duration
	const warm = 5
	for i := range size.sends + warm {
		began := time.Now()
		run, err := ph.send(key, "/say ok")
		took := time.Since(began)
		if err != nil {
			return err
		}
		if err := ph.finish(run); err != nil {
			return err
		}
		if err := pause(ctx, breath); err != nil {
			return err
		}
		began = time.Now()
		if _, err := db.ExecContext(ctx, `INSERT INTO t VALUES (1)`); err != nil {
			return err
		}
		bare := time.Since(began)
		if err := pause(ctx, breath); err != nil {
			return err
		}
		if i >= warm {
			with, floor = append(with, took), append(floor, bare)
		}
	}
	note("B10.p50", millis(percentile(with, 0.5)), millis(percentile(floor, 0.5)))
	note("B10.p99", millis(percentile(with, 0.99)), millis(percentile(floor, 0.99)))
	return nil
}

func bareDatabase(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE t (x)`); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}
