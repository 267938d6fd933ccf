package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
)

func testSettings(t *testing.T, toml string) *settings {
	t.Helper()
	home := t.TempDir()
	if toml != "" {
		if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(toml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st, err := store.Open(t.Context(), home, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s, err := newSettings(t.Context(), home, st, obs.New(obs.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOfferedProjectsAreBoundedAndReal(t *testing.T) {
	s := testSettings(t, "")
	root := t.TempDir()
	for i := range maxProjects + 2 {
		dir := filepath.Join(root, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.offerProject(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	again := filepath.Join(root, "50")
	if err := s.offerProject(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	list := s.projects()
	if len(list) != maxProjects || list[0] != again {
		t.Errorf("%d projects, first %q; want %d and %q", len(list), list[0], maxProjects, again)
	}
	for _, bad := range []string{"", "relative", filepath.Join(root, "absent")} {
		if got := codes.Of(s.offerProject(t.Context(), bad)); got != codes.ProjectUnavailable {
			t.Errorf("offer of %q = %q, want project_unavailable", bad, got)
		}
	}
	if diff := cmp.Diff(list, s.projects()); diff != "" {
		t.Errorf("a refused offer changed the list (-want +got):\n%s", diff)
	}
}

func TestFileOutranksTheCommandLine(t *testing.T) {
	s := testSettings(t, "version = 1\n[runtimes.codex]\nenabled = false\n")
	if got := codes.Of(s.setEnabled(t.Context(), "codex", true)); got != codes.ConfigInvalid {
		t.Errorf("enable against the file = %q, want config_invalid", got)
	}
	if on := s.enabled("codex"); on == nil || *on {
		t.Errorf("codex enabled = %v, want the file's no", on)
	}
	if err := s.setEnabled(t.Context(), demoID, true); err != nil {
		t.Fatal(err)
	}
	if on := s.enabled(demoID); on == nil || !*on {
		t.Errorf("demo enabled = %v, want the command line's yes", on)
	}
}

func TestInstanceSecretsAreStableAndApart(t *testing.T) {
	s := testSettings(t, "")
	a, b := s.instanceSecret("codex"), s.instanceSecret("demo")
	if len(a) < 32 || a == b || a != s.instanceSecret("codex") {
		t.Errorf("secrets %q and %q: want two, stable, at least 32 characters", a, b)
	}
}
