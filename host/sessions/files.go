package sessions

import (
	"context"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func (c *Conversations) project(_ *conversation, m runtime.Message) HistoryMessage {
	return HistoryMessage{Message: m}
}

func (c *Conversations) retireFiles(string) {}

// OpenArtifact describes a file.
func (c *Conversations) OpenArtifact(context.Context, string, string) (*ArtifactInfo, error) {
	return nil, codes.New(codes.ArtifactUnknown)
}

// ReadArtifact reads a piece.
func (c *Conversations) ReadArtifact(context.Context, string, string, int64) (*ArtifactPiece, error) {
	return nil, codes.New(codes.ArtifactUnknown)
}
