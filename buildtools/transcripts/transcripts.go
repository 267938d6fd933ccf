// Package transcripts keeps the terminal transcripts in README honest: each stands between two marks and must equal the
// file of that name which the end-to-end run recorded. It reads text only and holds no state.
package transcripts

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Folder is where the end-to-end run writes what it saw.
const Folder = "docs/transcripts"

var (
	begin = regexp.MustCompile(`<!-- transcript (\S+) -->`)
	end   = "<!-- /transcript -->"
)

// Check compares every marked block of README.md with its recording.
func Check(root fs.FS) ([]string, error) {
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		return nil, err
	}
	var bad []string
	for _, m := range begin.FindAllSubmatchIndex(readme, -1) {
		name := string(readme[m[2]:m[3]])
		body, _, ok := strings.Cut(string(readme[m[1]:]), end)
		if !ok {
			bad = append(bad, fmt.Sprintf("README.md: transcript %s has no end mark", name))
			continue
		}
		want, err := fs.ReadFile(root, Folder+"/"+name)
		if err != nil {
			bad = append(bad, fmt.Sprintf("README.md: transcript %s was never recorded: run make e2e", name))
			continue
		}
		if got := strings.TrimSpace(body); got != Block(string(want)) {
			bad = append(bad, fmt.Sprintf("README.md: transcript %s is not what %s/%s recorded", name, Folder, name))
		}
	}
	return bad, nil
}

// Record keeps what an end-to-end run saw under a name, in Folder and between the marks of that name in README.md.
func Record(root, name, text string) error {
	if err := os.MkdirAll(filepath.Join(root, Folder), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, Folder, name), []byte(text), 0o644); err != nil {
		return err
	}
	path := filepath.Join(root, "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mark := "<!-- transcript " + name + " -->"
	before, rest, ok := strings.Cut(string(readme), mark)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return fmt.Errorf("README.md has no place for the transcript %s", name)
	}
	return os.WriteFile(path, []byte(before+mark+"\n"+Block(text)+"\n"+end+after), 0o644)
}

// Block is a recording as it stands in README.
func Block(recording string) string {
	return "```console\n" + strings.TrimRight(recording, "\n") + "\n```"
}
