// Package procnative runs a native command line program for a plugin: pipes, lines of bounded length, the last lines of
// its standard error, one exit record, and an end that takes the whole tree of processes with it. It knows nothing of
// what the program speaks.
//
// The program stays in the plugin's process group, so that a host that kills the group takes it too; only a program that
// is meant to outlive the plugin is started with Detach. On Linux it also dies with the plugin by the kernel's own means.
// On Windows it lives in a job object that ends with the plugin.
//
// Concurrency: a Process is safe for concurrent use, but lines have one reader, and writers to Stdin take turns.
package procnative

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// defaultMaxLine is the longest line of standard output handed out whole, in bytes.
	defaultMaxLine = 16 << 20
	// ringLines and ringLine bound what is kept of standard error: that many lines, that many bytes each.
	ringLines = 200
	ringLine  = 2000
	// stderrRate is how many lines of standard error a second reach OnStderr; the rest is counted.
	stderrRate = 20
	// drainTime is how long output is still read after the process is gone; a grandchild may hold the pipe for ever.
	drainTime = 2 * time.Second
	// treeEnv marks a program and everything it starts, so that a process that left group and parent is found again.
	treeEnv = "OPENPHONE_NATIVE_TREE"
)

// ErrLineTooLong says that one line of output was longer than MaxLine and is lost. Reading goes on with the next one.
var ErrLineTooLong = errors.New("procnative: line too long")

// ErrNotRunning says that the process has ended.
var ErrNotRunning = errors.New("procnative: not running")

// Spec is what to start. Only Path is needed.
type Spec struct {
	// Path is the executable, absolute or found in PATH by exec.
	Path string
	Args []string
	// Env is the whole environment; nothing of the plugin's own is added but the mark of the tree.
	Env []string
	// Dir is the working directory; empty: the plugin's.
	Dir string
	// MaxLine is the longest line ReadLine hands out, in bytes; default 16 MiB.
	MaxLine int
	// OnStderr gets lines of standard error, cut to 2000 bytes, at most 20 a second, from one goroutine; nil: nobody.
	OnStderr func(line string)
	// Detach starts the program in a session of its own: it is meant to outlive the plugin, and neither Kill of the
	// plugin's group nor its death ends it.
	Detach bool
}

// Identity names one process for ever: a number that is used again has another start time.
type Identity struct {
	PID   int
	Start uint64 // in the unit of the system: clock ticks, microseconds or 100 ns
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // exit status; -1 when a signal ended it
	Signal string // name of the signal, if one did
	Killed bool   // we did it
}

// String is for logs.
func (e Exit) String() string {
	switch {
	case e.Killed:
		return "killed"
	case e.Signal != "":
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Process is a started program.
type Process struct {
	cmd   *exec.Cmd
	id    Identity
	mark  string
	stdin io.WriteCloser
	lines *lineReader
	ring  *ring
	group group // what the platform needs to end the tree

	done chan struct{} // closed when the process has ended and its output is read or given up

	mu     sync.Mutex
	killed bool
	exit   Exit
}

// Start starts the program. ctx bounds the start alone; ending it later does not touch the process.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.MaxLine <= 0 {
		s.MaxLine = defaultMaxLine
	}
	p := &Process{mark: rand.Text(), ring: newRing(s.OnStderr), done: make(chan struct{})}
	cmd := exec.Command(s.Path, s.Args...)
	cmd.Dir = s.Dir
	cmd.Env = append(append([]string{}, s.Env...), treeEnv+"="+p.mark)
	cmd.WaitDelay = drainTime
	if err := prepare(cmd, s.Detach); err != nil {
		return nil, err
	}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// Wait closes an StdoutPipe as soon as the process ends, which loses what is still in it; an own pipe does not.
	out, outW := io.Pipe()
	cmd.Stdout, cmd.Stderr = outW, p.ring
	p.cmd, p.lines = cmd, newLineReader(out, s.MaxLine)

	started := make(chan error, 1)
	var wg sync.WaitGroup // never waited for: it ends with the process, which Done tells
	wg.Go(func() {
		// The kernel kills the child when the thread that started it ends, so that thread waits for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.id.PID = cmd.Process.Pid
			p.id.Start, _ = startTime(p.id.PID)
			err = p.group.adopt(cmd)
		}
		started <- err
		if err != nil {
			_ = outW.CloseWithError(err)
			return
		}
		werr := cmd.Wait()
		_ = outW.Close()
		p.finish(werr)
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Process) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exit = exitOf(p.cmd, err)
	p.exit.Killed = p.killed
	close(p.done)
}

// Identity names the process.
func (p *Process) Identity() Identity { return p.id }

