package artifact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
)

// project is a directory with the given files, by path and content.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, content := range files {
		p := filepath.Join(root, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		must(t, os.WriteFile(p, []byte(content), 0o600))
	}
	return root
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	if got := codes.Of(err); got != code {
		t.Errorf("code %q (%v), want %q", got, err, code)
	}
}

// only projects a text and gives the id of its one file.
func only(t testing.TB, s *Shelf, session, root, text string) Ref {
	t.Helper()
	p := s.Project(s.Begin(session, ""), []string{root}, text, nil)
	if len(p.Refs) != 1 {
		t.Fatalf("%q: %+v, want one file", text, p)
	}
	return p.Refs[0]
}

func TestDeliverable(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-01")
	outside := project(t, map[string]string{"secret.txt": "x", "dir/a.txt": "x"})
	root := project(t, map[string]string{
		"a.pdf": "x", "out/r.PDF": "x", "my file (1).txt": "x", "50%25.txt": "literal", "ü.md": "x", "empty.txt": "",
		"x.exe": "x", "noext": "x", ".hidden.txt": "x", ".git/a.txt": "x", "token.json": "x", "Tokens-old.txt": "x", "auth.txt": "x",
		"config/a.txt": "x", "secrets.txt": "x", "CREDENTIALS.json": "x", "AGENTS.md": "x", "docs/memory.md": "x",
		"authors.txt": "x", "tokenizer.py": "x", "memory.txt": "x", "configure.json": "x", "pic.svg": "x", "p.Jpeg": "x",
		"linked.txt": "x", "dir.txt/a.txt": "x",
	})
	must(t, os.WriteFile(filepath.Join(root, "big.zip"), make([]byte, maxFile+1), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "largest.zip"), make([]byte, maxFile), 0o600))
	must(t, os.Symlink(filepath.Join(root, "a.pdf"), filepath.Join(root, "link.pdf")))
	must(t, os.Symlink(filepath.Join(root, "out"), filepath.Join(root, "outlink")))
	must(t, os.Symlink(filepath.Join(outside, "dir"), filepath.Join(root, "away")))
	must(t, os.Link(filepath.Join(root, "linked.txt"), filepath.Join(root, "other.txt")))
	pipe(t, filepath.Join(root, "pipe.txt"))
	home := filepath.Dir(root)

	for target, want := range map[string]string{ // name and type; empty: not delivered
		"a.pdf": "a.pdf application/pdf false", "./a.pdf": "a.pdf application/pdf false", "out/../a.pdf": "a.pdf application/pdf false",
		"out/r.PDF": "r.PDF application/pdf false", root + "/a.pdf": "a.pdf application/pdf false", "empty.txt": "empty.txt text/plain false",
		"file://" + root + "/my%20file%20(1).txt": "my file (1).txt text/plain false", "my%20file%20(1).txt": "my file (1).txt text/plain false",
		"50%25.txt": "50%25.txt text/plain false", "%C3%BC.md": "ü.md text/markdown false",
		"~/" + filepath.Base(root) + "/a.pdf": "a.pdf application/pdf false",
		"authors.txt":                         "authors.txt text/plain false", "tokenizer.py": "tokenizer.py text/plain false", "memory.txt": "memory.txt text/plain false",
		"configure.json": "configure.json application/json false", "pic.svg": "pic.svg image/svg+xml false", "p.Jpeg": "p.Jpeg image/jpeg true",
		"largest.zip": "largest.zip application/zip false",

		"missing.pdf": "", "x.exe": "", "noext": "", ".hidden.txt": "", ".git/a.txt": "", "token.json": "", "Tokens-old.txt": "",
		"auth.txt": "", "config/a.txt": "", "secrets.txt": "", "CREDENTIALS.json": "", "AGENTS.md": "", "docs/memory.md": "",
		"big.zip": "", "link.pdf": "", "outlink/r.PDF": "", "away/a.txt": "", "linked.txt": "", "other.txt": "", "pipe.txt": "", "dir.txt": "",
		"../" + filepath.Base(outside) + "/secret.txt": "", outside + "/secret.txt": "", "file://host" + root + "/a.pdf": "",
		"https://example.org/a.pdf": "", "data:a.pdf": "", "a.pdf\x00.txt": "", "a\n.pdf": "", "%2e%2e/" + filepath.Base(outside) + "/secret.txt": "",
		"a.pdf#L1": "", "~other/a.pdf": "", "": "", ".": "", "/": "",
	} {
		s := New(Options{Home: home})
		got := ""
		if h := s.deliver("s", target, resolve([]string{root})); h != nil {
			got = fmt.Sprint(h.Name, " ", h.MIME, " ", raster(h.MIME))
		}
		if got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	one, two := project(t, map[string]string{"a.txt": "1", "both.txt": "1"}), project(t, map[string]string{"b.txt": "2", "both.txt": "22"})
	link := filepath.Join(project(t, nil), "link")
	must(t, os.Symlink(one, link))
	s := New(Options{})
	p := s.Project(s.Begin("s", ""), []string{one, two}, "`a.txt` `b.txt` `both.txt`", nil)
	var sizes []int64
	for _, r := range p.Refs {
		i, err := s.Open(t.Context(), "s", r.ID)
		must(t, err)
		sizes = append(sizes, i.Size)
	}
	if d := cmp.Diff([]int64{1, 1, 1}, sizes); d != "" {
		t.Errorf("sizes: the first directory goes first (-want +got):\n%s", d)
	}
	// The root itself may be reached through a link, and be named either way.
	a, b := only(t, s, "s", link, link+"/a.txt"[1:]+"\n`"+link+"/a.txt`"), only(t, s, "s", link, "`"+one+"/a.txt`")
	if a.ID != b.ID {
		t.Error("one file, two ids")
	}
	for _, roots := range [][]string{nil, {"relative"}, {"/does/not/exist"}, {"", "", "", "", one}} {
		if p := s.Project(s.Begin("s", ""), roots, "`a.txt`", nil); len(p.Refs) != 0 {
			t.Errorf("roots %q deliver %+v", roots, p.Refs)
		}
	}
}

