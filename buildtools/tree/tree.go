// Package tree reads the sources of a checkout once, for every check that looks at them. It knows no rule itself.
// A Tree is read-only after Load and safe for concurrent use.
package tree

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Module is the path our own imports begin with.
const Module = "github.com/openphone-host/openphone"

// File is one parsed Go file.
type File struct {
	Path      string // slash separated, from the root
	Dir       string // "." for the root
	Test      bool
	Generated bool
	Lines     int
	AST       *ast.File
	Imports   map[string]token.Position // import path → where
}

// Tree is a checkout.
type Tree struct {
	FS    fs.FS
	Fset  *token.FileSet
	Files []File
}

// skipped folders hold nothing of ours, or nothing that is compiled here.
var skipped = map[string]bool{".git": true, ".bin": true, ".cache": true, "bin": true, "testdata": true, "node_modules": true}

// Load parses every Go file below the root.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{FS: root, Fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped[d.Name()] || strings.HasPrefix(d.Name(), "_") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(t.Fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		file := File{
			Path: p, Dir: path.Dir(p), Test: strings.HasSuffix(p, "_test.go"), Generated: ast.IsGenerated(f),
			Lines: strings.Count(string(src), "\n"), AST: f, Imports: map[string]token.Position{},
		}
		for _, s := range f.Imports {
			name, _ := strconv.Unquote(s.Path.Value)
			file.Imports[name] = t.Fset.Position(s.Pos())
		}
		t.Files = append(t.Files, file)
		return nil
	})
	return t, err
}

// Ours gives the folder of an import of ours.
func Ours(importPath string) (dir string, ok bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// Call reports whether the node calls pkg.name.
func Call(n ast.Node, pkg, name string) (*ast.CallExpr, bool) {
	c, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, false
	}
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return nil, false
	}
	id, ok := s.X.(*ast.Ident)
	return c, ok && id.Name == pkg
}
