package conversations

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
)

// maxProfileReply bounds the answer of a profile method, in bytes.
const maxProfileReply = 6 << 20

// profileMethods are all there are, each with the shape of its answer. The app checks every field and shows an error if
// one is off, so an answer is read into that shape, checked, and written again: nothing else gets through.
var profileMethods = map[string]func(json.RawMessage) (any, error){
	"profile.projects":     reshape[profileProjects],
	"profile.defaults":     reshape[profileDefaults],
	"profile.defaults.set": reshape[profileDefaults],
	"profile.usage":        reshape[profileUsage],
	"profile.skills":       reshape[profileSkills],
	"profile.skills.set":   reshape[profileSkills],
	"profile.instructions": reshape[profileInstructions],
	"profile.document":     reshape[profileDocument],
	"profile.document.set": reshape[profileDocument],
	"profile.mcp":          reshape[profileServers],
	"profile.plugins":      reshape[profilePlugins],
}

func isProfile(method string) bool { _, ok := profileMethods[method]; return ok }

// profileHandler calls the plugin's method of that name.
func profileHandler(method string) handler {
	shape := profileMethods[method]
	return func(d *Dialect, ctx context.Context, c *call) (any, error) {
		params := c.raw
		if len(params) == 0 {
			params = json.RawMessage("{}")
		}
		reply, err := d.svc.Manage(ctx, d.backend+"."+method, params)
		if err != nil {
			return nil, err
		}
		if len(reply) > maxProfileReply {
			return nil, codes.New(codes.ReplyInvalid).Because(errors.New("too large"))
		}
		out, err := shape(reply)
		if err != nil {
			return nil, codes.New(codes.ReplyInvalid).Because(err)
		}
		return out, nil
	}
}

func reshape[T interface{ check() error }](reply json.RawMessage) (any, error) {
	var v T
	if err := jsonframe.Check(reply); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(reply, &v); err != nil {
		return nil, err
	}
	if err := v.check(); err != nil {
		return nil, err
	}
	return v, nil
}
