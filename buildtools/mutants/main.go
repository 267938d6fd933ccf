// Command mutants breaks one behaviour at a time, by build overlay, and runs the test that must notice. The sources are
// never touched. It prints one line per mutant and "mutants N/N caught"; a mutant that survives, does not compile or
// no longer finds its text fails the run.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// deadline bounds one mutant: building its test and running it.
const deadline = 5 * time.Minute

// mutant is one broken behaviour.
type mutant struct {
	name string // what is broken
	file string // where, from the root
	old  string // text that stands there exactly once
	new  string
	pkg  string // folder of the test
	test string // name of the test that must turn red
	tags string
}

func main() {
	log.SetFlags(0)
	dir := flag.String("root", ".", "root of the checkout")
	fifth := flag.Int("fifth", -1, "run only the fifth with this number, 0 to 4")
	only := flag.String("only", "", "run only mutants whose name has this")
	flag.Parse()
	root, err := filepath.Abs(*dir)
	if err != nil {
		log.Fatal(err)
	}
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	ran, caught := 0, 0
	for i, m := range table {
		if (*fifth >= 0 && i%5 != *fifth) || !strings.Contains(m.name, *only) {
			continue
		}
		ran++
		begin := time.Now()
		verdict := m.run(root, tmp)
		if verdict == "caught" {
			caught++
		}
		fmt.Printf("%-8s %s (%s, %.1f s)\n", verdict, m.name, m.test, time.Since(begin).Seconds())
	}
	fmt.Printf("mutants %d/%d caught\n", caught, ran)
	if caught != ran || ran == 0 {
		os.Exit(1)
	}
}

// run gives "caught", or why not.
func (m mutant) run(root, tmp string) string {
	path := filepath.Join(root, filepath.FromSlash(m.file))
	src, err := os.ReadFile(path)
	if err != nil {
		return "no file"
	}
	broken, err := m.apply(src)
	if err != nil {
		return err.Error()
	}
	copied, overlay := filepath.Join(tmp, "mutant.go"), filepath.Join(tmp, "overlay.json")
	raw, _ := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	if os.WriteFile(copied, broken, 0o600) != nil || os.WriteFile(overlay, raw, 0o600) != nil {
		return "no space"
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count=1", "-timeout", "40s", "-tags", m.tags,
		"-run", "^"+m.test+"$", "./"+m.pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return judge(m.test, out, err == nil)
}

func (m mutant) apply(src []byte) ([]byte, error) {
	switch bytes.Count(src, []byte(m.old)) {
	case 0:
		return nil, fmt.Errorf("text gone")
	case 1:
		return bytes.Replace(src, []byte(m.old), []byte(m.new), 1), nil
	}
	return nil, fmt.Errorf("ambiguous")
}

var timedOut = regexp.MustCompile(`(?m)^panic: test timed out`)

// judge reads what the test run said. Only the named test turning red counts; a build that fails proves nothing.
func judge(test string, out []byte, passed bool) string {
	top, _, _ := strings.Cut(test, "/")
	switch {
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return "no build"
	case bytes.Contains(out, []byte("no tests to run")):
		return "no test"
	case passed:
		return "SURVIVED"
	case bytes.Contains(out, []byte("--- FAIL: "+top)) || timedOut.Match(out) || bytes.Contains(out, []byte("panic: ")):
		return "caught"
	}
	return "unclear"
}
