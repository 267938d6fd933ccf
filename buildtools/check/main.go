// Command check runs the checks that compilers and linters do not have: doors between rooms, house style, comments of
// RPCs, the map of the contract, and the transcripts in README. It changes nothing; it exits 1 with one line per finding.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/openphone-host/openphone/buildtools/contractmap"
	"github.com/openphone-host/openphone/buildtools/exports"
	"github.com/openphone-host/openphone/buildtools/housestyle"
	"github.com/openphone-host/openphone/buildtools/importban"
	"github.com/openphone-host/openphone/buildtools/protodoc"
	"github.com/openphone-host/openphone/buildtools/transcripts"
	"github.com/openphone-host/openphone/buildtools/tree"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("root", ".", "root of the checkout")
	flag.Parse()
	root := os.DirFS(*dir)
	t, err := tree.Load(root)
	if err != nil {
		log.Fatal(err)
	}
	known, err := registry(root)
	if err != nil {
		log.Fatal(err)
	}
	bad := append(importban.Check(t), housestyle.Check(t)...)
	bad = append(bad, exports.Check(t)...)
	for _, check := range []func() ([]string, error){
		func() ([]string, error) { return protodoc.Check(root, func(c string) bool { return known[c] }) },
		func() ([]string, error) { return contractmap.Check(root) },
		func() ([]string, error) { return transcripts.Check(root) },
	} {
		found, err := check()
		if err != nil {
			log.Fatal(err)
		}
		bad = append(bad, found...)
	}
	for _, b := range bad {
		fmt.Println(b)
	}
	if len(bad) > 0 {
		os.Exit(1)
	}
}

// registry reads the names of the error codes.
func registry(root fs.FS) (map[string]bool, error) {
	raw, err := fs.ReadFile(root, "protocol/codes.json")
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Code string `json:"code"`
	}
	known := map[string]bool{}
	err = json.Unmarshal(raw, &rows)
	for _, r := range rows {
		known[r.Code] = true
	}
	return known, err
}
