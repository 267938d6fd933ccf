package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/sdk/modeltest"
)

// scene is one scenario on a computer, with a phone that begins without updates. Its helpers end the scenario by a
// panic with a failure; play turns that into an error.
type scene struct {
	*computer
	ctx     context.Context
	phone   *phone
	paired  *pairing
	backend string
	start   int // updates before this scene
	prompts int
	title   string
}

type failure struct{ error }

func (s *scene) fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (s *scene) check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// play runs one scenario and reports it.
func (s *scene) play(r *report, group, name string, f func(*scene)) {
	if !r.wants(name) {
		return
	}
	began := time.Now()
	s.title = name
	s.start = s.phone.mark()
	err := func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				f, ok := p.(failure)
				if !ok {
					panic(p)
				}
				err = f.error
			}
		}()
		f(s)
		return nil
	}()
	r.line(group, name, time.Since(began), "", err)
}

// say makes a prompt nobody said before, and teaches the model its reply.
func (s *scene) say(steps ...modeltest.Step) string {
	s.prompts++
	prompt := fmt.Sprintf("%s %d.", s.title, s.prompts)
	s.model.Add(modeltest.Script{Match: prompt, Steps: steps})
	return prompt
}

func (s *scene) call(method string, params map[string]any, result any) {
	s.check(s.phone.call(s.ctx, method, params, result))
}

// refused checks that a call is refused with a message that contains text.
func (s *scene) refused(method string, params map[string]any, text string) {
	err := s.phone.call(s.ctx, method, params, nil)
	var r *refusal
	if !errors.As(err, &r) || !strings.Contains(r.Message, text) {
		s.fail("%s: %v, want a refusal with %q", method, err, text)
	}
}

// create makes a conversation in the project.
func (s *scene) create() string {
	var projects []clawket.Project
	s.call(clawket.MethodProjectsList, nil, &projects)
	i := slices.IndexFunc(projects, func(p clawket.Project) bool { return p.Path == s.project })
	if s.backend == "demo" {
		i = min(0, len(projects)-1) // the demo has projects of its own
	}
	if i < 0 {
		s.fail("the project is not among %v", projects)
	}
	var row clawket.Session
	s.call(clawket.MethodSessionsCreate, map[string]any{"projectId": projects[i].ID}, &row)
	return row.Key
}

// send sends a prompt and gives the run.
func (s *scene) send(key, prompt string, more ...any) string {
	params := map[string]any{"sessionKey": key, "text": prompt, "idempotencyKey": keyOf(prompt)}
	for i := 0; i+1 < len(more); i += 2 {
		params[more[i].(string)] = more[i+1]
	}
	var r struct {
		RunID string `json:"runId"`
	}
	s.call(clawket.MethodChatSend, params, &r)
	if r.RunID == "" {
		s.fail("chat.send answered without a run")
	}
	return r.RunID
}

// keyOf is the phone's key of a prompt.
func keyOf(prompt string) string { return "key " + prompt[:min(150, len(prompt))] }

func (s *scene) wait(what string, fits func(update) bool) update {
	u, err := s.phone.wait(s.ctx, s.start, what, fits)
	s.check(err)
	return u
}

// end waits for the end of a run and checks why it ended, and that it ended once.
func (s *scene) end(run, reason string) update {
	u := s.wait("end of the run", func(u update) bool { return u.Type == clawket.UpdateRunFinished && u.RunID == run })
	if u.StopReason != reason {
		s.fail("the run ended with %s, want %s: %s", u.StopReason, reason, u.raw)
	}
	return u
}

// reply waits for the good end of a run and checks what the phone shows.
func (s *scene) reply(run, want string) {
	u := s.end(run, "end_turn")
	shown := text(s.phone.since(s.start), run)
	if len(u.Message) > 0 {
		shown = content(s, u)
	}
	if shown != want {
		s.fail("the phone shows %q, want %q", shown, want)
	}
}

// content is the reply an end carries.
func content(s *scene, u update) string {
	var m clawket.FinalMessage
	s.check(json.Unmarshal(u.Message, &m))
	return m.Content
}

// once checks that the model was asked a prompt exactly once.
func (s *scene) once(prompt string) {
	if n := s.model.Count(prompt); n != 1 {
		s.fail("the model was asked %d times", n)
	}
}

// asked waits for a request for consent.
func (s *scene) asked(run, category string) *clawket.Approval {
	_ = run
	u := s.wait("request for consent", func(u update) bool { return u.Type == clawket.UpdateApprovalRequested && u.Approval != nil })
	if u.Approval.Category != category {
		s.fail("category %s, want %s", u.Approval.Category, category)
	}
	return u.Approval
}

func (s *scene) decide(a *clawket.Approval, decision string) {
	s.call(clawket.MethodApprovalsResolve, map[string]any{"id": a.ID, "decision": decision}, nil)
}

// tool waits for the end of a tool call and checks how it ended.
func (s *scene) tool(run, status string) update {
	return s.wait("tool call with status "+status, func(u update) bool {
		return (u.Type == clawket.UpdateToolCallUpdate || u.Type == clawket.UpdateToolCall) && u.RunID == run && u.Status == status
	})
}

// history reads all of a conversation, oldest first, and the sizes of its pages.
func (s *scene) history(key string) (all []clawket.Message, pages []int) {
	cursor := ""
	for range 100 {
		params := map[string]any{"sessionKey": key}
		if cursor != "" {
			params["cursor"] = cursor
		}
		var h clawket.History
		s.call(clawket.MethodChatHistory, params, &h)
		all = append(h.Messages, all...)
		pages = append(pages, len(h.Messages))
		if cursor = h.NextCursor; cursor == "" {
			return all, pages
		}
	}
	s.fail("the history has no end")
	return nil, nil
}

// rows reads the catalog as old phones do.
func (s *scene) rows() []clawket.Session {
	var rows []clawket.Session
	s.call(clawket.MethodSessionsList, nil, &rows)
	return rows
}

// row finds a conversation in the catalog.
func (s *scene) row(key string) (clawket.Session, bool) {
	rows := s.rows()
	i := slices.IndexFunc(rows, func(r clawket.Session) bool { return r.Key == key })
	if i < 0 {
		return clawket.Session{}, false
	}
	return rows[i], true
}

// eventually waits until ok, looking again and again.
func (s *scene) eventually(what string, ok func() bool) { s.check(eventually(s.ctx, what, ok)) }

func eventually(ctx context.Context, what string, ok func() bool) error {
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			return errors.New("it never came to this: " + what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
