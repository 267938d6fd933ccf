package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
)

const crashDir = "OPENPHONE_STORE_CRASH_DIR"

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		acceptForever(dir)
	}
	os.Exit(m.Run())
}

// acceptForever takes prompts and says the name of each once its receipt is written.
func acceptForever(dir string) {
	s, err := Open(context.Background(), dir, nil)
	for i := 0; err == nil; i++ {
		v := session("s")
		v.Revision = uint64(i)
		if err = s.Accept(context.Background(), run(fmt.Sprint("r", i), "s", fmt.Sprint("k", i)), v); err == nil {
			_, err = fmt.Println("accepted", i)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// Killed at any moment: what was acknowledged is there, of the rest at most the one in the making, and the conversation
// is the one that was written with the last receipt. The lock is free and the file whole.
func TestKilledHost(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "FAULT-06")
	dir := t.TempDir()
	accepted := 0
	for round, lines := range []int{1, 7, 20} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		seen := 0
		for in := bufio.NewScanner(out); in.Scan(); {
			if !strings.HasPrefix(in.Text(), "accepted ") {
				t.Fatalf("round %d: %s", round, in.Text())
			}
			if seen++; seen == lines {
				must(t, cmd.Process.Kill())
			}
		}
		_ = cmd.Wait()
		accepted = seen

		s := open(t, dir)
		runs, err := s.RunsOf(t.Context(), "codex", "s")
		must(t, err)
		if len(runs) != accepted && len(runs) != accepted+1 {
			t.Errorf("round %d: %d receipts after %d were acknowledged", round, len(runs), accepted)
		}
		for i, r := range runs {
			if r.RunID != fmt.Sprint("r", i) || r.Key != fmt.Sprint("k", i) {
				t.Errorf("round %d: receipt %d is %+v", round, i, r)
			}
		}
		list, err := s.Sessions(t.Context(), "codex")
		must(t, err)
		if len(list) != 1 || list[0].Revision != uint64(len(runs)-1) {
			t.Errorf("round %d: conversation %+v after %d receipts", round, list, len(runs))
		}
		must(t, s.exec(t.Context(), `DELETE FROM runs`)) // the next process begins at 0 again
		must(t, s.Close())
	}
}
