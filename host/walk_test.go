package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// buildDemo builds the demo plugin with its pin into a directory of its own.
func buildDemo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	exe := filepath.Join(dir, "openphone-runtime-demo")
	if out, err := exec.Command("go", "build", "-o", exe, "github.com/openphone-host/openphone/plugins/demo").CombinedOutput(); err != nil {
		t.Fatalf("build demo: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	pin, _ := json.Marshal(map[string]string{"openphone-runtime-demo": hex.EncodeToString(sum[:])})
	if err := os.WriteFile(filepath.Join(dir, pinFile), pin, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWalk sends one prompt the whole way: phone socket, host, plugin process, and back.
func TestWalk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	h, err := New(ctx, Options{Home: t.TempDir(), PluginDirs: []string{buildDemo(t)}, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.Run(run, nil, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("host ended before it was ready: %v", err)
	}
	pair, err := backend{h}.Pair(ctx, "test", false)
	if err != nil {
		t.Fatal(err)
	}
	if len(pair.Backends) != 1 || pair.Backends[0].Backend != demoID {
		t.Fatalf("backends = %+v, want the demo alone", pair.Backends)
	}
	ws, _, err := websocket.Dial(ctx, pair.Backends[0].URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(clawket.MaxFrame)
	defer ws.CloseNow()
	var text strings.Builder
	finished := false
	ask := func(id, method, params string) json.RawMessage {
		t.Helper()
		if err := ws.Write(ctx, websocket.MessageText, []byte(`{"type":"req","id":"`+id+`","method":"`+method+`","params":`+params+`}`)); err != nil {
			t.Fatal(err)
		}
		for {
			_, raw, err := ws.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var f struct {
				Type, ID, Event string
				OK              bool
				Payload         json.RawMessage
				Error           *struct{ Code, Message string }
			}
			if err := json.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			if f.Type == "event" {
				var u struct{ Type, Text, StopReason string }
				_ = json.Unmarshal(f.Payload, &u)
				if u.Type == "agent_message_chunk" {
					text.WriteString(u.Text)
				}
				if u.Type == "run_finished" {
					finished = true
				}
			}
			if f.Type == "res" && f.ID == id {
				if !f.OK {
					t.Fatalf("%s: %+v", method, f.Error)
				}
				return f.Payload
			}
		}
	}
	ask("1", "connect", `{"token":"`+pair.Backends[0].Token+`"}`)
	var s struct{ Key string }
	_ = json.Unmarshal(ask("2", "sessions.create", `{}`), &s)
	ask("3", "chat.send", `{"sessionKey":"`+s.Key+`","text":"hello  there","idempotencyKey":"k-1"}`)
	for n := 4; !finished; n++ {
		ask("poll"+string(rune('a'+n%26)), "health", `{}`)
	}
	if !strings.Contains(text.String(), "hello  there") {
		t.Errorf("streamed text = %q, want the echo, byte for byte", text.String())
	}
	history := string(ask("99", "chat.history", `{"sessionKey":"`+s.Key+`"}`))
	if !strings.Contains(history, "hello  there") {
		t.Errorf("history = %s", history)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v after an orderly stop", err)
	}
}
