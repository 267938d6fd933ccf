package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"sync"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Life of the child.
const (
	firstRetry     = 250 * time.Millisecond
	lastRetry      = 30 * time.Second
	steadyAfter    = time.Minute      // a child that lived this long forgives the failures before it
	handshakeLimit = 20 * time.Second // start to initialize
	stopGrace      = 3 * time.Second  // between asking the child to end and killing it
)

// supervise keeps one child alive until the agent ends.
func (a *Agent) supervise() {
	wait := firstRetry
	for a.life.Err() == nil {
		born := a.o.Now()
		err := a.serveOne()
		if a.life.Err() != nil {
			return
		}
		a.log.Info("app server ended", "code", reason(err), "exit", exitText(err))
		if a.o.Now().Sub(born) > steadyAfter {
			wait = firstRetry
		}
		a.tell(a.health.set(func(s *runtime.Status) {
			s.Condition, s.Reason = runtime.ConditionUnavailable, reason(err)
		}))
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-a.life.Done():
			t.Stop()
			return
		}
		wait = min(max(2*wait, time.Second), lastRetry)
	}
}

// reason is the stable code of a child that could not be had.
func reason(err error) string {
	switch {
	case errors.Is(err, appserver.ErrMissing):
		return codes.RuntimeMissing
	case errors.Is(err, appserver.ErrTooOld):
		return codes.RuntimeTooOld
	}
	return codes.RuntimeUnreachable
}

// exitText is how the process ended, without the paths other errors hold.
func exitText(err error) string {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.Error()
	}
	return ""
}

// serveOne starts a child and returns when it is gone.
func (a *Agent) serveOne() error {
	a.mu.Lock()
	command := a.config.Command
	a.mu.Unlock()
	env := environ()
	exe, version, err := a.o.Find(a.life, command, env)
	if err != nil {
		return err
	}
	proc, err := a.o.Start(append(append([]string{exe.Path}, exe.Args...), "app-server", "--listen", "stdio://"), env)
	if err != nil {
		return err
	}
	client := appserver.New(appserver.Options{
		In: proc.Stdout(), Out: proc.Stdin(), OnNotification: a.onNotification, OnRequest: a.onRequest, Log: a.log,
	})
	ctx, cancel := context.WithCancel(a.life)
	defer cancel()
	stopping := context.AfterFunc(ctx, func() { proc.Terminate() })
	defer stopping()

	var wg sync.WaitGroup
	var ended error
	wg.Go(func() {
		ended = client.Run(ctx)
		cancel()
	})
	if err = a.greet(ctx, cancel, client, version); err == nil {
		<-ctx.Done()
	}
	cancel()
	kill := time.AfterFunc(time.Duration(a.grace.Load()), proc.Kill)
	a.unlink()
	wg.Wait()
	if errors.Is(ended, appserver.ErrFrame) {
		proc.Kill()
	}
	waitErr := proc.Wait()
	kill.Stop()
	return errors.Join(err, ended, waitErr)
}

// greet makes the handshake and publishes the connection. end ends the child.
func (a *Agent) greet(ctx context.Context, end context.CancelFunc, client *appserver.Client, version string) error {
	hello, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	server, err := client.Initialize(hello, "openphone_host", "OpenPhone Host", version)
	if err != nil {
		return err
	}
	if v := server.Version(); v != "" {
		version = v
	}
	l := &link{client: client, server: server, version: version, born: a.o.Now(), end: end}
	a.setLink(l)
	a.look(hello, l)
	a.spawn(func() { a.recover(ctx, l) })
	return nil
}

// unlink forgets everything that lived in the child: loaded threads and open questions. Runs stay open; the next child
// tells how they ended.
func (a *Agent) unlink() {
	a.setLink(nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.asks {
		a.closeAsk(id, runtime.ClosureExpired)
	}
	a.threads = map[string]*thread{}
	for _, r := range a.runs {
		r.lost = true
	}
}

// defaults reads model and provider of a new conversation.
func (l *link) defaults(ctx context.Context) (model, provider string, err error) {
	raw, err := l.client.ConfigRead(ctx, "")
	if err != nil {
		return "", "", err
	}
	var c struct {
		Config struct {
			Model    appserver.String `json:"model"`
			Provider appserver.String `json:"model_provider"`
		} `json:"config"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", "", err
	}
	if c.Config.Provider == "" {
		c.Config.Provider = "openai"
	}
	return string(c.Config.Model), string(c.Config.Provider), nil
}