func TestProject(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-01", "ART-03")
	root := project(t, map[string]string{"out/r.pdf": "x", "p.png": "x"})
	s := New(Options{})
	text := "Done:\n\n[r](out/r.pdf) and again [it](./out/r.pdf), ![p](p.png)\n\n[gone](no.pdf) `out/r.pdf`"
	got := s.Project(s.Begin("s", ""), []string{root}, text, nil)
	want := Projection{
		Refs: []Ref{{MIME: "application/pdf", Name: "r.pdf"}, {Image: true, MIME: "image/png", Name: "p.png"}},
		Cut:  true, Display: "Done:\n\n and again , \n\n[gone](no.pdf) `out/r.pdf`",
	}
	for i := range got.Refs {
		if !strings.HasPrefix(got.Refs[i].ID, "file_") || len(got.Refs[i].ID) != 5+64 {
			t.Errorf("id %q", got.Refs[i].ID)
		}
		got.Refs[i].ID = ""
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("projection (-want +got):\n%s", d)
	}
	if p := s.Project(s.Begin("s", ""), []string{root}, "`p.png`", nil); p.Cut || p.Display != "" || len(p.Refs) != 1 {
		t.Errorf("inline code: %+v, want a file and the text as it is", p)
	}
	if p := s.Project(s.Begin("s", ""), []string{root}, "[r](out/r.pdf)", nil); !p.Cut || p.Display != "" {
		t.Errorf("nothing but a link: %+v", p)
	}
	files := map[string]string{}
	var b strings.Builder
	for i := range 20 {
		files[fmt.Sprint(i, ".txt")] = "x"
		fmt.Fprintf(&b, "[%d](%d.txt)\n", i, i)
	}
	p := s.Project(s.Begin("s", ""), []string{project(t, files)}, b.String(), nil)
	if len(p.Refs) != maxFilesOf || !strings.HasPrefix(p.Display, "[16](16.txt)") {
		t.Errorf("%d files, display %q", len(p.Refs), p.Display)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-02")
	data, err := base64.StdEncoding.DecodeString("iVBORw0KGgo=")
	must(t, err)
	const want = "image_c9ac7d2ed9b76ad7765ba0bbf43ce43ea04036c94350c30afd49eda26d8fff18"
	if got := imageID("s-1", "image/png", data); got != want {
		t.Errorf("id %s, want %s", got, want)
	}
	s := New(Options{})
	p := s.Project(s.Begin("s-1", ""), nil, "", []Image{
		{MIME: "image/png", Data: data}, {MIME: "image/png", Data: make([]byte, maxImage+1)}, {MIME: "image/bmp", Data: data}, {MIME: "image/gif"},
	})
	if len(p.Refs) != 4 || p.Refs[0].ID != want || !bytes.Equal(p.Refs[0].Data, data) {
		t.Fatalf("%+v", p.Refs)
	}
	for _, r := range p.Refs[1:] {
		if r.ID != "" || r.Data != nil || !r.Image {
			t.Errorf("an image beyond the limits: %+v, want its row without content", r)
		}
	}
	piece, err := s.Read(t.Context(), "s-1", want, 0)
	if err != nil || !bytes.Equal(piece.Data, data) || !piece.Done {
		t.Errorf("read %+v %v", piece, err)
	}
	var many []Image
	for i := range 20 {
		many = append(many, Image{MIME: "image/png", Data: []byte{byte(i)}})
	}
	if p := s.Project(s.Begin("s", ""), nil, "", many); p.Refs[maxImagesOf-1].ID == "" || p.Refs[maxImagesOf].ID != "" {
		t.Error("the 16th image has no id, or the 17th has one")
	}
	// 20 MiB together: the oldest go.
	s = New(Options{})
	var ids []string
	for i := range 5 {
		big := make([]byte, maxImage)
		big[0] = byte(i)
		ids = append(ids, s.Project(s.Begin("s", ""), nil, "", []Image{{MIME: "image/png", Data: big}}).Refs[0].ID)
	}
	for i, id := range ids {
		_, err := s.Open(t.Context(), "s", id)
		if want := i > 0; (err == nil) != want {
			t.Errorf("image %d: %v, kept %v", i, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-03")
	content := strings.Repeat("0123456789", 30000)
	root := project(t, map[string]string{"a.txt": content, "e.txt": "", "exact.txt": content[:2*pieceSize]})
	s := New(Options{})
	id := only(t, s, "s", root, "`a.txt`").ID
	var got []byte
	var sizes []int
	for offset := int64(0); ; {
		p, err := s.Read(t.Context(), "s", id, offset)
		must(t, err)
		if p.Offset != offset || p.Total != 300_000 {
			t.Errorf("piece %d of %d", p.Offset, p.Total)
		}
		got, sizes = append(got, p.Data...), append(sizes, len(p.Data))
		if offset += int64(len(p.Data)); p.Done {
			break
		}
	}
	if d := cmp.Diff([]int{131072, 131072, 37856}, sizes); d != "" || string(got) != content {
		t.Errorf("same content %v, sizes (-want +got):\n%s", string(got) == content, d)
	}
	for _, offset := range []int64{1, -pieceSize, -1, 3 * pieceSize, 1 << 62} {
		_, err := s.Read(t.Context(), "s", id, offset)
		wantCode(t, err, codes.ArtifactOffset)
	}
	if p, err := s.Read(t.Context(), "s", only(t, s, "s", root, "`e.txt`").ID, 0); err != nil || !p.Done || len(p.Data) != 0 {
		t.Errorf("an empty file: %+v %v", p, err)
	}
	exact := only(t, s, "s", root, "`exact.txt`").ID
	if p, err := s.Read(t.Context(), "s", exact, pieceSize); err != nil || !p.Done {
		t.Errorf("the last whole piece: %v %v", p.Done, err)
	}
	if p, err := s.Read(t.Context(), "s", exact, 2*pieceSize); err != nil || !p.Done || len(p.Data) != 0 {
		t.Errorf("at the end: %+v %v", p, err)
	}
	for session, id := range map[string]string{"other": id, "s": "file_" + strings.Repeat("0", 64)} {
		_, err := s.Read(t.Context(), session, id, 0)
		wantCode(t, err, codes.ArtifactUnknown)
		_, err = s.Open(t.Context(), session, id)
		wantCode(t, err, codes.ArtifactUnknown)
	}
}

func TestChangedFiles(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-03")
	for _, c := range []struct {
		name   string
		change func(t *testing.T, path string)
		code   string
	}{
		{"appended", func(t *testing.T, p string) {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString("more")
			must(t, errors.Join(err, f.Close()))
		}, codes.ArtifactChanged},
		{"written with its old time", func(t *testing.T, p string) {
			i, err := os.Stat(p)
			must(t, err)
			must(t, os.WriteFile(p, []byte("other"), 0o600))
			must(t, os.Chtimes(p, i.ModTime(), i.ModTime()))
		}, codes.ArtifactChanged},
		{"replaced", func(t *testing.T, p string) {
			must(t, os.WriteFile(p+".new", []byte("12345"), 0o600))
			must(t, os.Rename(p+".new", p))
		}, codes.ArtifactChanged},
		{"made a link", func(t *testing.T, p string) {
			must(t, os.Rename(p, p+".old"))
			must(t, os.Symlink(p+".old", p))
		}, codes.ArtifactUnknown},
		{"linked a second time", func(t *testing.T, p string) { must(t, os.Link(p, p+".2")) }, codes.ArtifactUnknown},
		{"removed", func(t *testing.T, p string) { must(t, os.Remove(p)) }, codes.ArtifactUnknown},
		{"directory made a link", func(t *testing.T, p string) {
			d := filepath.Dir(p)
			must(t, os.Rename(d, d+".old"))
			must(t, os.Symlink(d+".old", d))
		}, codes.ArtifactUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := project(t, map[string]string{"d/a.txt": "12345"})
			s := New(Options{})
			id := only(t, s, "s", root, "`d/a.txt`").ID
			_, err := s.Read(t.Context(), "s", id, 0)
			must(t, err)
			c.change(t, filepath.Join(root, "d", "a.txt"))
			_, err = s.Read(t.Context(), "s", id, 0)
			wantCode(t, err, c.code)
			_, err = s.Open(t.Context(), "s", id)
			wantCode(t, err, c.code)
		})
	}
}