// Stdin is the program's standard input. Closing it is the polite way to end most programs.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// ReadLine gives the next line of standard output without its end; the slice is the caller's. io.EOF says that there is
// no more, ErrLineTooLong that one line was skipped. A line that is not read holds the program up, as a pipe does.
func (p *Process) ReadLine() ([]byte, error) { return p.lines.next() }

// Stdout is standard output as it comes, for a protocol that is not made of lines. Use either it or ReadLine.
func (p *Process) Stdout() io.Reader { return p.lines.src }

// Terminate asks the process to end in the system's own way, and does not wait. Windows has none for a program without a
// console: there the end of standard input is the request.
func (p *Process) Terminate() { terminate(p.cmd) }

// Stderr gives the last lines of standard error, oldest first. They may hold anything: for the local log only.
func (p *Process) Stderr() []string { return p.ring.lines() }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end, or for ctx.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

// Kill ends the process and everything it started, at once, and returns when the process is gone. What is already gone
// is no error.
func (p *Process) Kill() {
	p.mu.Lock()
	select {
	case <-p.done:
		p.mu.Unlock()
		p.group.sweep(p.id, p.mark)
		return
	default:
	}
	p.killed = true
	p.mu.Unlock()
	p.group.kill(p.id, p.mark)
	_ = p.cmd.Process.Kill()
	_ = p.lines.src.Close() // nobody needs to read on for the process to be collected
	<-p.done
	p.group.sweep(p.id, p.mark)
}

// Stop closes standard input, waits for half of grace, asks with the system's signal, waits for the other half, and then
// kills. Whatever the program leaves behind is killed too.
func (p *Process) Stop(grace time.Duration) Exit {
	_ = p.stdin.Close()
	if !p.waitFor(grace / 2) {
		terminate(p.cmd)
		p.waitFor(grace / 2)
	}
	p.Kill()
	e, _ := p.Wait(context.Background())
	return e
}

func (p *Process) waitFor(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// Alive reports whether exactly this process still runs.
func Alive(id Identity) bool {
	start, err := startTime(id.PID)
	return err == nil && id.PID > 0 && start == id.Start
}

// IdentityOf names a running process by its number.
func IdentityOf(pid int) (Identity, error) {
	start, err := startTime(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Start: start}, nil
}

// lineReader cuts a stream into lines of bounded length.
type lineReader struct {
	src *io.PipeReader
	r   *bufio.Reader
	max int
}

func newLineReader(src *io.PipeReader, max int) *lineReader {
	return &lineReader{src: src, r: bufio.NewReaderSize(src, 64<<10), max: max}
}

func (l *lineReader) next() ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(part) > l.max+1 {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && errors.Is(err, io.ErrClosedPipe):
			return nil, io.EOF
		case err != nil && tooLong:
			return nil, ErrLineTooLong
		case err != nil && len(line) == 0:
			return nil, err
		case tooLong:
			return nil, ErrLineTooLong
		}
		line = trimEOL(line)
		return line, nil
	}
}

func trimEOL(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}

// ring keeps the last lines of standard error and passes on as many as the rate allows. It is an io.Writer for exec.
type ring struct {
	tell func(string)

	mu      sync.Mutex
	kept    []string
	partial strings.Builder
	second  time.Time
	told    int
	skipped int
}

func newRing(tell func(string)) *ring { return &ring{tell: tell} }

// Write implements io.Writer and never fails.
func (r *ring) Write(b []byte) (int, error) {
	var out []string
	r.mu.Lock()
	for _, c := range b {
		switch {
		case c == '\n':
			out = r.line(out)
		case r.partial.Len() < ringLine:
			r.partial.WriteByte(c)
		}
	}
	r.mu.Unlock()
	for _, l := range out {
		r.tell(l)
	}
	return len(b), nil
}

// line ends the line in hand. Called with the lock held.
func (r *ring) line(out []string) []string {
	text := strings.ToValidUTF8(strings.TrimRight(r.partial.String(), "\r"), "\uFFFD")
	r.partial.Reset()
	r.kept = append(r.kept, text)
	if len(r.kept) > ringLines {
		r.kept = r.kept[1:]
	}
	if r.tell == nil {
		return out
	}
	if now := time.Now(); now.Sub(r.second) >= time.Second {
		if r.skipped > 0 {
			out = append(out, fmt.Sprintf("(%d lines left out)", r.skipped))
		}
		r.second, r.told, r.skipped = now, 0, 0
	}
	if r.told >= stderrRate {
		r.skipped++
		return out
	}
	r.told++
	return append(out, text)
}

func (r *ring) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := append([]string{}, r.kept...)
	if r.partial.Len() > 0 {
		list = append(list, strings.ToValidUTF8(r.partial.String(), "\uFFFD"))
	}
	return list
}
