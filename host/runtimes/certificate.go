package runtimes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// envClientCert names the variable in which go-plugin's automatic mutual TLS shows the host's certificate to the plugin.
const envClientCert = "PLUGIN_CLIENT_CERT"

// certificateFor is how long a certificate is valid: longer than any process lives. A clock that is set back by less than
// certificateBefore does no harm.
const (
	certificateFor    = 30 * 365 * 24 * time.Hour
	certificateBefore = 24 * time.Hour
)

// mutualTLS makes the host's half of go-plugin's automatic mutual TLS: a certificate for this one connection, which the
// plugin gets by its environment and answers with its own. go-plugin would make the same with a P-521 key, which takes a
// fifth of the time from a crash to the next prompt. Until the plugin's certificate is known, none is trusted.
func mutualTLS() (config *tls.Config, env string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, SerialNumber: serial,
		NotBefore: now.Add(-certificateBefore), NotAfter: now.Add(certificateFor),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	config = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, // the plugin is a client of HostService
		RootCAs:      x509.NewCertPool(),             // go-plugin replaces both by the plugin's certificate
		ClientCAs:    x509.NewCertPool(),
		MinVersion:   tls.VersionTLS12,
		ServerName:   "localhost",
	}
	return config, envClientCert + "=" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), nil
}
