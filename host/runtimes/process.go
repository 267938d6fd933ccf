package runtimes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

const (
	// handshakeLine is the longest first line of a plugin's standard output; a handshake is about 1 KiB.
	handshakeLine = 16 << 10
	// pipeGrace is how long the pipes of a dead plugin are still read: a program that is meant to stay may hold them.
	pipeGrace = 100 * time.Millisecond
)

// process runs one plugin executable for go-plugin: a standard input the host holds open, a session and process group
// of its own (a job on Windows), and the collection of both. It is used once. done is closed after the leader has ended,
// its group was killed and the leader was reaped, in that order: afterwards its number may belong to somebody else.
type process struct {
	cmd    *exec.Cmd
	stderr io.Writer // gets every line the plugin writes, until it ends
	keep   func(program string) bool
	ended  func(killed, kept int) // told how many processes the sweep ended and left; may be nil

	stdinW       *os.File
	stdoutR      *io.PipeReader
	stdoutW      *io.PipeWriter
	outR, errR   *os.File
	wg           sync.WaitGroup
	readers      sync.WaitGroup
	done         chan struct{}
	group        group
	mu           sync.Mutex
	started      bool
	startedAt    time.Time
	state        *os.ProcessState
	readersEnded chan struct{}
}

var _ runner.Runner = (*process)(nil)

func newProcess(path string, env []string, stderr io.Writer, keep func(string) bool, ended func(int, int)) *process {
	cmd := &exec.Cmd{Path: path, Args: []string{path}, Env: env, Dir: string(filepath.Separator)}
	r, w := io.Pipe()
	return &process{
		cmd: cmd, stderr: stderr, keep: keep, ended: ended, stdoutR: r, stdoutW: w,
		done: make(chan struct{}), readersEnded: make(chan struct{}),
	}
}

// Start implements runner.Runner.
func (p *process) Start(context.Context) error {
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, inR.Close(), inW.Close())
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, inR.Close(), inW.Close(), outR.Close(), outW.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW
	p.group.prepare(p.cmd)
	err = p.cmd.Start()
	for _, f := range []*os.File{inR, outW, errW} {
		_ = f.Close()
	}
	if err != nil {
		for _, f := range []*os.File{inW, outR, errR} {
			_ = f.Close()
		}
		p.stdoutW.CloseWithError(err)
		return err
	}
	p.stdinW, p.outR, p.errR = inW, outR, errR
	p.group.adopt(p.cmd)
	p.mu.Lock()
	p.started, p.startedAt = true, time.Now()
	p.mu.Unlock()
	p.readers.Go(p.readStdout)
	p.readers.Go(p.readStderr)
	p.wg.Go(p.wait)
	return nil
}

// wait sees the leader end, kills what it left behind and only then collects it.
func (p *process) wait() {
	waitExit(p.cmd.Process)
	killed, kept := p.group.sweep(p.cmd.Process.Pid, p.keep)
	_ = p.cmd.Wait() // the state is what counts
	p.mu.Lock()
	p.state = p.cmd.ProcessState
	p.mu.Unlock()
	p.group.release()
	_ = p.stdinW.Close()
	close(p.done)
	if p.ended != nil {
		p.ended(killed, kept)
	}
	p.wg.Go(func() { p.readers.Wait(); close(p.readersEnded) })
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-p.readersEnded:
	case <-timer.C:
	}
	_ = p.outR.Close()
	_ = p.errR.Close()
	<-p.readersEnded
}

// readStdout passes the handshake line to go-plugin and what comes after it to the log: a plugin that prints must not
// block on a full pipe.
func (p *process) readStdout() {
	r := bufio.NewReaderSize(p.outR, handshakeLine)
	line, err := r.ReadSlice('\n')
	if len(line) > 0 {
		_, _ = p.stdoutW.Write(append(bytes.TrimRight(line, "\r\n"), '\n'))
	}
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		_ = p.stdoutW.CloseWithError(io.EOF)
		return
	}
	_, _ = io.Copy(io.MultiWriter(p.stderr), r)
	_ = p.stdoutW.Close()
}

func (p *process) readStderr() { _, _ = io.Copy(p.stderr, p.errR) }

// Wait implements runner.Runner.
func (p *process) Wait(context.Context) error {
	<-p.done
	if s := p.exit(); s != nil && !s.Success() {
		return errors.New(s.String())
	}
	return nil
}

// Kill implements runner.Runner: it ends the whole group at once.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	started := p.started
	p.mu.Unlock()
	if !started {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
	}
	// The leader cannot have been reaped before done is closed, except in the instant between the two; killing through
	// os.Process is safe there too, and the sweep takes the rest.
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// collect waits until the process and its pipes are gone.
func (p *process) collect() { p.wg.Wait() }

// closeStdin tells the plugin that nobody needs it any more.
func (p *process) closeStdin() {
	if p.stdinW != nil {
		_ = p.stdinW.Close()
	}
}

// exit is the final state; nil before done.
func (p *process) exit() *os.ProcessState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// pid is 0 before the start.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return 0
	}
	return p.cmd.Process.Pid
}

// Stdout implements runner.Runner.
func (p *process) Stdout() io.ReadCloser { return p.stdoutR }

// Stderr implements runner.Runner. The host reads the real one itself, so go-plugin sees an empty one.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

// Name implements runner.Runner.
func (p *process) Name() string { return filepath.Base(p.cmd.Path) }

// ID implements runner.Runner.
func (p *process) ID() string {
	if n := p.pid(); n != 0 {
		return strconv.Itoa(n)
	}
	return ""
}

// Diagnose implements runner.Runner.
func (p *process) Diagnose(context.Context) string {
	if s := p.exit(); s != nil {
		return fmt.Sprintf("it ended with %s", s)
	}
	return ""
}

// PluginToHost implements runner.Runner.
func (*process) PluginToHost(network, addr string) (string, string, error) { return network, addr, nil }

// HostToPlugin implements runner.Runner.
func (*process) HostToPlugin(network, addr string) (string, string, error) { return network, addr, nil }
