package runtimes

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/internal/rules"
)

// TestChildren: what a dead plugin started ends with it, also when it hid in a group of its own; what its description
// allows to stay, stays.
func TestChildren(t *testing.T) {
	rules.Covers(t, "FAULT-13")
	reg := prometheus.NewRegistry()
	r := newRig(t, variant{"kept": "sleep-kept"}, func(o *Options) { o.Metrics = reg })
	r.until(Ready)
	kept := t.TempDir() + "/sleep-kept"
	b, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, b, 0o700); err != nil {
		t.Fatal(err)
	}
	pid := func(word string) int {
		n, err := strconv.Atoi(r.tell(word))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	child, escaped, stays := pid("child "+built), pid("escape "+built), pid("keep "+kept)
	t.Cleanup(func() { _ = syscall.Kill(stays, syscall.SIGKILL) })
	r.kill()
	r.generation(2)
	for name, p := range map[string]int{"the child": child, "the escaped one": escaped} {
		if alive(p) {
			t.Errorf("%s lives", name)
		}
	}
	if !alive(stays) {
		t.Error("the program that may stay was killed")
	}
	text, err := obs.MetricsText(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`openphone_runtimes_children_ended_total{runtime="test"} 2`, `openphone_runtimes_children_kept_total{runtime="test"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// alive: it runs and is not only waiting to be collected.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
