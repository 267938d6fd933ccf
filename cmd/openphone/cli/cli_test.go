package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
)

// Every command says in its help what it does, with examples, and takes --json.
func TestHelp(t *testing.T) {
	t.Parallel()
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			t.Parallel()
			if c.Short == "" {
				t.Error("no short description")
			}
			for _, l := range strings.Split(c.Example, "\n") {
				if !strings.Contains(l, "openphone") {
					t.Errorf("example %q does not show how to call it", l)
				}
			}
			if c.InheritedFlags().Lookup("json") == nil && c.PersistentFlags().Lookup("json") == nil {
				t.Error("no --json")
			}
		})
		for _, s := range c.Commands() {
			if s.Name() != "help" {
				check(s)
			}
		}
	}
	a := &app{Streams: Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}
	check(a.root())
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{Streams: Streams{Out: &out}}
	a.print(plain(&controlv1.DiagnoseResponse{Checks: []*controlv1.Check{{
		Name: "listen", Result: controlv1.CheckResult_CHECK_RESULT_WARNING, Message: "a < b", Advice: "",
	}}}))
	a.print(plain(&controlv1.Phone{Id: "p", CreatedAt: timestamppb.New(time.Unix(1700000000, 0)), Sockets: 2}))
	want := `{"checks":[{"advice":"","message":"a < b","name":"listen","result":"warning"}]}
{"created_at":"2023-11-14T22:13:20Z","first_used":null,"id":"p","label":"","last_used":null,"revoked_at":null,"sockets":2}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	s := func(list ...string) *controlv1.HostStatus {
		h := &controlv1.HostStatus{}
		for _, x := range list {
			id, st, _ := strings.Cut(x, ":")
			h.Runtimes = append(h.Runtimes, &controlv1.RuntimeStatus{Id: id, State: st})
		}
		return h
	}
	for _, c := range []struct {
		name, id, want, err string
		status              *controlv1.HostStatus
	}{
		{"a real agent before the demo", "", "pi", "", s("codex:waiting", "demo:ready", "pi:ready")},
		{"the demo when there is nothing else", "", "demo", "", s("codex:waiting", "demo:ready")},
		{"nothing", "", "", "no agent is ready: run openphone doctor", s("codex:waiting")},
		{"by name", "demo", "demo", "", s("codex:ready", "demo:ready")},
		{"by name, not ready", "codex", "", "codex is waiting: run openphone doctor", s("codex:waiting")},
		{"unknown", "emacs", "", `there is no runtime "emacs": run openphone runtime list`, s("demo:ready")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(c.status, c.id)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != c.want || text != c.err {
				t.Errorf("got %q, %q", got, text)
			}
		})
	}
}
