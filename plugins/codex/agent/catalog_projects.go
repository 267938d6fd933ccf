package agent

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	desktopState    = ".codex-global-state.json" // the desktop program's file in CODEX_HOME
	maxDesktopState = 8 << 20                    // bytes of it that are read; a larger one is not
	maxProjects     = 10_000                     // rows of the list
)

// ListProjects lists the directories saved in the desktop program, in its order, then those of the threads, newest
// first. The desktop's file is only read; without one, or with one that cannot be read, the threads are the list.
func (l *library) ListProjects(ctx context.Context) ([]runtime.Project, error) {
	if only := l.project(); only != "" {
		return []runtime.Project{{Path: only}}, nil
	}
	client, err := l.client(ctx)
	if err != nil {
		return nil, err
	}
	var list projectList
	for _, p := range desktopProjects(l.home()) {
		list.add(p)
	}
	s := &scan{library: l, native: client, seen: map[string]bool{}, available: map[string]bool{}}
	_, err = s.run(ctx, maxScan, func(batch []runtime.Session) error {
		for _, row := range batch {
			list.add(runtime.Project{Path: row.Ref.ProjectPath})
		}
		return nil
	})
	return list.rows, err
}

// projectList keeps the first row of each directory.
type projectList struct {
	rows []runtime.Project
	seen map[string]bool
}

func (p *projectList) add(row runtime.Project) {
	if !filepath.IsAbs(row.Path) || len(p.rows) >= maxProjects {
		return
	}
	key := canonicalPath(row.Path)
	if p.seen[key] {
		return
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[key] = true
	row.Path = filepath.Clean(row.Path)
	p.rows = append(p.rows, row)
}

// desktopProjects reads the roots a person saved in the desktop program. Anything odd in the file gives fewer rows.
func desktopProjects(home string) []runtime.Project {
	if home == "" {
		return nil
	}
	b, err := readBounded(filepath.Join(home, desktopState), maxDesktopState)
	if err != nil {
		return nil
	}
	var state map[string]json.RawMessage
	if json.Unmarshal(b, &state) != nil {
		return nil
	}
	var roots []string
	var labels map[string]string
	var local map[string]struct {
		Name      string   `json:"name"`
		RootPaths []string `json:"rootPaths"`
	}
	// Each member is read alone, so that a new form of one does not lose the others.
	_ = json.Unmarshal(state["electron-saved-workspace-roots"], &roots)
	_ = json.Unmarshal(state["electron-workspace-root-labels"], &labels)
	_ = json.Unmarshal(state["local-projects"], &local)
	var list []runtime.Project
	for _, path := range roots {
		list = append(list, runtime.Project{Path: path, Name: labels[path]})
	}
	ids := make([]string, 0, len(local))
	for id := range local {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		p := local[id]
		for _, path := range p.RootPaths {
			list = append(list, runtime.Project{Path: path, Name: p.Name})
		}
	}
	return list
}

// readBounded reads a regular file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, os.ErrInvalid
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, os.ErrInvalid
	}
	return b, nil
}
