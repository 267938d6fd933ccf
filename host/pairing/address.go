package pairing

import (
	"net"

	"github.com/openphone-host/openphone/protocol/codes"
)

// address is the host and port a phone shall connect to. Loopback is good for a client on this computer only, and an
// address that means "any" is good for nobody.
func (s *Service) address(r Request) (string, error) {
	host, port, err := net.SplitHostPort(r.Listen.String())
	if err != nil {
		return "", codes.New(codes.PairingNotReachable).Because(err)
	}
	ip := net.ParseIP(host)
	if r.Here {
		if ip == nil || ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return net.JoinHostPort(host, port), nil
	}
	if ip != nil && usable(ip) {
		return net.JoinHostPort(host, port), nil
	}
	if ip != nil && ip.IsUnspecified() {
		for _, a := range s.opt.Addresses() {
			if usable(a) {
				return net.JoinHostPort(a.String(), port), nil
			}
		}
	}
	return "", codes.New(codes.PairingNotReachable)
}

func usable(ip net.IP) bool { return ip.IsGlobalUnicast() } // neither loopback, unspecified, link-local nor multicast

// systemAddresses lists this computer's addresses: first the one its default route uses, then the others, private IPv4
// before the rest.
func systemAddresses() []net.IP {
	var first, private, rest []net.IP
	// Choosing a route for a datagram sends nothing. The address is one reserved for documentation.
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
			first = append(first, a.IP)
		}
		c.Close()
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !usable(n.IP) {
			continue
		}
		if n.IP.To4() != nil && n.IP.IsPrivate() {
			private = append(private, n.IP)
		} else {
			rest = append(rest, n.IP)
		}
	}
	return append(append(first, private...), rest...)
}
