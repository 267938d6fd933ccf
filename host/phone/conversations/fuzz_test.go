package conversations

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Whatever a phone sends as params, no handler panics, every failure has a sentence, and every answer is JSON.
func FuzzParams(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"sessionKey":"s","text":"t","idempotencyKey":"k","attachments":[{"type":"image","mimeType":"image/png","content":"aGk="}]}`,
		`{"sessionKey":null}`, `{"keys":["a","a"]}`, `{"base":{"epoch":"x"}}`, `{"sessionKey":"s","questionId":"q1","answers":{"f":[]}}`,
		`{"id":"a","decision":"allow-once"}`, `{"sessionKey":"s","id":"file_0","offset":1e400}`, `[]`, `{"sessionKey":"\ud800"}`,
		`{"sessionKey":"s","cursor":"eyJraW5kIjoiaXRlbXMiLCJuYXRpdmUiOiJhYmMiLCJlbmQiOjE3fQ"}`,
	} {
		f.Add(s)
	}
	var methods []string
	for m := range handlers {
		methods = append(methods, m)
	}
	for m := range profileMethods {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	f.Fuzz(func(t *testing.T, params string) {
		if !json.Valid([]byte(params)) || params[0] != '{' {
			return // the listener hands on nothing else
		}
		for _, backend := range backends {
			s := &fakeService{
				health:    sessions.Health{Status: runtime.Status{Condition: runtime.ConditionReady}},
				rows:      []sessions.Row{{Key: "s"}},
				questions: []sessions.OpenInteraction{{SessionKey: "s", Request: aQuestion}},
				approvals: []sessions.OpenInteraction{{SessionKey: "s", Request: anApproval}},
				history:   messages(3, func(int) string { return "x" }),
				pieces:    func(int64) (*sessions.ArtifactPiece, error) { return &sessions.ArtifactPiece{}, nil },
				reply:     `[]`,
			}
			d := New(Options{Backend: backend, Service: s})
			p := &fakePeer{id: "a"}
			for _, method := range methods {
				result, err := d.Serve(context.Background(), p, method, json.RawMessage(params))
				if err == nil {
					if _, err := clawket.Marshal(result); err != nil {
						t.Errorf("%s %s answers no JSON: %v", backend, method, err)
					}
					continue
				}
				if got := d.Failure(err); got.Message == "" || loggedOut.MatchString(got.Message) || codes.Of(err) == codes.Internal {
					t.Errorf("%s %s fails with %+v (%v)", backend, method, got, err)
				}
			}
			d.Close()
		}
	})
}
