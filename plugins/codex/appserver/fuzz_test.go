package appserver

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

type closedWriter struct{}

func (closedWriter) Write(b []byte) (int, error) { return len(b), nil }
func (closedWriter) Close() error                { return nil }

// FuzzLines reads whatever a child may print: it never panics, and hands over only what has a method.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		`{"method":"a","params":{}}`, `{"id":0,"method":"a"}`, `{"id":1,"result":{}}`, `{"id":1,"error":{"code":1}}`, `{"id":null}`,
		`[]`, `{`, "\xff", `{"id":{"a":1},"method":"x"}`, `{"method":5}`, "{}\n{}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := New(Options{
			In: io.MultiReader(bytes.NewReader(data), bytes.NewReader([]byte("\n"))), Out: closedWriter{},
			OnNotification: func(n Notification) {
				if n.Method == "" {
					t.Error("a notification without a method")
				}
			},
			OnRequest: func(r ServerRequest) {
				if r.Method == "" || !json.Valid(r.ID) {
					t.Errorf("request %q %q", r.Method, r.ID)
				}
			},
		})
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// FuzzItem decodes whatever a thread may hold, without a panic.
func FuzzItem(f *testing.F) {
	f.Add([]byte(`{"id":"a","type":"userMessage","content":[{"type":"text","text":"x"}]}`))
	f.Add([]byte(`{"type":"commandExecution","commandActions":[{"command":"ls"}],"exitCode":1}`))
	f.Add([]byte(`{"error":{"message":"x","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var i Item
		_ = json.Unmarshal(data, &i)
		_, _, _ = i.Inputs(), i.Reasoning(), i.InnerCommand()
		var turn Turn
		_ = json.Unmarshal(data, &turn)
		if turn.Error != nil {
			_, _ = turn.Error.Kind()
		}
		_ = turn.Terminal()
		_ = Classify(&RPCError{Code: -32600, Message: string(data), Data: data})
	})
}
