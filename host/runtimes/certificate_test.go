package runtimes

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"
)

// TestMutualTLS: the plugin's side believes the certificate from its environment and no other, and the host believes
// nobody before it knows the plugin's certificate.
func TestMutualTLS(t *testing.T) {
	host, env, err := mutualTLS()
	if err != nil {
		t.Fatal(err)
	}
	plugin, _, err := mutualTLS() // stands for the certificate a plugin makes
	if err != nil {
		t.Fatal(err)
	}
	stranger, _, err := mutualTLS()
	if err != nil {
		t.Fatal(err)
	}
	shown, ok := strings.CutPrefix(env, envClientCert+"=")
	if block, rest := pem.Decode([]byte(shown)); !ok || block == nil || len(rest) > 0 || strings.Contains(shown, "PRIVATE") {
		t.Fatal("the environment does not hold one certificate and nothing else")
	}
	accepted := x509.NewCertPool()
	if !accepted.AppendCertsFromPEM([]byte(shown)) {
		t.Fatal("the certificate cannot be read")
	}
	server := plugin.Clone()
	server.ClientCAs = accepted
	trusting := func(c *tls.Config) *tls.Config {
		c = c.Clone()
		c.RootCAs = x509.NewCertPool()
		leaf, err := x509.ParseCertificate(plugin.Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		c.RootCAs.AddCert(leaf)
		return c
	}
	for _, c := range []struct {
		name   string
		client *tls.Config
		works  bool
	}{
		{"the host", trusting(host), true},
		{"a stranger", trusting(stranger), false},
		{"the host before it knows the plugin", host, false},
		{"nobody", &tls.Config{RootCAs: trusting(host).RootCAs, ServerName: "localhost"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, b := net.Pipe()
			defer a.Close()
			defer b.Close()
			served := make(chan error, 1)
			go func() {
				s := tls.Server(b, server)
				err := s.Handshake()
				if err == nil {
					_, err = s.Write([]byte("x"))
				}
				b.Close()
				served <- err
			}()
			conn := tls.Client(a, c.client)
			err := conn.Handshake()
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			a.Close()
			if serr := <-served; (err == nil && serr == nil) != c.works {
				t.Errorf("works: client %v, server %v, want %v", err, serr, c.works)
			}
		})
	}
}
