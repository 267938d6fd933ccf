package agent

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/sdk/procnative"
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
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then it works where the plugin does
	}
	p, err := procnative.Start(context.Background(), procnative.Spec{Path: command[0], Args: command[1:], Env: env, Dir: home})
	if err != nil {
		return nil, err
	}
	return process{p}, nil
}

// process waits as exec does. Kill takes what the child started with it.
type process struct{ *procnative.Process }

// Wait also ends what the child left behind: a command it ran in a session of its own.
func (p process) Wait() error {
	exit, err := p.Process.Wait(context.Background())
	p.Kill()
	if err == nil && (exit.Code != 0 || exit.Signal != "") {
		err = errors.New(exit.String())
	}
	return err
}
