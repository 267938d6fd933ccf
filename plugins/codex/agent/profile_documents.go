package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/codes"
)

const (
	maxDocument    = 128 << 10 // bytes of a document
	missingVersion = "missing" // version of a file that is not there
)

// document is a file a handle may read and, when editable, write.
type document struct {
	path     string
	name     string
	scope    string // user, project
	editable bool
}

type instructionRow struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Exists bool   `json:"exists"`
	Scope  string `json:"scope"`
}

// instructions lists AGENTS.md of the person and of the project, there or not, and the overrides that are there.
func (p *profile) instructions(ctx context.Context, c profileCall) (any, error) {
	dir, err := p.projectOf(ctx, c)
	if err != nil {
		return nil, err
	}
	rows := []instructionRow{}
	for _, place := range []struct{ dir, scope string }{{p.home(), "user"}, {dir, "project"}} {
		if place.dir == "" {
			continue
		}
		for _, name := range []string{"AGENTS.md", "AGENTS.override.md"} {
			path := filepath.Join(place.dir, name)
			info, err := os.Lstat(path)
			exists := err == nil && info.Mode().IsRegular()
			if !exists && name != "AGENTS.md" {
				continue
			}
			d := &document{path: path, name: name, scope: place.scope, editable: true}
			rows = append(rows, instructionRow{ID: p.name(handle{document: d}), Name: name, Exists: exists, Scope: place.scope})
		}
	}
	return rows, nil
}

type documentResult struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Content  string `json:"content"`
	Version  string `json:"version"`
	Editable bool   `json:"editable"`
	Missing  bool   `json:"missing"`
	Size     int    `json:"size"`
}

// document reads a file that a list has named.
func (p *profile) document(_ context.Context, c profileCall) (any, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	d, err := p.documentOf(in.ID)
	if err != nil {
		return nil, err
	}
	content, version, err := readDocument(d.path)
	if err != nil {
		return nil, err
	}
	return documentResult{
		ID: in.ID, Name: d.name, Content: string(content), Version: version, Editable: d.editable,
		Missing: version == missingVersion, Size: len(content),
	}, nil
}

func (p *profile) documentOf(id string) (*document, error) {
	h, _ := p.find(id)
	switch {
	case h.document != nil:
		return h.document, nil
	case h.skill != nil:
		return &document{path: h.skill.Path, name: cutUnits(h.skill.Name, maxName), editable: editableSkill(*h.skill)}, nil
	}
	return nil, codes.New(codes.ParametersInvalid)
}

// setDocument writes a file if it is still the one the person was shown: a new file beside it takes its place.
func (p *profile) setDocument(ctx context.Context, c profileCall) (any, error) {
	var in struct {
		ID      string `json:"id"`
		Content string `json:"content"`
		Version string `json:"version"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	d, err := p.documentOf(in.ID)
	if err != nil {
		return nil, err
	}
	content := []byte(in.Content)
	if !d.editable || !textual(content) {
		return nil, codes.New(codes.ParametersInvalid)
	}
	p.writes.Lock()
	defer p.writes.Unlock()
	if err := replaceDocument(d.path, content, in.Version); err != nil {
		return nil, err
	}
	written, version, err := readDocument(d.path)
	if err != nil || !bytes.Equal(written, content) {
		return nil, codes.New(codes.NotConfirmed).Because(err)
	}
	return documentResult{ID: in.ID, Name: d.name, Content: in.Content, Version: version, Editable: true, Size: len(content)}, nil
}

// textual reports that the content may be a document.
func textual(b []byte) bool {
	return len(b) <= maxDocument && utf8.Valid(b) && !bytes.Contains(b, []byte{0})
}

// readDocument reads a small regular text file with one name, in a directory that is no link. A missing file is empty.
func readDocument(path string) (content []byte, version string, err error) {
	if err := plainParent(path); err != nil {
		return nil, "", err
	}
	before, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingVersion, nil
	}
	if err != nil {
		return nil, "", codes.New(codes.StoreUnreadable).Because(err)
	}
	if !before.Mode().IsRegular() || !singleLink(before) {
		return nil, "", codes.New(codes.StoreUnreadable)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", codes.New(codes.StoreUnreadable).Because(err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil || !os.SameFile(before, opened) {
		return nil, "", codes.New(codes.StoreUnreadable).Because(err)
	}
	content, err = io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, "", codes.New(codes.StoreUnreadable).Because(err)
	}
	if !textual(content) {
		return nil, "", codes.New(codes.MessageTooLarge)
	}
	sum := sha256.Sum256(content)
	return content, hex.EncodeToString(sum[:]), nil
}

// plainParent refuses a directory that is a link or does not exist.
func plainParent(path string) error {
	info, err := os.Lstat(filepath.Dir(path))
	if err != nil || !info.IsDir() {
		return codes.New(codes.ProjectUnavailable).Because(err)
	}
	return nil
}

// replaceDocument checks the version last of all before the rename.
func replaceDocument(path string, content []byte, version string) error {
	mode := fs.FileMode(0o600)
	if info, err := os.Lstat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if _, now, err := readDocument(path); err != nil || now != version {
		if err != nil {
			return err
		}
		return codes.New(codes.VersionConflict)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".openphone-*")
	if err != nil {
		return codes.New(codes.StoreReadOnly).Because(err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return codes.New(codes.StoreReadOnly).Because(err)
	}
	if _, now, err := readDocument(path); err != nil || now != version {
		return codes.New(codes.VersionConflict).Because(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return codes.New(codes.NotConfirmed).Because(err)
	}
	return nil
}
