package conversations

import (
	"context"
	"encoding/json"

	"github.com/openphone-host/openphone/protocol/codes"
)

// profileMethods are all there are; see profilereply.go for what each may answer.
var profileMethods = map[string]func(json.RawMessage) error{}

func isProfile(method string) bool { _, ok := profileMethods[method]; return ok }

// profileHandler calls the plugin's method of that name and lets nothing through that the app would refuse.
func profileHandler(method string) handler {
	check := profileMethods[method]
	return func(d *Dialect, ctx context.Context, c *call) (any, error) {
		params := c.raw
		if len(params) == 0 {
			params = json.RawMessage("{}")
		}
		reply, err := d.svc.Manage(ctx, d.backend+"."+method, params)
		if err != nil {
			return nil, err
		}
		if err := check(reply); err != nil {
			return nil, codes.New(codes.ReplyInvalid).Because(err)
		}
		return reply, nil
	}
}
