package artifact

import (
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// types are the files that may be delivered, by extension.
var types = map[string]string{
	".pdf": "application/pdf",
	".txt": "text/plain", ".log": "text/plain", ".py": "text/plain", ".js": "text/plain", ".ts": "text/plain",
	".md": "text/markdown", ".csv": "text/csv", ".json": "application/json",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif",
	".zip": "application/zip", ".svg": "image/svg+xml", ".html": "text/html",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// raster reports an image a phone shows by itself.
func raster(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return true
	}
	return false
}

var (
	// private are names an agent keeps its memory or its keys under; they never leave the computer by a mere mention.
	private = regexp.MustCompile(`(?i)^(?:(?:agents|claude|memory|user|identity|soul|tools|heartbeat|bootstrap)\.md|(?:credentials|auth|config|secrets|tokens?)(?:[.-].*)?)$`)
	scheme  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`) // two letters at least: C: is a drive
)

// place is a file inside a root: slash-separated, clean, relative.
type place struct{ root, rel string }

// places gives where a reference may point to, most literal first. It looks at names only.
func places(target, home string, roots []string) []place {
	var list []place
	add := func(path string) {
		for _, root := range roots {
			if p, ok := inside(root, path); ok {
				list = append(list, p)
			}
		}
	}
	if path, ok := strings.CutPrefix(target, "file://"); ok {
		if decoded, err := url.PathUnescape(path); err == nil && strings.HasPrefix(path, "/") {
			if runtime.GOOS == "windows" {
				decoded = strings.TrimPrefix(decoded, "/") // file:///C:/…
			}
			add(decoded)
		}
		return list
	}
	if scheme.MatchString(target) {
		return nil
	}
	for i, path := range []string{target, percentDecoded(target)} {
		if i > 0 && path == target {
			break
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			if home == "" {
				continue
			}
			path = filepath.Join(home, rest)
		}
		add(path)
	}
	return list
}

func percentDecoded(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}

// inside places an absolute path, or one relative to root, if its name allows delivery.
func inside(root, path string) (place, bool) {
	if path == "" || !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) {
		return place{}, false
	}
	if !filepath.IsAbs(path) {
		if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\`) {
			return place{}, false // no drive: not a path on Windows
		}
		path = filepath.Join(root, path)
	}
	rel, err := filepath.Rel(root, filepath.Clean(path))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return place{}, false
	}
	rel = filepath.ToSlash(rel)
	for part := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(part, ".") || private.MatchString(part) || strings.ContainsAny(part, `:\`) {
			return place{}, false
		}
	}
	if types[strings.ToLower(filepath.Ext(rel))] == "" {
		return place{}, false
	}
	return place{root, rel}, true
}
