package transcripts

import (
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
