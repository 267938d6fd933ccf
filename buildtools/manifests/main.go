// Command manifests checks the manifests of the OpenPhone protocol as the checkout has them: what openphone protocol
// validate says, what would break readers of the last release (-against, a folder with its files), and whether somebody
// wrote a name down a second time (OP-11). It changes nothing; it exits 1 with one line per finding.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/buildtools/tree"
	"github.com/openphone-host/openphone/protocol/openphone"
)

// names are the files; each is the only source of what it lists.
var names = []string{"openphone-commands.json", "openphone-events.json", "openphone-capabilities.json", "openphone-runtime.schema.json"}

func main() {
	log.SetFlags(0)
	dir := flag.String("root", ".", "root of the checkout")
	against := flag.String("against", "", "folder with the files of the last release")
	flag.Parse()
	root := os.DirFS(*dir)
	bad, err := check(root, *against)
	if err != nil {
		log.Fatal(err)
	}
	t, err := tree.Load(root)
	if err != nil {
		log.Fatal(err)
	}
	bad = append(bad, twice(t)...)
	for _, b := range bad {
		fmt.Println(b)
	}
	if len(bad) > 0 {
		os.Exit(1)
	}
}

// check validates the files and compares them with released ones; a file the release did not have is new.
func check(root fs.FS, against string) ([]string, error) {
	var files, released []openphone.File
	for _, n := range names {
		p := path.Join("protocol", n)
		data, err := fs.ReadFile(root, p)
		if err != nil {
			return nil, err
		}
		files = append(files, openphone.File{Name: p, Data: data})
		if against == "" {
			continue
		}
		if data, err := os.ReadFile(path.Join(against, n)); err == nil && len(data) > 0 {
			released = append(released, openphone.File{Name: "released " + n, Data: data})
		}
	}
	var bad []string
	for _, v := range append(openphone.Validate(files...), openphone.Compare(released, files)...) {
		bad = append(bad, v.String())
	}
	return bad, nil
}

// twice finds names of commands and events in code written by hand: there are constants for them. Tests may spell them,
// and so may the package that reads the manifests.
func twice(t *tree.Tree) []string {
	var bad []string
	for _, f := range t.Files {
		if f.Test || f.Generated || f.Dir == "protocol/openphone" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			c, command := openphone.Commands().Command(name)
			_, event := openphone.Events().Event(name)
			// An alias such as notifications.list may mean something else elsewhere.
			if command && c.Name == name && strings.HasPrefix(name, "openphone.") || event {
				bad = append(bad, fmt.Sprintf("%s:%d: %q is in a manifest already: use the constant of protocol/openphone", f.Path, t.Fset.Position(lit.Pos()).Line, name))
			}
			return true
		})
	}
	return bad
}
