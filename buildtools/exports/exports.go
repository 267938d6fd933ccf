// Package exports finds names that a package exports and nobody outside uses (TEST-03): helpers and record shapes stay
// private. It looks at rooms of the program, not at what plugin authors and other programs import; by syntax alone, so a
// method is nobody's business here. It holds no state.
package exports

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/buildtools/tree"
)

// rooms are the folders whose names must be used elsewhere; sdk, protocol and proto are for others.
var rooms = []string{"host/", "plugins/", "cmd/", "internal/"}

type name struct{ dir, id string }

// Check names what nobody uses.
func Check(t *tree.Tree) []string {
	used := map[name]bool{}
	for _, f := range t.Files {
		uses(f, used)
	}
	declared := map[name]token.Position{}
	shown := map[name]bool{} // types that stand in what another exported name says
	for _, f := range t.Files {
		if !f.Test && !f.Generated && room(f.Dir) {
			declares(t, f, declared, shown)
		}
	}
	var bad []string
	for n, pos := range declared {
		if !used[n] && !shown[n] {
			bad = append(bad, fmt.Sprintf("%s:%d: %s is exported, and nothing outside %s uses it", pos.Filename, pos.Line, n.id, n.dir))
		}
	}
	sort.Strings(bad)
	return bad
}

func room(dir string) bool {
	for _, r := range rooms {
		if strings.HasPrefix(dir, r) {
			return true
		}
	}
	return false
}

// uses collects pkg.Name from every file of another folder.
func uses(f tree.File, used map[name]bool) {
	names := map[string]string{} // local name → folder
	for _, s := range f.AST.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		dir, ok := tree.Ours(p)
		if !ok || dir == f.Dir {
			continue
		}
		local := path.Base(p)
		if s.Name != nil {
			local = s.Name.Name
		}
		names[local] = dir
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != "" {
				used[name{names[x.Name], s.Sel.Name}] = true
			}
		}
		return true
	})
}

func declares(t *tree.Tree, f tree.File, declared map[name]token.Position, shown map[name]bool) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			declared[name{f.Dir, id.Name}] = t.Fset.Position(id.Pos())
		}
	}
	mention := func(self string, n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name != self && id.IsExported() {
				shown[name{f.Dir, id.Name}] = true
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
			if d.Name.IsExported() {
				mention(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			if d.Tok == token.CONST && enum(d) {
				continue // members of a type are the type's business
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
					if s.Name.IsExported() {
						mention(s.Name.Name, s.Type)
					}
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
					if s.Type != nil && s.Names[0].IsExported() {
						mention("", s.Type)
					}
				}
			}
		}
	}
}

// enum reports a group of constants of one exported type.
func enum(d *ast.GenDecl) bool {
	first := d.Specs[0].(*ast.ValueSpec)
	id, ok := first.Type.(*ast.Ident)
	return ok && id.IsExported()
}
