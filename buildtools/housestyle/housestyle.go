// Package housestyle checks what every Go file of the tree must be like: a package comment, a sensible name, a bounded
// length, no goroutine that nobody waits for, no sleeping or skipping test. It reads syntax only and holds no state.
package housestyle

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/openphone-host/openphone/buildtools/tree"
)

// maxLines is where a file stops being readable; 400 is the aim.
const maxLines = 800

// maxUntested is how long a package without a test of its own may be: a main, or names and constants.
const maxUntested = 150

// minComment is what a package comment needs at least to say what the package is for and must not know, in bytes.
const minComment = 80

// outside matches paths of a machine or of another checkout.
var outside = regexp.MustCompile("^[\"`](/root/|/srv/|/home/[a-z]+/\\.|\\.\\./\\.\\./\\.\\./\\.\\.)")

var vague = map[string]bool{"util": true, "utils": true, "common": true, "misc": true, "types": true, "models": true, "manager": true, "helpers": true}

// Check names every file that breaks the house style.
func Check(t *tree.Tree) []string {
	var bad []string
	comments, dirs := map[string]string{}, map[string]string{}
	code, tested := map[string]int{}, map[string]bool{}
	say := func(f tree.File, n ast.Node, format string, a ...any) {
		bad = append(bad, fmt.Sprintf("%s:%d: %s", f.Path, t.Fset.Position(n.Pos()).Line, fmt.Sprintf(format, a...)))
	}
	for _, f := range t.Files {
		if !f.Generated && f.Lines > maxLines {
			bad = append(bad, fmt.Sprintf("%s: %d lines: split it by responsibility, %d is the limit", f.Path, f.Lines, maxLines))
		}
		tested[f.Dir] = tested[f.Dir] || f.Test
		if !f.Test {
			if !f.Generated {
				code[f.Dir] += f.Lines
			}
			dirs[f.Dir] = f.AST.Name.Name
			if f.AST.Doc != nil && !f.Generated {
				comments[f.Dir] += f.AST.Doc.Text()
			}
			if vague[f.AST.Name.Name] {
				say(f, f.AST.Name, "package %s says nothing about what is in it", f.AST.Name.Name)
			}
		}
		if !f.Generated {
			inspect(f, say)
		}
	}
	for dir, name := range dirs {
		if strings.HasPrefix(dir, "proto/") {
			continue // the comment of a generated package is the .proto file's
		}
		want := "Package " + name
		if name == "main" {
			want = "Command "
		}
		switch c := comments[dir]; {
		case !strings.HasPrefix(c, want) || name == "main" && !strings.Contains(c, path.Base(dir)):
			bad = append(bad, fmt.Sprintf("%s: no package comment that begins with %q", dir, want))
		case len(c) < minComment:
			bad = append(bad, fmt.Sprintf("%s: the package comment must say what it is for, what it must not know, and its concurrency contract", dir))
		}
	}
	for dir, lines := range code {
		if lines > maxUntested && !tested[dir] && !strings.HasPrefix(dir, "buildtools") && !strings.HasPrefix(dir, "docs") {
			bad = append(bad, fmt.Sprintf("%s: %d lines and no test beside them (TEST-02)", dir, lines))
		}
	}
	sort.Strings(bad)
	return bad
}

func inspect(f tree.File, say func(tree.File, ast.Node, string, ...any)) {
	bubbles := 0
	var walk func(ast.Node) bool
	walk = func(n ast.Node) bool {
		if c, ok := tree.Call(n, "synctest", "Test"); ok {
			bubbles++
			for _, a := range c.Args {
				ast.Inspect(a, walk)
			}
			bubbles--
			return false
		}
		if g, ok := n.(*ast.GoStmt); ok && !f.Test && !strings.HasPrefix(f.Dir, "buildtools/e2e") {
			say(f, g, "a naked go statement: use errgroup or sync.WaitGroup.Go, so that somebody waits for it")
		}
		if !f.Test {
			return true
		}
		if c, ok := tree.Call(n, "time", "Sleep"); ok && bubbles == 0 {
			say(f, c, "a test that sleeps: use testing/synctest, or wait for what is meant")
		}
		if c, ok := tree.Call(n, "os", "UserHomeDir"); ok {
			say(f, c, "a test that looks into a home directory: the suite is self-contained (TEST-01)")
		}
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && outside.MatchString(l.Value) {
			say(f, l, "a test that reaches outside the checkout: the suite is self-contained (TEST-01)")
		}
		for _, name := range []string{"Skip", "Skipf", "SkipNow"} {
			for _, v := range []string{"t", "tb", "b"} {
				if c, ok := tree.Call(n, v, name); ok {
					say(f, c, "a test that skips itself proves nothing: give it a build tag (TEST-04)")
				}
			}
		}
		return true
	}
	ast.Inspect(f.AST, walk)
}
