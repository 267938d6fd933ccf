package serve

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

func TestOnlyTheHandshakeReachesStandardOutput(t *testing.T) {
	t.Parallel()
	line := "1|1|unix|/tmp/x|grpc|MIIC\n"
	var out, log bytes.Buffer
	filterHandshake(strings.NewReader("hello\n1|2|3\n"+line+"late\n"+line+"without end"), &out, &log, "")
	if out.String() != line {
		t.Errorf("standard output got %q, want the handshake once", out.String())
	}
	if want := "hello\n1|2|3\nlate\n" + line + "without end\n"; log.String() != want {
		t.Errorf("the log got %q, want %q", log.String(), want)
	}
}

func TestTheHandshakeGetsItsCertificate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ line, certificate, want string }{
		"filled in":             {"1|1|unix|/s|grpc|\n", "MIIB", "1|1|unix|/s|grpc|MIIB\n"},
		"before what follows":   {"1|1|unix|/s|grpc||true\n", "MIIB", "1|1|unix|/s|grpc|MIIB|true\n"},
		"there already":         {"1|1|unix|/s|grpc|MIIA\n", "MIIB", "1|1|unix|/s|grpc|MIIA\n"},
		"without TLS":           {"1|1|unix|/s|grpc|\n", "", "1|1|unix|/s|grpc|\n"},
		"an old one without it": {"1|1|unix|/s|grpc\n", "MIIB", "1|1|unix|/s|grpc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(withCertificate([]byte(tc.line), tc.certificate)); got != tc.want {
				t.Errorf("line %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLogLinesAreWhatTheHostReads(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	slog.New(newHandler(&b, slog.LevelDebug)).Warn("child ended", "status", 3)
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["@message"] != "child ended" || got["@level"] != "warn" || got["status"] != 3.0 || got["@timestamp"] == nil {
		t.Errorf("line %s", b.String())
	}
}
