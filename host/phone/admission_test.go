package phone

import (
	"testing"

	"github.com/openphone-host/openphone/internal/rules"
)

func TestCase32AdmissionClosesOnlyWhenNothingIsDispatched(t *testing.T) {
	rules.Covers(t, "UPD-02")
	w := start(t, nil)
	s := w.connect("a")
	s.request("hold", "{}")
	<-w.d.held
	asked := false
	if w.l.admission.TryClose(func() bool { asked = true; return false }) {
		t.Error("closed with a request in flight")
	}
	if asked {
		t.Error("other work was counted although a request was in flight")
	}
	close(w.d.release)
	if r := s.read(); !r.OK {
		t.Fatal(r.Error)
	}
	eventually(t, func() bool { return w.l.admission.InFlight() == 0 })
	if w.l.admission.TryClose(func() bool { return true }) {
		t.Error("closed with a run active")
	}
	if !w.l.admission.TryClose(func() bool { return false }) {
		t.Error("not closed when idle")
	}
	if !w.l.admission.TryClose(func() bool { return true }) {
		t.Error("a closed door counts as failure")
	}
	before := len(w.d.called())
	for _, method := range []string{"health", "echo"} {
		if r := s.ask(method, "{}"); r.OK || r.Error.Message != "The host is restarting. Reconnect in a moment." {
			t.Errorf("%s while draining answered %+v", method, r)
		}
	}
	fresh := w.open("demo")
	if r := fresh.ask("connect", `{"token":"`+token("b")+`"}`); r.OK {
		t.Error("connect succeeded while draining")
	}
	if n := len(w.d.called()); n != before {
		t.Errorf("%d calls were dispatched while draining", n-before)
	}
	w.l.admission.Reopen()
	if r := fresh.ask("echo", "{}"); !r.OK {
		t.Error("still closed after reopening")
	}
}
