package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/openphone-host/openphone/buildtools/bench/stamp"
	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/serve"
)

// The floors run in processes of their own, as the host does: this program started again with -bare.
const (
	bareSocket  = "socket"  // a WebSocket that sends stamped pieces when asked, and answers everything else at once
	barePlugins = "plugins" // go-plugin alone, with the plugins named
)

// bare is such a process.
type bare struct {
	cmd   *exec.Cmd
	stdin io.Closer
	line  string        // the one it printed when it was ready
	took  time.Duration // until then
}

func startBare(ctx context.Context, args ...string) (*bare, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bare{cmd: exec.CommandContext(ctx, self, append([]string{"-bare"}, args...)...)}
	b.cmd.Stderr = os.Stderr
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	b.took, b.line = time.Since(began), strings.TrimSpace(line)
	if err != nil {
		b.kill()
		return nil, fmt.Errorf("the floor did not start: %w", err)
	}
	return b, nil
}

// end lets the process finish.
func (b *bare) end() {
	_ = b.stdin.Close()
	_ = b.cmd.Wait()
}

func (b *bare) kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// runBare is the main of such a process; it ends with its standard input.
func runBare(args []string) error {
	switch args[0] {
	case bareSocket:
		return serveSocket(args[1])
	case barePlugins:
		return holdPlugins(args[1:])
	}
	return fmt.Errorf("no floor %s", args[0])
}

func serveSocket(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: http.HandlerFunc(socket), ReadHeaderTimeout: patience}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	fmt.Println("ws://" + l.Addr().String() + "/")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = s.Close()
	wg.Wait()
	return nil
}

// socket sends n pieces at a rate when it is asked "n rate", in frames like the host's; what else it gets, it sends back.
func socket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		_, frame, err := c.Read(r.Context())
		if err != nil {
			return
		}
		var n, rate int
		if _, err := fmt.Sscanf(string(frame), "%d %d", &n, &rate); err != nil {
			if c.Write(r.Context(), websocket.MessageText, frame) != nil {
				return
			}
			continue
		}
		key, run := "native:"+newID(), newID()
		due := time.Now()
		for range n {
			due = due.Add(time.Second / time.Duration(rate))
			time.Sleep(time.Until(due))
			now := time.Now()
			text, ms := stamp.Text(now), now.UnixMilli()
			frame, err := clawket.Marshal(clawket.Event{Type: clawket.TypeEvent, Event: clawket.EventName(one), Payload: clawket.Update{
				Type: clawket.UpdateMessageChunk, SessionKey: key, RunID: run, Text: &text, TextMode: clawket.TextDelta, TimestampMS: ms,
			}})
			if err != nil || c.Write(r.Context(), websocket.MessageText, frame) != nil {
				return
			}
		}
	}
}

// holdPlugins starts the plugins side by side and holds them.
func holdPlugins(paths []string) error {
	clients, errs := make([]*plugin.Client, len(paths)), make([]error, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() { clients[i], errs[i] = startPlugin(path) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var pids []string
	for _, c := range clients {
		pids = append(pids, c.ID())
	}
	fmt.Println(strings.Join(pids, " "))
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, c := range clients {
		c.Kill()
	}
	return nil
}

// startPlugin is what go-plugin needs at least: the handshake with mutual TLS, the connection, one answer.
func startPlugin(path string) (*plugin.Client, error) {
	c := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: serve.Handshake, VersionedPlugins: serve.VersionedPlugins(), Cmd: exec.Command(path),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true, SkipHostEnv: true, Logger: hclog.NewNullLogger(),
	})
	rpc, err := c.Client()
	if err != nil {
		c.Kill()
		return nil, err
	}
	raw, err := rpc.Dispense(serve.PluginName)
	if err != nil {
		c.Kill()
		return nil, err
	}
	client, ok := raw.(*serve.Client)
	if !ok {
		c.Kill()
		return nil, fmt.Errorf("dispensed %T", raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := client.Runtime.Describe(ctx, &runtimev1.DescribeRequest{}); err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}
