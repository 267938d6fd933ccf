package procnative

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary play the native program, so that the tests need no other.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCNATIVE_ROLE") {
	case "":
		os.Exit(m.Run())
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		os.Exit(7)
	case "lines":
		_, _ = os.Stdout.WriteString("short\n" + strings.Repeat("x", 5000) + "\r\nafter\r\nlast without end")
		for range 300 {
			_, _ = os.Stderr.WriteString("noise " + strings.Repeat("y", 3000) + "\n")
		}
	case "parent": // starts a child that leaves its parent, and one that does not
		for _, escape := range []bool{true, false} {
			c := exec.Command(os.Args[0])
			c.Env = []string{"PROCNATIVE_ROLE=sleeper"}
			c.Env = append(c.Env, markOf(os.Environ())...)
			leaveParent(c, escape)
			if err := c.Start(); err != nil {
				os.Exit(9)
			}
			_, _ = os.Stdout.WriteString(strconv.Itoa(c.Process.Pid) + "\n")
		}
		hold()
	case "sleeper":
		hold()
	case "stubborn":
		ignoreTerm()
		_, _ = os.Stdout.WriteString("ready\n")
		hold()
	}
}

// hold keeps a role alive until it is killed.
func hold() { <-time.After(time.Minute) }

func markOf(env []string) []string {
	for _, e := range env {
		if strings.HasPrefix(e, treeEnv+"=") {
			return []string{e}
		}
	}
	return nil
}

func start(t *testing.T, role string, s Spec) *Process {
	t.Helper()
	s.Path, s.Env = os.Args[0], []string{"PROCNATIVE_ROLE=" + role}
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func wait(t *testing.T, p *Process) Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	e, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEchoAndExitStatus(t *testing.T) {
	t.Parallel()
	p := start(t, "echo", Spec{})
	want := " leading, trailing \t"
	if _, err := io.WriteString(p.Stdin(), want+"\n"); err != nil {
		t.Fatal(err)
	}
	got, err := p.ReadLine()
	if err != nil || string(got) != want {
		t.Errorf("ReadLine() = %q, %v, want %q", got, err, want)
	}
	if !Alive(p.Identity()) {
		t.Error("Alive = false while it runs")
	}
	_ = p.Stdin().Close()
	if e := wait(t, p); e.Code != 7 || e.Killed || e.String() != "exit status 7" {
		t.Errorf("exit = %+v, want status 7", e)
	}
	if Alive(p.Identity()) {
		t.Error("Alive = true after the end")
	}
}

func TestRawOutput(t *testing.T) {
	t.Parallel()
	p := start(t, "echo", Spec{})
	if _, err := p.Stdin().Write([]byte{0, 1, 2, '\r', '\n', 0xff}); err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin().Close()
	got, err := io.ReadAll(p.Stdout())
	if err != nil || !bytes.Equal(got, []byte{0, 1, 2, '\r', '\n', 0xff}) {
		t.Errorf("read %v, %v", got, err)
	}
	wait(t, p)
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	told := 0
	p := start(t, "lines", Spec{MaxLine: 1000, OnStderr: func(string) { told++ }})
	var got []string
	for {
		l, err := p.ReadLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, ErrLineTooLong) {
			l = []byte("(too long)")
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(l))
	}
	if want := "short,(too long),after,last without end"; strings.Join(got, ",") != want {
		t.Errorf("lines = %q, want %q", strings.Join(got, ","), want)
	}
	wait(t, p)
	kept := p.Stderr()
	if len(kept) != ringLines || len(kept[0]) != ringLine {
		t.Errorf("kept %d lines of %d bytes, want %d of %d", len(kept), len(kept[0]), ringLines, ringLine)
	}
	if told == 0 || told > 3*stderrRate {
		t.Errorf("OnStderr called %d times, want some, but far fewer than 300", told)
	}
}

func TestKillTakesTheTree(t *testing.T) {
	t.Parallel()
	p := start(t, "parent", Spec{})
	var kids []Identity
	for range 2 {
		l, err := p.ReadLine()
		if err != nil {
			t.Fatal(err)
		}
		pid, _ := strconv.Atoi(string(l))
		id, err := IdentityOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		kids = append(kids, id)
	}
	p.Kill()
	if e := wait(t, p); !e.Killed || e.String() != "killed" {
		t.Errorf("exit = %+v, want killed", e)
	}
	for _, k := range kids {
		if waitGone(k); Alive(k) {
			t.Errorf("child %d survived", k.PID)
		}
	}
	p.Kill() // again: nothing left to do
}

func waitGone(id Identity) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && Alive(id); {
		runtime.Gosched()
	}
}

func TestStopEscalates(t *testing.T) {
	t.Parallel()
	p := start(t, "stubborn", Spec{})
	if l, err := p.ReadLine(); err != nil || !bytes.Equal(l, []byte("ready")) {
		t.Fatalf("ReadLine() = %q, %v", l, err)
	}
	if e := p.Stop(200 * time.Millisecond); !e.Killed {
		t.Errorf("Stop = %+v, want killed", e)
	}
	q := start(t, "echo", Spec{})
	if e := q.Stop(5 * time.Second); e.Killed || e.Code != 7 {
		t.Errorf("Stop = %+v, want its own end with 7", e)
	}
}

func TestReusedNumberIsNotOurs(t *testing.T) {
	t.Parallel()
	id, err := IdentityOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	id.Start++
	if Alive(id) {
		t.Error("a process with the same number and another start counts as ours")
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Spec{Path: t.TempDir() + "/none"}); err == nil {
		t.Error("Start of a missing program succeeded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Spec{Path: os.Args[0]}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v, want cancelled", err)
	}
}
