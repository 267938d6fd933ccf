package conversations

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"regexp"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
)

func (d *Dialect) skills(ctx context.Context, c *call) (any, error) {
	key := c.optionalKey()
	if err := c.err(); err != nil {
		return nil, err
	}
	out := clawket.Skills{Skills: []clawket.Skill{}}
	if key != "" {
		row, err := d.svc.Lookup(ctx, key)
		if err != nil {
			return nil, err
		}
		if row.Project != nil && row.Project.Path != "" {
			out.WorkspaceDir = filepath.Base(row.Project.Path)
		}
	}
	list, err := d.svc.Skills(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, s := range list[:min(len(list), clawket.MaxSkills)] {
		name := s.Name
		if name == "" {
			name = s.SkillID
		}
		out.Skills = append(out.Skills, clawket.Skill{
			Name: name, Description: s.Description, Invocation: s.Invocation, Source: d.backend, SkillKey: s.SkillID, Eligible: true,
			Requirements: map[string]string{}, Missing: map[string]string{}, ConfigChecks: []string{}, Install: []string{},
		})
	}
	return out, nil
}

var artifactID = regexp.MustCompile(`^(file|image)_[a-f0-9]{64}$`)

// openArtifact describes a file an answer referred to. The id is no permission: the service binds it to the
// conversation and looks at the file again.
func (d *Dialect) openArtifact(ctx context.Context, c *call) (any, error) {
	key, id := c.sessionKey(), c.anyText("artifactId")
	if err := c.err(); err != nil {
		return nil, err
	}
	if !artifactID.MatchString(id) {
		return nil, codes.New(codes.ArtifactUnknown)
	}
	a, err := d.svc.OpenArtifact(ctx, key, id)
	if err != nil {
		return nil, err
	}
	return clawket.Artifact{ID: a.ID, Name: a.Name, Size: a.Size, MIMEType: a.MIME}, nil
}

func (d *Dialect) readArtifact(ctx context.Context, c *call) (any, error) {
	key, id, offset := c.sessionKey(), c.anyText("id"), c.integer("offset")
	if err := c.err(); err != nil {
		return nil, err
	}
	if !artifactID.MatchString(id) {
		return nil, codes.New(codes.ArtifactUnknown)
	}
	if offset < 0 || offset%clawket.ArtifactPiece != 0 {
		return nil, codes.New(codes.ArtifactOffset)
	}
	p, err := d.svc.ReadArtifact(ctx, key, id, offset)
	if err != nil {
		return nil, err
	}
	return clawket.Piece{Offset: p.Offset, Total: p.Total, Data: base64.StdEncoding.EncodeToString(p.Data), Done: p.Done}, nil
}
