package sessions

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"github.com/openphone-host/openphone/host/sessions/preview"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// row describes a conversation. mu is held.
func (c *Conversations) row(conv *conversation) Row {
	r := Row{
		Key: conv.key, HasActiveRun: len(conv.runs) > 0, Attention: c.attention(conv), Archived: conv.archived(),
		Kind: runtime.SessionKindDirect,
	}
	ref := conv.ref()
	r.NativeID, r.SessionID = ref.NativeID, ref.SessionID
	if conv.isOwn {
		r.Title, r.Preview, r.ModelID, r.ProviderID = conv.rec.Title, conv.rec.Preview, conv.rec.ModelID, conv.rec.ProviderID
		r.UpdatedAt, r.LastActivityAt, r.ParentKey = conv.rec.UpdatedAt, conv.rec.LastActivityAt, conv.rec.ParentID
		r.Native = conv.rec.Imported
		r.Continuation = runtime.ContinuationAllowed
		if l := c.layout(); conv == c.own[0] && (l == runtime.SessionLayoutMainAndMany || l == runtime.SessionLayoutSingle) {
			r.Kind = runtime.SessionKindMain
		}
	} else {
		r.Native = true
	}
	if row := conv.row; row != nil {
		c.addNative(&r, conv, row)
	}
	r.Actions = c.actions(conv)
	r.Project = c.projectOf(ref.ProjectPath)
	r.Roots = conv.roots()
	if r.Title == "" && r.Project != nil {
		r.Title = r.Project.Name
	}
	if d := c.rt.Description(); r.Title == "" && d != nil {
		r.Title = d.Name
	}
	return r
}

func (c *Conversations) addNative(r *Row, conv *conversation, row *runtime.Session) {
	if r.Native {
		r.Continuation = row.Continuation
		if row.Kind != runtime.SessionKindUnspecified {
			r.Kind = row.Kind
		}
	}
	pick2(&r.Title, row.Title)
	pick2(&r.ModelID, row.ModelID)
	pick2(&r.ProviderID, row.ProviderID)
	r.Channel = row.Channel
	if row.UpdatedAt.After(r.UpdatedAt) {
		r.UpdatedAt = row.UpdatedAt
	}
	if m := row.LastMessage; m != nil && m.Role != runtime.RoleUnspecified && m.CreatedAt.After(r.LastActivityAt) {
		r.LastActivityAt = m.CreatedAt
		pick(&r.Preview, preview.Of(m.Text, m.HasImage))
	} else if m != nil && m.Role != runtime.RoleUnspecified && r.Preview == "" {
		r.Preview = preview.Of(m.Text, m.HasImage)
	}
	if r.ParentKey == "" && row.ParentNativeID != "" {
		if parent := c.byNative[row.ParentNativeID]; parent != nil {
			r.ParentKey = parent.key
		} else {
			r.ParentKey = c.opts.NativeKey(row.ParentNativeID)
		}
	}
	// What a scan saw says nothing about a run of ours that ended since.
	if !conv.isOwn && (row.Activity == runtime.ActivityRunning || row.Activity == runtime.ActivityWaiting) {
		r.HasActiveRun = true
	}
}

// actions are the changes offered: for ours the host decides, for native ones the runtime. mu is held.
func (c *Conversations) actions(conv *conversation) Actions {
	a := Actions{Pin: true}
	if conv.isOwn && !conv.rec.Imported {
		idle := !conv.busy()
		last := len(c.own) == 1 && (c.layout() == runtime.SessionLayoutMainAndMany || c.layout() == runtime.SessionLayoutSingle)
		a.Rename, a.Reset, a.Delete = true, idle, idle && !last
		a.Archive = conv.rec.NativeID != "" && c.can(runtime.CapabilityArchive)
		return a
	}
	if conv.row == nil {
		return a
	}
	for _, x := range conv.row.Actions {
		switch x {
		case runtime.SessionActionRename:
			a.Rename = c.can(runtime.CapabilityRename)
		case runtime.SessionActionArchive:
			a.Archive = c.can(runtime.CapabilityArchive)
		}
	}
	return a
}

// publishRow tells what the conversation is now. mu is held.
func (c *Conversations) publishRow(conv *conversation) {
	if conv.deleted || len(c.subs) == 0 {
		return
	}
	row := c.row(conv)
	c.publish(Update{Kind: SessionChanged, SessionKey: conv.key, At: time.Now(), Row: &row})
}

// projectID is the opaque name phones have for a directory.
func projectID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:])[:32]
}

func (c *Conversations) projectOf(path string) *Project {
	if path == "" {
		return nil
	}
	p := &Project{ID: projectID(path), Name: c.projectNames[path], Path: path, Available: !c.missing[path]}
	if p.Name == "" {
		p.Name = filepath.Base(path)
	}
	return p
}

// lookAtProjects notes which directories are there. It reads the disk, so mu is not held.
func (c *Conversations) lookAtProjects(rows []Row) {
	seen := map[string]bool{}
	for i := range rows {
		p := rows[i].Project
		if p == nil {
			continue
		}
		if _, ok := seen[p.Path]; !ok {
			seen[p.Path] = isDirectory(p.Path)
		}
		p.Available = seen[p.Path]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, ok := range seen {
		if ok {
			delete(c.missing, path)
		} else {
			c.missing[path] = true
		}
	}
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
