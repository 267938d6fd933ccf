package agent

import (
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxRefusal bounds the text that is compared with the one known refusal of a model.
const maxRefusal = 16 << 10

var modelRefusal = regexp.MustCompile(`^The '[A-Za-z0-9._-]{1,200}' model is not supported when using Codex with a ChatGPT account\.$`)

// ending is how a finished turn ended its run. live: seen as it happened. Otherwise nobody here stopped it: whatever
// interrupted the turn was the end of the process before this one, in good order or not.
func ending(t appserver.Turn, live bool) *runtime.RunEnded {
	switch t.Status {
	case "completed":
		return &runtime.RunEnded{Reason: runtime.EndReasonCompleted}
	case "interrupted":
		if !live {
			return &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: codes.Interrupted}
		}
		return &runtime.RunEnded{Reason: runtime.EndReasonCancelled}
	case "failed":
		return &runtime.RunEnded{Reason: runtime.EndReasonFailed, Code: failureCode(t.Error)}
	}
	return &runtime.RunEnded{Reason: runtime.EndReasonUnspecified, Code: codes.OutcomeUnknown}
}

// endTime is when a turn ended, or began when its end was never written.
func endTime(t appserver.Turn) time.Time {
	if at := seconds(t.CompletedAt); !at.IsZero() {
		return at
	}
	return seconds(t.StartedAt)
}

// failureCode chooses one of the three fixed sentences. The runtime's text is compared and never passed on.
func failureCode(e *appserver.TurnError) string {
	if e == nil {
		return codeTurn
	}
	kind, status := e.Kind()
	switch {
	case kind == "unauthorized", status == http.StatusUnauthorized:
		return codeAuth
	case unsupportedModel(string(e.Message)):
		return codeModel
	}
	return codeTurn
}

// unsupportedModel recognises exactly one refusal, plain or in the two JSON bodies it is known to come in.
func unsupportedModel(s string) bool {
	if len(s) > maxRefusal {
		return false
	}
	if modelRefusal.MatchString(s) {
		return true
	}
	var body struct {
		Detail string `json:"detail"`
		Type   string `json:"type"`
		Status int    `json:"status"`
		Error  struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(s), &body) != nil {
		return false
	}
	if modelRefusal.MatchString(body.Detail) {
		return true
	}
	return body.Type == "error" && body.Status == http.StatusBadRequest &&
		body.Error.Type == "invalid_request_error" && modelRefusal.MatchString(body.Error.Message)
}
