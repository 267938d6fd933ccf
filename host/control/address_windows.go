package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
)

// door is what the file in the data directory says: where the host listens, and the token that proves that a client can
// read the file.
type door struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

// address is the file that tells where the host with this data directory listens.
func address(dir string) string { return filepath.Join(dir, "control.json") }

// listen opens a port on loopback and writes where it is.
func listen(dir string) (net.Listener, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	d := door{Address: l.Addr().String(), Token: rand.Text()}
	b, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(address(dir), b, 0o600)
	}
	if err != nil {
		_ = l.Close()
		return nil, "", err
	}
	return l, d.Token, nil
}

func dialer(dir string) (func(context.Context, string) (net.Conn, error), string, error) {
	b, err := os.ReadFile(address(dir))
	if err != nil {
		return nil, "", err
	}
	var d door
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, "", err
	}
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", d.Address)
	}, d.Token, nil
}
