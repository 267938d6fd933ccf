package artifact

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Project makes the files and images of one assistant message. Text of anybody else, and of tools, must not get here.
// roots are the verified directories of the conversation.
func (s *Shelf) Project(r Reading, roots []string, text string, images []Image) Projection {
	var out Projection
	var found []*handle
	var cut []reference
	byPlace := map[place]int{} // index in found
	written := references(text)
	var resolved []string
	if len(written) > 0 {
		resolved = resolve(roots)
	}
	for _, ref := range written {
		h := s.deliver(r.session, ref.target, resolved)
		if h == nil {
			continue
		}
		if _, known := byPlace[h.file.place]; !known {
			if len(found) == maxFilesOf {
				continue
			}
			byPlace[h.file.place] = len(found)
			found = append(found, h)
		}
		if ref.start < ref.end {
			cut = append(cut, ref)
		}
	}
	for _, h := range found {
		out.Refs = append(out.Refs, Ref{ID: h.ID, Image: raster(h.MIME), MIME: h.MIME, Name: h.Name})
	}
	for i, img := range images {
		ref := Ref{Image: true, MIME: img.MIME, Name: img.Name}
		if i < maxImagesOf && raster(img.MIME) && len(img.Data) > 0 && len(img.Data) <= maxImage {
			ref.ID, ref.Data = imageID(r.session, img.MIME, img.Data), img.Data
			found = append(found, &handle{
				Info:    Info{ID: ref.ID, Name: cmp.Or(img.Name, "image"), MIME: img.MIME, Size: int64(len(img.Data))},
				session: r.session, data: img.Data,
			})
		}
		out.Refs = append(out.Refs, ref)
	}
	if len(cut) > 0 {
		out.Cut, out.Display = true, without(text, cut)
	}
	if !s.keep(r, found) {
		return Projection{}
	}
	return out
}

// resolve makes the roots real directories; one that does not exist delivers nothing.
func resolve(roots []string) []string {
	var out []string
	for _, root := range roots[:min(len(roots), maxRoots)] {
		if !filepath.IsAbs(root) {
			continue
		}
		for _, p := range []string{real(root), filepath.Clean(root)} { // also as the assistant may write it
			if p != "" && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

func real(root string) string {
	p, err := filepath.EvalSymlinks(root)
	if err != nil {
		return ""
	}
	return p
}

// deliver finds the file a reference names; nil when there is none that may be delivered.
func (s *Shelf) deliver(session, target string, roots []string) *handle {
	for _, p := range places(target, s.home, roots) {
		f, id, err := open(p)
		if err != nil {
			continue
		}
		_ = f.Close()
		if r := real(p.root); r != "" {
			p.root = r // one name for one place
		}
		return &handle{
			Info: Info{
				ID: fileID(session, p, id), Name: path.Base(p.rel), MIME: types[strings.ToLower(path.Ext(p.rel))], Size: id.size,
			},
			session: session, file: &fileHandle{p, id},
		}
	}
	return nil
}

// keep remembers handles, forgetting expired and least recently used ones. It reports false for a void reading.
func (s *Shelf) keep(r Reading, found []*handle) bool {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.void(r) {
		return false
	}
	for _, h := range found {
		s.clock++
		h.used, h.expires = s.clock, now.Add(fileLife)
		if h.file == nil {
			h.expires = now.Add(imageLife)
		}
		s.handles[h.ID] = h
		s.pages[h.ID] = &page{r.session, r.cursor, s.clock}
	}
	s.trim(now)
	return true
}

// trim keeps the bounds; s.mu is held.
func (s *Shelf) trim(now time.Time) {
	var files, images []*handle
	for id, h := range s.handles {
		switch {
		case !now.Before(h.expires):
			delete(s.handles, id)
		case h.file != nil:
			files = append(files, h)
		default:
			images = append(images, h)
		}
	}
	newestFirst := func(a, b *handle) int { return cmp.Compare(b.used, a.used) }
	slices.SortFunc(files, newestFirst)
	slices.SortFunc(images, newestFirst)
	for _, h := range files[min(len(files), maxFiles):] {
		delete(s.handles, h.ID)
	}
	total := 0
	for i, h := range images {
		if total += len(h.data); i >= maxImages || total > maxImagesTogether {
			delete(s.handles, h.ID)
			total -= len(h.data)
		}
	}
	for len(s.pages) > maxPages {
		oldest := ""
		for id, p := range s.pages {
			if oldest == "" || p.used < s.pages[oldest].used {
				oldest = id
			}
		}
		delete(s.pages, oldest)
	}
}
