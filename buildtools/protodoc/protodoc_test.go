package protodoc

import (
	"strings"
	"testing"
	"testing/fstest"
)

const good = `
  // Do does.
  //
  // Deadline: fast; io when asked.
  // Idempotent: yes.
  // Outcome: a read.
  // Errors: known_code.
  // Since: 1.0.
  rpc Do(DoRequest) returns (DoResponse);
`

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, proto, want string }{
		{"good", good, ""},
		{"no deadline class", strings.Replace(good, "fast; io", "soon; io", 1), "rpc Do: has a deadline of no class: soon"},
		{"no deadline", strings.Replace(good, "  // Deadline: fast; io when asked.\n", "", 1), "rpc Do: has no Deadline:"},
		{"wrong order", strings.Replace(good, "  // Outcome: a read.\n", "", 1) + strings.Replace(good, "// Since: 1.0.", "// Since: 1.0.\n  // Outcome: a read.", 1), "Outcome: stands in the wrong place"},
		{"no words of its own", strings.Replace(good, "  // Do does.\n  //\n", "", 1), "does not say what it does"},
		{"unknown error", strings.Replace(good, "known_code", "other_code", 1), "names the error other_code"},
		{"no comment", "rpc Do(A) returns (B);", "has no Since:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Check(fstest.MapFS{"proto/x.proto": {Data: []byte(c.proto)}}, func(s string) bool { return s == "known_code" })
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
