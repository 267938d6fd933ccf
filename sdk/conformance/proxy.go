package conformance

import (
	"net"
	"path/filepath"
	"sync"
)

// faultProxy carries the bytes between host and plugin and spoils it on request. It knows nothing of what it carries,
// which is encrypted anyway.
type faultProxy struct {
	dir string

	mu            sync.Mutex
	network, addr string
	lis           net.Listener
	conns         map[net.Conn]bool
	deafH, deafP  bool // bytes for the host, or for the plugin, vanish
	wg            sync.WaitGroup
}

func newFaultProxy(dir string) *faultProxy {
	return &faultProxy{dir: dir, conns: map[net.Conn]bool{}}
}

// open begins to listen in front of the plugin's address and gives the address to use instead.
func (f *faultProxy) open(network, addr string) (string, string, error) {
	listenAt := "127.0.0.1:0"
	if network == "unix" {
		listenAt = filepath.Join(f.dir, "proxy")
	}
	lis, err := net.Listen(network, listenAt)
	if err != nil {
		return "", "", err
	}
	f.network, f.addr, f.lis = network, addr, lis
	f.wg.Go(f.accept)
	return network, lis.Addr().String(), nil
}

func (f *faultProxy) accept() {
	for {
		host, err := f.lis.Accept()
		if err != nil {
			return
		}
		plugin, err := net.Dial(f.network, f.addr)
		if err != nil {
			_ = host.Close()
			continue
		}
		f.mu.Lock()
		f.conns[host], f.conns[plugin] = true, true
		f.mu.Unlock()
		f.wg.Go(func() { f.pump(plugin, host, &f.deafP) })
		f.wg.Go(func() { f.pump(host, plugin, &f.deafH) })
	}
}

// pump copies from src to dst until either ends; while deaf is set, what it reads vanishes.
func (f *faultProxy) pump(dst, src net.Conn, deaf *bool) {
	defer f.forget(dst, src)
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		f.mu.Lock()
		vanish := *deaf
		f.mu.Unlock()
		if n > 0 && !vanish {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (f *faultProxy) forget(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(f.conns, c)
	}
}

// deafen lets bytes for the host, for the plugin, or both vanish from now on.
func (f *faultProxy) deafen(host, plugin bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deafH, f.deafP = host, plugin
}

// cut closes every connection; the next one is carried faithfully.
func (f *faultProxy) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deafH, f.deafP = false, false
	for c := range f.conns {
		_ = c.Close()
	}
}

func (f *faultProxy) close() {
	if f.lis == nil {
		return
	}
	_ = f.lis.Close()
	f.cut()
	f.wg.Wait()
}
