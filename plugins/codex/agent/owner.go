package agent

import (
	"context"
	"net"
	"os"
	"path/filepath"
	goos "runtime"
	"strconv"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
)

// Evidence is what is known about a thread's owner outside this child.
type Evidence int

// Kinds of evidence. The zero value proves nothing.
const (
	OwnerUnknown   Evidence = iota // something was asked, or is there, and gave no answer
	OwnerElsewhere                 // somebody has it, idle or not
	OwnerNone                      // the desktop program says explicitly that nobody has it
	BrokerAbsent                   // there is no desktop program to ask; nothing was dispatched to it
)

// OwnerEvidence asks whether a program that does not hold Codex' writer lock the way this child does may own a thread.
// An answer that is not explicit fails closed.
type OwnerEvidence interface {
	Discover(ctx context.Context, codexHome, threadID string) Evidence
}

// auditedLocks are the versions whose writer lock is known to refuse a second writer even while the owner is idle.
var auditedLocks = map[string]bool{"0.153.3": true, "0.158.0-alpha.2.1": true, "0.171.0": true}

// brokerDial bounds the attempt to reach one broker socket.
const brokerDial = 1500 * time.Millisecond

// brokerProbe finds out whether a desktop broker is there at all. It does not speak with one: a broker that is there
// could own the thread, so its presence leaves the owner unknown.
type brokerProbe struct{}

// Discover implements OwnerEvidence.
func (brokerProbe) Discover(ctx context.Context, codexHome, _ string) Evidence {
	for _, path := range brokerSockets(codexHome) {
		if _, err := os.Lstat(path); err != nil {
			if os.IsNotExist(err) {
				continue
			}
			return OwnerUnknown
		}
		if goos.GOOS == "windows" { // a pipe exists only while somebody serves it
			return OwnerUnknown
		}
		d := net.Dialer{Timeout: brokerDial}
		conn, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			continue // a socket file that was left behind
		}
		_ = conn.Close()
		return OwnerUnknown
	}
	return BrokerAbsent
}

func brokerSockets(codexHome string) []string {
	if goos.GOOS == "windows" {
		return []string{`\\.\pipe\codex-ipc`}
	}
	return []string{
		filepath.Join(codexHome, "ipc", "ipc.sock"),
		filepath.Join(os.TempDir(), "codex-ipc", "ipc-"+strconv.Itoa(os.Getuid())+".sock"),
	}
}

// mayWrite decides whether this child may take a thread's writer lock. created: the thread was made here.
func (a *Agent) mayWrite(ctx context.Context, l *link, threadID string, created bool) error {
	switch a.o.Owner.Discover(ctx, l.server.CodexHome, threadID) {
	case OwnerNone:
		return nil
	case OwnerElsewhere:
		return codes.New(codes.SessionInUse)
	case BrokerAbsent:
		// The lock is atomic and refuses a second writer by itself, but only threads made here are known to be used
		// through it.
		if created && auditedLocks[l.version] {
			return nil
		}
	}
	return codes.New(codes.OwnerUnknown)
}
