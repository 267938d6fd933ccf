package serve

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
)

// The handshake is the first line of standard output, and a single stray Println before it makes the start fail. So
// standard output is taken away as early as Go allows, while packages are still being initialised, but only in a process
// a host has started as a plugin: from then on the file descriptor leads to the log, also for C code and for children.
var (
	realStderr = os.Stderr
	realStdout = guardStdout()
)

func stderr() *os.File { return realStderr }

func guardStdout() *os.File {
	if os.Getenv(CookieKey) != CookieValue || os.Getenv("PLUGIN_PROTOCOL_VERSIONS") == "" {
		return nil
	}
	f, err := takeStdout()
	if err != nil {
		return nil
	}
	return f
}

// announce puts a filter between go-plugin, which prints the handshake to os.Stdout, and the real standard output: the
// handshake goes through, once and with the certificate, and whatever else is printed meanwhile goes to the log.
func announce(wg *sync.WaitGroup, certificate string) error {
	if realStdout == nil {
		var err error
		if realStdout, err = takeStdout(); err != nil {
			return err
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	os.Stdout = w
	wg.Go(func() { filterHandshake(r, realStdout, stderr(), certificate) })
	return nil
}

// filterHandshake copies lines until r ends.
func filterHandshake(r io.Reader, out, log io.Writer, certificate string) {
	in := bufio.NewReader(r)
	done := false
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case len(line) == 0:
		case !done && isHandshake(line):
			done = true
			_, _ = out.Write(withCertificate(line, certificate))
		default:
			_, _ = log.Write(append(bytes.TrimRight(line, "\n"), '\n'))
		}
		if err != nil {
			return
		}
	}
}

// isHandshake knows go-plugin's line: core version, protocol version, network, address, grpc, certificate.
func isHandshake(line []byte) bool {
	f := strings.Split(strings.TrimSpace(string(line)), "|")
	return len(f) >= 5 && f[0] == "1" && (f[2] == "unix" || f[2] == "tcp") && f[4] == "grpc"
}

// withCertificate fills in the sixth field, which go-plugin leaves empty when it did not make the certificate itself.
func withCertificate(line []byte, certificate string) []byte {
	f := strings.Split(strings.TrimRight(string(line), "\r\n"), "|")
	if certificate == "" || len(f) < 6 || f[5] != "" {
		return line
	}
	f[5] = certificate
	return []byte(strings.Join(f, "|") + "\n")
}
