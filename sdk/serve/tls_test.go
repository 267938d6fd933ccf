package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"testing"
)

// identity is a certificate as a host would make it, and its PEM.
func identity(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	c, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return c, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
}

func TestOnlyTheHostIsLetIn(t *testing.T) {
	t.Parallel()
	host, hostPEM := identity(t)
	stranger, _ := identity(t)
	server, shown, err := mutualTLS(hostPEM)
	if err != nil {
		t.Fatal(err)
	}
	der, err := base64.RawStdEncoding.DecodeString(shown)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		with []tls.Certificate
		ok   bool
	}{
		"the host":   {[]tls.Certificate{host}, true},
		"a stranger": {[]tls.Certificate{stranger}, false},
		"nobody":     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			roots := x509.NewCertPool()
			roots.AddCert(plugin)
			here, there := net.Pipe()
			client := tls.Client(here, &tls.Config{Certificates: tc.with, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12})
			done := make(chan error, 1)
			go func() { done <- client.Handshake(); _, _ = client.Read(make([]byte, 1)) }()
			err := tls.Server(there, server).Handshake()
			_ = there.Close()
			if (err == nil) != tc.ok {
				t.Errorf("the plugin's handshake: %v", err)
			}
			if err := <-done; tc.ok && err != nil {
				t.Errorf("the host's handshake: %v", err)
			}
		})
	}
}

func TestWithoutACertificateOfTheHost(t *testing.T) {
	t.Parallel()
	if c, shown, err := mutualTLS(""); c != nil || shown != "" || err != nil {
		t.Errorf("no certificate: %v, %q, %v, want nothing", c, shown, err)
	}
	if _, _, err := mutualTLS("nonsense"); err == nil {
		t.Error("an unreadable certificate is no error: it would mean no TLS")
	}
}
