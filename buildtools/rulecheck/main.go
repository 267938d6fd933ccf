// Command rulecheck compares the ids of docs/rules.md with the rules.Covers calls of the tests. A rule whose component
// does not exist yet is listed apart as planned. It runs no test; it exits 1 when a covered id does not exist.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"log"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/buildtools/tree"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("root", ".", "root of the checkout")
	only := flag.String("for", "", "only ids that begin with this, such as CX")
	flag.Parse()
	root := os.DirFS(*dir)
	t, err := tree.Load(root)
	if err != nil {
		log.Fatal(err)
	}
	doc, err := fs.ReadFile(root, "docs/rules.md")
	if err != nil {
		log.Fatal(err)
	}
	r := compare(ids(string(doc)), covered(t), func(folder string) bool {
		list, err := fs.ReadDir(root, folder)
		return err == nil && len(list) > 0
	}, *only)
	fmt.Print(r)
	if len(r.unknown) > 0 {
		os.Exit(1)
	}
}

var row = regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+) \|`)

// ids lists the rules in order.
func ids(doc string) []string {
	var all []string
	for _, m := range row.FindAllStringSubmatch(doc, -1) {
		all = append(all, m[1])
	}
	return all
}

// covered maps each id a test names to the places that name it.
func covered(t *tree.Tree) map[string][]string {
	found := map[string][]string{}
	for _, f := range t.Files {
		if !f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			c, ok := tree.Call(n, "rules", "Covers")
			if !ok {
				return true
			}
			for _, a := range c.Args[1:] {
				if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					id, _ := strconv.Unquote(lit.Value)
					found[id] = append(found[id], fmt.Sprintf("%s:%d", f.Path, t.Fset.Position(lit.Pos()).Line))
				}
			}
			return true
		})
	}
	return found
}

type report struct {
	total, done int
	missing     []string
	planned     map[string][]string // component → ids
	unknown     []string
}

// compare sorts every rule into covered, missing or planned.
func compare(all []string, found map[string][]string, exists func(folder string) bool, only string) report {
	r := report{planned: map[string][]string{}}
	known := map[string]bool{}
	for _, id := range all {
		known[id] = true
		if only != "" && !strings.HasPrefix(id, only) {
			continue
		}
		component := component(id)
		switch {
		case len(found[id]) > 0:
			r.done++
			r.total++
		case component != "" && !exists(component):
			r.planned[component] = append(r.planned[component], id)
		default:
			r.missing = append(r.missing, id)
			r.total++
		}
	}
	for id, places := range found {
		if !known[id] {
			r.unknown = append(r.unknown, id+" at "+strings.Join(places, ", "))
		}
	}
	sort.Strings(r.unknown)
	return r
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rules covered %d/%d\n", r.done, r.total)
	if len(r.missing) > 0 {
		fmt.Fprintf(&b, "missing: %s\n", strings.Join(r.missing, " "))
	}
	components := make([]string, 0, len(r.planned))
	for c := range r.planned {
		components = append(components, c)
	}
	sort.Strings(components)
	for _, c := range components {
		fmt.Fprintf(&b, "planned with %s: %s\n", c, strings.Join(r.planned[c], " "))
	}
	for _, u := range r.unknown {
		fmt.Fprintf(&b, "no such rule: %s\n", u)
	}
	return b.String()
}
