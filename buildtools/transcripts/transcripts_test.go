package transcripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	page := func(name, body string) string {
		return "<!-- transcript " + name + " -->\n" + body + "\n<!-- /transcript -->\n"
	}
	for _, c := range []struct{ name, readme, want string }{
		{"same", page("demo.txt", Block("$ hi\nhello\n")), ""},
		{"differs", page("demo.txt", Block("$ hi\nhullo\n")), "demo.txt is not what"},
		{"never recorded", page("codex.txt", Block("x")), "was never recorded"},
		{"no end", "<!-- transcript demo.txt -->", "no end mark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Check(fstest.MapFS{"README.md": {Data: []byte(c.readme)}, Folder + "/demo.txt": {Data: []byte("$ hi\nhello\n")}})
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(got, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("got %q, want %q", all, c.want)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	readme := filepath.Join(dir, "README.md")
	if err := os.WriteFile(readme, []byte("before\n<!-- transcript demo.txt -->\nold\n<!-- /transcript -->\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Record(dir, "demo.txt", "$ hi\nhello\n"); err != nil {
		t.Fatal(err)
	}
	if bad, err := Check(os.DirFS(dir)); err != nil || len(bad) > 0 {
		t.Errorf("%v, %v", bad, err)
	}
	got, _ := os.ReadFile(readme)
	if !strings.HasPrefix(string(got), "before\n") || !strings.HasSuffix(string(got), "-->\nafter\n") {
		t.Errorf("the rest changed: %s", got)
	}
	if Record(dir, "other.txt", "x") == nil {
		t.Error("a transcript without a place was recorded")
	}
}
