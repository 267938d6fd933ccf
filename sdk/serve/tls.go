package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"math/big"
	"time"
)

const (
	// envClientCert is where go-plugin's automatic mutual TLS shows the host's certificate to the plugin.
	envClientCert = "PLUGIN_CLIENT_CERT"
	// certificateBefore and certificateFor bound the plugin's own certificate: a clock that is a little off does no harm,
	// and no process lives longer.
	certificateBefore = 24 * time.Hour
	certificateFor    = 30 * 365 * 24 * time.Hour
)

// mutualTLS makes the plugin's half of go-plugin's automatic mutual TLS, and its certificate as the handshake shows it. It
// does what go-plugin would do, with a key on P-256: making the first one on P-521 takes a large part of a start. pem is
// the host's certificate; without one there is no TLS, and all three are zero.
func mutualTLS(pem string) (config *tls.Config, shown string, err error) {
	if pem == "" {
		return nil, "", nil
	}
	host := x509.NewCertPool()
	if !host.AppendCertsFromPEM([]byte(pem)) {
		return nil, "", errors.New("the host's certificate cannot be read")
	}
	own, err := newCertificate()
	if err != nil {
		return nil, "", err
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    host,
		RootCAs:      host, // the plugin is a client of HostService
		MinVersion:   tls.VersionTLS12,
		ServerName:   "localhost",
	}
	return config, base64.RawStdEncoding.EncodeToString(own.Certificate[0]), nil
}

// newCertificate makes a key and a certificate for localhost that vouches for itself.
func newCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, SerialNumber: serial,
		NotBefore: now.Add(-certificateBefore), NotAfter: now.Add(certificateFor),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
