package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
)

// Process is a started app server. Wait is called once, after Stdout has ended.
type Process interface {
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Terminate()
	Kill()
	Wait() error
}

// StartFunc starts a command with this environment.
type StartFunc func(command []string, env []string) (Process, error)

// FindFunc finds the executable and its version.
type FindFunc func(ctx context.Context, command string, env []string) (appserver.Executable, string, error)

func findExecutable(ctx context.Context, command string, env []string) (appserver.Executable, string, error) {
	exe, err := appserver.Finder{}.Find(command)
	if err != nil {
		return exe, "", err
	}
	v, err := exe.Version(ctx, env)
	return exe, v, err
}

// startProcess starts the child in this process's group, so that whatever ends the plugin ends it too; it also ends by
// itself when its input is closed. Its error stream may hold secrets and goes nowhere.
func startProcess(command []string, env []string) (Process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = env
	if home, err := os.UserHomeDir(); err == nil {
		cmd.Dir = home
	}
	prepareCommand(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, stdin.Close(), stdout.Close())
	}
	return &process{cmd: cmd, stdin: stdin, stdout: stdout}, nil
}

type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
}

func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return p.stdout }
func (p *process) Terminate()            { terminate(p.cmd.Process) }
func (p *process) Kill()                 { _ = p.cmd.Process.Kill() }
func (p *process) Wait() error           { return p.cmd.Wait() }
