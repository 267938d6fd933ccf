package sessions

import (
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// sentence is the one fixed text of a code: the registry's, else the plugin's declared phrase. Nothing a runtime or a
// provider says gets in; parameters are names and numbers.
func (c *Conversations) sentence(code string, params map[string]string) string {
	if !codes.Known(code) {
		if d := c.rt.Description(); d != nil {
			for _, p := range d.Phrases {
				if p.Code == code {
					return codes.Fill(p.Text, params)
				}
			}
		}
	}
	return codes.Fill(codes.Lookup(code).Message, params)
}

func (c *Conversations) notice(s runtime.Severity, code string, params map[string]string) *Notice {
	return &Notice{Severity: s, Code: code, Text: c.sentence(code, params)}
}

// noticed passes on what a person may want to read. mu is held.
func (c *Conversations) noticed(ev *runtime.Event, at time.Time) {
	var u Update
	if r := c.runs[ev.RunID]; r != nil {
		u = r.update(NoticeRaised, at)
	} else {
		u = Update{Kind: NoticeRaised, At: at}
		if conv := c.of(ev); conv != nil {
			u.SessionKey = conv.key
		}
	}
	u.Notice = c.notice(ev.Notice.Severity, ev.Notice.Code, ev.Notice.Parameters)
	if ev.Notice.Text != "" {
		u.Notice.Text = jsonframe.CutUnits(ev.Notice.Text, maxNoticeUnits)
	}
	c.publish(u)
}
