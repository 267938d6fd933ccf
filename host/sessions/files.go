package sessions

import (
	"context"
	"os"
	"strings"

	"github.com/openphone-host/openphone/host/sessions/artifact"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// newShelf keeps the handles of files phones may read. What it forgot is found again by reading the page once more.
func (c *Conversations) newShelf() *artifact.Shelf {
	home, _ := os.UserHomeDir()
	return artifact.New(artifact.Options{Home: home, Reread: func(ctx context.Context, session, cursor string) error {
		_, err := c.History(ctx, session, cursor, maxHistoryPage)
		return err
	}})
}

// project makes files of what an assistant delivered in a message. It looks at the disk, so mu is not held. The text
// itself stays as it is.
func (c *Conversations) project(reading artifact.Reading, roots []string, m runtime.Message) HistoryMessage {
	h := HistoryMessage{Message: m}
	if m.Role != runtime.RoleAssistant {
		return h // what a person or a tool wrote delivers nothing
	}
	text, _ := textOf(m)
	var images []artifact.Image
	for _, p := range m.Parts {
		if strings.HasPrefix(p.ContentType, "image/") {
			images = append(images, artifact.Image{MIME: p.ContentType, Name: p.Name, Data: p.Data})
		}
	}
	projected := c.shelf.Project(reading, roots, text, images)
	for _, f := range projected.Refs {
		h.Files = append(h.Files, ArtifactRef{ID: f.ID, Image: f.Image, MIME: f.MIME, Name: f.Name, Data: f.Data})
	}
	h.Converted, h.DisplayText = projected.Cut, projected.Display
	return h
}

// roots are the directories whose files may be delivered. mu is held.
func (conv *conversation) roots() []string {
	var list []string
	if p := conv.ref().ProjectPath; p != "" {
		list = append(list, p)
	}
	if conv.row != nil {
		list = append(list, conv.row.Roots...)
	}
	return list
}

// OpenArtifact describes a file of a conversation. Errors: session_unknown, artifact_unknown, artifact_changed,
// artifact_busy.
func (c *Conversations) OpenArtifact(ctx context.Context, key, artifactID string) (*ArtifactInfo, error) {
	if _, err := c.find(key); err != nil {
		return nil, err
	}
	info, err := c.shelf.Open(ctx, key, artifactID)
	if err != nil {
		return nil, err
	}
	return &ArtifactInfo{ID: info.ID, Name: info.Name, MIME: info.MIME, Size: info.Size}, nil
}

// ReadArtifact reads one piece of a file. Errors: session_unknown, artifact_unknown, artifact_changed, artifact_offset.
func (c *Conversations) ReadArtifact(ctx context.Context, key, artifactID string, offset int64) (*ArtifactPiece, error) {
	if _, err := c.find(key); err != nil {
		return nil, err
	}
	p, err := c.shelf.Read(ctx, key, artifactID, offset)
	if err != nil {
		return nil, err
	}
	return &ArtifactPiece{Offset: p.Offset, Total: p.Total, Data: p.Data, Done: p.Done}, nil
}
