package artifact

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/codes"
)

func TestLifetimes(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a.txt": "x", "b.txt": "x"})
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		image := []Image{{MIME: "image/png", Data: []byte{1}}}
		show := func() []Ref { return s.Project(s.Begin("s", ""), []string{root}, "`a.txt`", image).Refs }
		known := func(r Ref) bool { _, err := s.Open(t.Context(), "s", r.ID); return err == nil }
		refs := show()
		time.Sleep(imageLife - 1)
		if !known(refs[1]) {
			t.Error("the image went too early")
		}
		time.Sleep(time.Nanosecond)
		if known(refs[1]) || !known(refs[0]) {
			t.Error("after two minutes the image goes and the file stays")
		}
		time.Sleep(fileLife - imageLife - 1)
		if again := show(); !known(refs[0]) || again[0].ID != refs[0].ID || again[1].ID != refs[1].ID {
			t.Error("another reading renews both under the same ids")
		}
		time.Sleep(fileLife - 1)
		if !known(refs[0]) {
			t.Error("renewed, but gone")
		}
		time.Sleep(time.Nanosecond)
		if known(refs[0]) {
			t.Error("still there after its time")
		}
	})
}

func TestHandlesAreBounded(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range maxFiles + 10 {
		files[fmt.Sprint(i, ".txt")] = "x"
	}
	root := project(t, files)
	s := New(Options{})
	first := only(t, s, "s", root, "`0.txt`").ID
	second := only(t, s, "s", root, "`1.txt`").ID
	for i := 2; i < maxFiles; i++ {
		only(t, s, "s", root, fmt.Sprintf("`%d.txt`", i))
	}
	only(t, s, "s", root, "`0.txt`") // used again
	only(t, s, "s", root, fmt.Sprintf("`%d.txt`", maxFiles))
	if _, err := s.Open(t.Context(), "s", first); err != nil {
		t.Errorf("a file used again went: %v", err)
	}
	_, err := s.Open(t.Context(), "s", second)
	wantCode(t, err, codes.ArtifactUnknown)
	for i := range 40 {
		s.Project(s.Begin("s", ""), []string{root}, fmt.Sprintf("`%d.txt`", i), []Image{{MIME: "image/png", Data: []byte(fmt.Sprint(i))}})
	}
	for i := range 300 {
		s.Project(s.Begin(fmt.Sprint("s", i), ""), nil, "", []Image{{MIME: "image/png", Data: []byte{1}}})
	}
	if files, images := count(s); files > maxFiles || images != maxImages || len(s.pages) != maxPages {
		t.Errorf("%d files, %d images, %d pages", files, images, len(s.pages))
	}
}

func count(s *Shelf) (files, images int) {
	for _, h := range s.handles {
		if h.file != nil {
			files++
		} else {
			images++
		}
	}
	return files, images
}

func TestRetire(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-03", "STORE-04")
	root := project(t, map[string]string{"a.txt": "x"})
	s := New(Options{})
	mine, other := only(t, s, "s", root, "`a.txt`"), only(t, s, "t", root, "`a.txt`")
	if mine.ID == other.ID {
		t.Error("two conversations share an id")
	}
	slow := s.Begin("s", "")
	slowOther := s.Begin("t", "")
	s.Retire("s")
	for _, f := range []func() error{
		func() error { _, err := s.Open(t.Context(), "s", mine.ID); return err },
		func() error { _, err := s.Read(t.Context(), "s", mine.ID, 0); return err },
	} {
		wantCode(t, f(), codes.ArtifactUnknown)
	}
	if _, err := s.Open(t.Context(), "t", other.ID); err != nil {
		t.Errorf("another conversation: %v", err)
	}
	if p := s.Project(slow, []string{root}, "[a](a.txt)", nil); len(p.Refs) != 0 || p.Cut {
		t.Errorf("a reading begun before brings back %+v", p)
	}
	if p := s.Project(slowOther, []string{root}, "[a](a.txt)", nil); len(p.Refs) != 1 {
		t.Errorf("a reading of another conversation gives %+v", p)
	}
	only(t, s, "s", root, "`a.txt`")
	for i := range maxRetired {
		s.Retire(fmt.Sprint("x", i))
	}
	if p := s.Project(slowOther, []string{root}, "[a](a.txt)", nil); len(p.Refs) != 0 {
		t.Error("a reading that is too old to be judged is void")
	}
	if len(s.retired) != maxRetired {
		t.Errorf("%d retirements remembered", len(s.retired))
	}
}

func TestReread(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "ART-03")
	root := project(t, map[string]string{"a.txt": "x"})
	var s *Shelf
	var mu sync.Mutex
	var cursors []string
	var during func() error
	s = New(Options{Reread: func(_ context.Context, session, cursor string) error {
		mu.Lock()
		cursors = append(cursors, cursor)
		do := during
		mu.Unlock()
		r := s.Begin(session, cursor)
		if do != nil {
			if err := do(); err != nil {
				return err
			}
		}
		s.Project(r, []string{root}, "`a.txt`", nil)
		return nil
	}})
	s.Project(s.Begin("s", "page-2"), []string{root}, "`a.txt`", nil)
	id := only(t, New(Options{}), "s", root, "`a.txt`").ID
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.handles)
	}

	forget()
	if i, err := s.Open(t.Context(), "s", id); err != nil || i.Name != "a.txt" || i.Size != 1 {
		t.Errorf("found again: %+v %v", i, err)
	}
	if d := cmp.Diff([]string{"page-2"}, cursors); d != "" {
		t.Errorf("pages read (-want +got):\n%s", d)
	}
	if _, err := s.Open(t.Context(), "s", id); err != nil || len(cursors) != 1 {
		t.Errorf("a known one is read again: %v", err)
	}

	forget()
	entered, leave := make(chan struct{}), make(chan struct{})
	during = func() error { close(entered); <-leave; return nil }
	done := make(chan error, 1)
	go func() { _, err := s.Open(context.Background(), "s", id); done <- err }()
	<-entered
	_, err := s.Open(t.Context(), "s", id)
	wantCode(t, err, codes.ArtifactBusy)
	close(leave)
	must(t, <-done)

	forget()
	during = func() error { return errors.New("broken") }
	_, err = s.Open(t.Context(), "s", id)
	wantCode(t, err, codes.ArtifactUnknown)

	during = func() error { s.Retire("s"); return nil } // reset while it is looked for
	_, err = s.Open(t.Context(), "s", id)
	wantCode(t, err, codes.ArtifactUnknown)
	n := len(cursors)
	_, err = s.Open(t.Context(), "s", id)
	wantCode(t, err, codes.ArtifactUnknown)
	if len(cursors) != n {
		t.Error("a retired id is looked for")
	}
}
