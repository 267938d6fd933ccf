// Command pins writes plugins.json: the SHA-256 of every plugin executable in a folder, by name without extension. The
// host starts a plugin it finds there only while its bytes are these; it knows nothing about what the plugins do.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "bin", "folder with the executables")
	flag.Parse()
	found, err := filepath.Glob(filepath.Join(*dir, "openphone-runtime-*"))
	if err != nil {
		log.Fatal(err)
	}
	pins := map[string]string{}
	for _, f := range found {
		b, err := os.ReadFile(f)
		if err != nil {
			log.Fatal(err)
		}
		sum := sha256.Sum256(b)
		pins[strings.TrimSuffix(filepath.Base(f), ".exe")] = hex.EncodeToString(sum[:])
	}
	out, err := json.MarshalIndent(pins, "", "  ")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*dir, "plugins.json"), append(out, '\n'), 0o644); err != nil {
		log.Fatal(err)
	}
}
