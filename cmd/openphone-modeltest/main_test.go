package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunServesAScript(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(file, []byte("when hi\n text \"there\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"--script", file, "--json"}, nil, w) }()
	lines := bufio.NewScanner(out)
	var ready struct {
		Ready bool
		URL   string
	}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &ready) != nil || !ready.Ready {
		t.Fatalf("first line %q", lines.Text())
	}
	answer := make(chan string, 1)
	go func() {
		res, err := http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		answer <- string(b)
	}()
	if !lines.Scan() || !strings.Contains(lines.Text(), `"prompt":"hi"`) {
		t.Errorf("request line %q", lines.Text())
	}
	if got := <-answer; !strings.Contains(got, `"content":"there"`) {
		t.Errorf("answer %q", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRunRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"--script", "/nonexistent"}, {"--listen", "nonsense"}} {
		if err := run(t.Context(), args, nil, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"--help"}, nil, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "Examples:") {
		t.Errorf("help: %v\n%s", err, help.String())
	}
}
