package store

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

// BenchmarkAccept is a receipt on disk; BenchmarkBareCommit beside it is the floor: one row, one full-sync commit.
func BenchmarkAccept(b *testing.B) {
	s := open(b, b.TempDir())
	must(b, s.PutSession(b.Context(), session("s")))
	for i := 0; b.Loop(); i++ {
		must(b, s.Accept(b.Context(), run(fmt.Sprint("r", i), fmt.Sprint("s", i/1000), fmt.Sprint("k", i)), session(fmt.Sprint("s", i/1000))))
	}
}

func BenchmarkBareCommit(b *testing.B) {
	db, err := sql.Open("sqlite", dsn(filepath.Join(b.TempDir(), "bare.db"), "synchronous(FULL)"))
	must(b, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE t (x)`)
	must(b, err)
	for b.Loop() {
		_, err := db.Exec(`INSERT INTO t VALUES (1)`)
		must(b, err)
	}
}

// BenchmarkOpen is a start with a data file of some size.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	must(b, s.exec(b.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
		INSERT INTO runs (`+runColumns+`) SELECT 'codex', 's', 'run-' || i, 'key-' || i, hex(randomblob(32)), '', 1, 1, 0, '', '', i, i FROM n`))
	must(b, s.Close())
	for b.Loop() {
		s, err := Open(b.Context(), dir, nil)
		must(b, err)
		must(b, s.Close())
	}
}
