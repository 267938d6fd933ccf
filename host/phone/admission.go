package phone

import "sync"

// Admission counts requests being dispatched and can close the door to new ones. One is shared by every way into the
// host, direct and relay (UPD-02). The zero value is open.
type Admission struct {
	mu       sync.Mutex
	inFlight int
	closed   bool
}

// Enter admits one request; leave must be called once. It fails when the door is closed.
func (a *Admission) Enter() (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, false
	}
	a.inFlight++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.inFlight--
	}), true
}

// TryClose closes the door if nothing is being dispatched and busy, asked after that count and under the same lock, says
// that no other work would be cut. A door that is closed already stays closed and counts as success. busy must not
// block and must not call back.
func (a *Admission) TryClose(busy func() bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return true
	}
	if a.inFlight > 0 || busy != nil && busy() {
		return false
	}
	a.closed = true
	return true
}

// Close closes the door whatever goes on: a stop that somebody insists on.
func (a *Admission) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// Reopen takes a closing back.
func (a *Admission) Reopen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = false
}

// Closed reports that new requests are refused.
func (a *Admission) Closed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// InFlight counts requests being dispatched.
func (a *Admission) InFlight() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight
}
