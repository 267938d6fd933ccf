package conversations

import (
	"regexp"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
)

// loggedOut matches what a shipped app takes for the end of its pairing: it would disconnect and ask to pair again.
var loggedOut = regexp.MustCompile(`(?i)pairing[_ ]required|auth[_ ](rejected|required)|unauthorized|invalid[_ ]token|token[_ ]revoked|permission[_ ]denied`)

// Failure implements phone.Dialect: the backend's one code, and the fixed sentence that belongs to the error's own.
func (d *Dialect) Failure(err error) clawket.Failure {
	code, params := codes.Of(err), map[string]string(nil)
	if e := codes.As(err); e != nil {
		params = e.Params
	}
	return clawket.Failure{Code: clawket.ErrorCode(d.backend), Message: d.sentence(code, params)}
}

// sentence is what a person is shown for a code: the registry's text, else the plugin's own phrase, else a general one.
// Parameters come from plugins, so the result is checked for words that would log the phone out.
func (d *Dialect) sentence(code string, params map[string]string) string {
	text := codes.Lookup(code).Message
	if about := d.about.Load(); about != nil && !codes.Known(code) {
		for _, p := range about.Phrases {
			if p.Code == code {
				text = p.Text
				break
			}
		}
	}
	if text = codes.Fill(text, params); loggedOut.MatchString(text) {
		return codes.Lookup(codes.Internal).Message
	}
	return text
}

// appCode is the word for a code in the closed list the app knows for error events.
func appCode(code string) string {
	switch code {
	case codes.RuntimeUnavailable, codes.RuntimeUnreachable, codes.RuntimeMissing, codes.PluginCrashed,
		codes.PluginStartFailed, codes.PluginBreakerOpen, codes.Draining:
		return "gateway_offline"
	case codes.OutcomeUnknown, codes.DeadlineExceeded:
		return "timeout"
	case codes.MethodUnsupported:
		return "unsupported"
	case codes.FrameTooLarge:
		return "frame_too_large"
	}
	return "server"
}
