package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/openphone-host/openphone/protocol/codes"
)

// secretsName is the file beside the configuration that holds plugins' secret settings, in a table for each runtime. Only
// its owner may be able to read it.
const secretsName = "secrets.toml"

// readSecrets reads the file; one that does not exist holds nothing. What it says never gets into an error.
func readSecrets(path string) (map[string]map[string]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	wrong := func(what string) error { return invalid(secretsName + " " + what) }
	if err != nil {
		return nil, codes.New(codes.ConfigInvalid, "where", secretsName+" cannot be read").Because(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, wrong("can be read by others: run chmod 600 on it")
	}
	if info.Size() > maxFile {
		return nil, wrong("is larger than 1 MiB")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, codes.New(codes.ConfigInvalid, "where", secretsName+" cannot be read").Because(err)
	}
	var out map[string]map[string]string
	if err := toml.NewDecoder(bytes.NewReader(b)).Decode(&out); err != nil {
		var e *toml.DecodeError
		if errors.As(err, &e) {
			row, column := e.Position()
			return nil, wrong(fmt.Sprintf("is not valid at line %d, column %d", row, column))
		}
		return nil, wrong("is not valid")
	}
	for _, id := range sortedKeys(out) {
		if !instanceID.MatchString(id) {
			return nil, wrong("has a table that is no runtime")
		}
	}
	return out, nil
}

// secretOf is the secret a dotted key stands for; empty: it stands for none.
func secretOf(c *Config, key string) string {
	rest, ok := strings.CutPrefix(key, "runtimes.")
	if !ok {
		return ""
	}
	id, name, ok := strings.Cut(rest, ".settings.")
	if !ok {
		return ""
	}
	return c.Runtimes[id].secrets[name]
}
