package phone

import (
	"net"
	"sync"
)

// capped accepts at most a fixed number of connections at a time, so that connections which never say anything cannot
// use up the descriptors of the process.
type capped struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

func newCapped(l net.Listener, n int) *capped {
	return &capped{Listener: l, slots: make(chan struct{}, n), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (c *capped) Accept() (net.Conn, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.done:
		return nil, net.ErrClosed
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.slots
		return nil, err
	}
	return &cappedConn{Conn: conn, free: sync.OnceFunc(func() { <-c.slots })}, nil
}

// Close implements net.Listener.
func (c *capped) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Listener.Close()
}

type cappedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *cappedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
