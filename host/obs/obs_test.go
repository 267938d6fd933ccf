package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSecretsCannotBePrinted: no way of writing the value shows it.
func TestSecretsCannotBePrinted(t *testing.T) {
	const secret = "PLANTED-TOKEN"
	var text, object bytes.Buffer
	for _, l := range []*Logs{New(Options{Output: &text}), New(Options{Output: &object, JSON: true})} {
		log := l.Logger("x").With("with", Redacted(secret)).WithGroup("g")
		log.Info("line", "a", Redacted(secret), slog.Group("b", "c", Redacted(secret)), "any", struct{ R Redacted }{secret})
		for _, r := range l.Recent() {
			if strings.Contains(fmt.Sprint(r.Attributes), secret) {
				t.Errorf("kept: %v", r.Attributes)
			}
		}
	}
	out := text.String() + object.String() + fmt.Sprintf("%v %s %+v %#v", Redacted(secret), Redacted(secret), []Redacted{secret}, Redacted(secret))
	if b, err := json.Marshal(map[string]any{"x": Redacted(secret)}); err == nil {
		out += string(b)
	}
	if strings.Contains(out, secret) {
		t.Errorf("shown:\n%s", out)
	}
	if got := ID("0123456789abcdef").String(); got != "01234567…" {
		t.Errorf("%s", got)
	}
}

func TestAttributes(t *testing.T) {
	l := New(Options{})
	l.Logger("phone").With(KeyRuntime, "demo").WithGroup("g").With("a", 1).Info("hello", "b", time.Second, slog.Group("c", "d", errors.New("e")))
	l.Logger("host").With("x", "y").With(keyComponent, "sessions").Info("moved")
	want := []Record{
		{Level: slog.LevelInfo, Component: "phone", Message: "hello", Attributes: map[string]string{"runtime": "demo", "g.a": "1", "g.b": "1s", "g.c.d": "e"}},
		{Level: slog.LevelInfo, Component: "sessions", Message: "moved", Attributes: map[string]string{"x": "y"}},
	}
	got := l.Recent()
	for i := range got {
		got[i].At = time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	l := New(Options{Output: &b, JSON: true})
	l.Logger("phone").With("x", 1).Info("hello", KeyCode, "c")
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "time")
	if diff := cmp.Diff(map[string]any{"level": "INFO", "msg": "hello", "component": "phone", "x": 1.0, "code": "c"}, m); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLevels(t *testing.T) {
	l := New(Options{})
	a, b := l.Logger("a"), l.Logger("b")
	count := func() [2]int {
		a.Debug("x")
		b.Debug("x")
		return [2]int{len(l.Recent("a")), len(l.Recent("b"))}
	}
	steps := []struct {
		name  string
		do    func()
		want  [2]int
		level string
	}{
		{"info by default", func() {}, [2]int{0, 0}, "info"},
		{"one component", func() { l.SetLevel("a", slog.LevelDebug) }, [2]int{1, 0}, ""},
		{"all of them", func() { l.SetLevel("", slog.LevelDebug) }, [2]int{2, 1}, ""},
		{"one less", func() { l.SetLevel("b", slog.LevelError) }, [2]int{3, 1}, ""},
	}
	for _, s := range steps {
		s.do()
		if got := count(); got != s.want {
			t.Errorf("%s: %v, want %v", s.name, got, s.want)
		}
	}
}

// TestRing: each component keeps its last records, whatever the others write.
func TestRing(t *testing.T) {
	l := New(Options{})
	l.Logger("quiet").Info("first")
	loud := l.Logger("loud")
	for n := range ringRecords + 10 {
		loud.Info(fmt.Sprint(n))
	}
	if got := l.Recent("quiet"); len(got) != 1 {
		t.Errorf("the quiet one has %d records", len(got))
	}
	got := l.Recent("loud")
	if len(got) != ringRecords || got[0].Message != "10" || got[len(got)-1].Message != fmt.Sprint(ringRecords+9) {
		t.Errorf("%d records from %s to %s", len(got), got[0].Message, got[len(got)-1].Message)
	}
	if diff := cmp.Diff([]string{"loud", "quiet"}, l.Components()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestFlood: a line that repeats is written a few times a minute, and how often it was left out is told.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		log := l.Logger("phone")
		for range 100 {
			log.Warn("slow", KeyCode, "x")
		}
		log.Warn("slow", KeyCode, "y") // another condition
		if n := len(l.Recent()); n != floodBurst+1 {
			t.Errorf("%d records", n)
		}
		time.Sleep(floodWindow)
		log.Warn("slow", KeyCode, "x")
		got := l.Recent()
		if s := got[len(got)-1].Attributes[KeySuppressed]; s != fmt.Sprint(100-floodBurst) {
			t.Errorf("suppressed %s", s)
		}
	})
}

// TestFollow: who follows gets what is kept and then everything else in order, and loses records rather than stopping
// whoever writes.
func TestFollow(t *testing.T) {
	l := New(Options{})
	log := l.Logger("a")
	log.Info("before")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started, hold := make(chan struct{}), make(chan struct{})
	var past []Record
	var got, lost int
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = l.Follow(ctx, nil, func(list []Record) error {
			past = list
			close(started)
			<-hold
			return nil
		}, func(r Record, n uint64) error {
			got++
			lost += int(n)
			if strings.HasPrefix(r.Message, "end") {
				cancel()
			}
			return nil
		})
	})
	<-started
	for n := range followBuffer + 50 {
		log.Info(fmt.Sprint("after ", n))
	}
	close(hold)
	for n := 0; ctx.Err() == nil; n++ { // until there is room for one
		log.Error(fmt.Sprint("end ", n))
	}
	wg.Wait()
	if len(past) != 1 || lost < 50 || got < followBuffer {
		t.Errorf("past %d, got %d, lost %d", len(past), got, lost)
	}
}

func TestRedirectStandard(t *testing.T) {
	defer log.SetOutput(os.Stderr)
	l := New(Options{Level: slog.LevelDebug})
	RedirectStandard(l.Logger("library"))
	log.Print("broker says /tmp/socket\n")
	got := l.Recent("library")
	if len(got) != 1 || got[0].Level != slog.LevelDebug || got[0].Attributes["line"] != "broker says /tmp/socket" {
		t.Errorf("%+v", got)
	}
}

func TestParseLevel(t *testing.T) {
	for _, name := range []string{"debug", "info", "warn", "error"} {
		if l, ok := ParseLevel(name); !ok || LevelName(l) != name {
			t.Errorf("%s: %v %v", name, l, ok)
		}
	}
	if _, ok := ParseLevel("loud"); ok {
		t.Error("loud is a level")
	}
}
