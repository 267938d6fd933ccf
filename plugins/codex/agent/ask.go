package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// ask is one request of the runtime that waits for a person. Guarded by the agent's mutex.
type ask struct {
	id          string // native request id, as JSON
	link        *link
	run         *run
	session     runtime.SessionRef
	turn        string
	interaction *runtime.Interaction
	// answer makes the native answer to a decision or to answers; the error says why it does not fit.
	answer  func(*runtime.ResolveInteractionRequest) (any, error)
	decline any             // native refusal of a question that has one; nil: only the end of the turn refuses it
	closure runtime.Closure // how it is closed once the runtime has taken the answer
	taken   bool            // an answer was written
}

func (k *ask) runID() string {
	if k.run == nil {
		return ""
	}
	return k.run.id
}

// Asks implements runtime.Resolver.
func (a *Agent) Asks() (questions, approvals bool) { return true, true }

// request is every field a server request may have.
type request struct {
	ThreadID string           `json:"threadId"`
	TurnID   appserver.String `json:"turnId"`
	ItemID   string           `json:"itemId"`
	Kind     appserver.String `json:"kind"`
	Reason   appserver.String `json:"reason"`
	Command  appserver.String `json:"command"`
	Cwd      appserver.String `json:"cwd"`
	StartMs  *float64         `json:"startedAtMs"`
	Network  *struct {
		Host     string `json:"host"`
		Protocol string `json:"protocol"`
	} `json:"networkApprovalContext"`
	Additional  json.RawMessage  `json:"additionalPermissions"`
	GrantRoot   json.RawMessage  `json:"grantRoot"`
	Permissions json.RawMessage  `json:"permissions"`
	Questions   []question       `json:"questions"`
	ServerName  appserver.String `json:"serverName"`
	Mode        appserver.String `json:"mode"`
	Message     appserver.String `json:"message"`
	Schema      json.RawMessage  `json:"requestedSchema"`
	Meta        *struct {
		Kind   string          `json:"codex_approval_kind"`
		Tool   string          `json:"tool_name"`
		Params json.RawMessage `json:"tool_params"`
	} `json:"_meta"`
}

// onRequest is called by the reader of the child. What cannot be shown whole is refused at once, in the way of that
// request that fails closed.
func (a *Agent) onRequest(s appserver.ServerRequest) {
	var q request
	readable := json.Unmarshal(s.Params, &q) == nil
	a.mu.Lock()
	defer a.mu.Unlock()
	l, t := a.link, a.threads[q.ThreadID]
	if l == nil {
		return
	}
	if !readable || t == nil {
		a.refuse(l, s.ID)
		return
	}
	if t.starting != nil && a.turns[string(q.TurnID)] == nil && q.TurnID != "" {
		// Its turn has not been named yet: it can be nobody's but the prompt's that is on its way.
		a.bind(t, t.starting, string(q.TurnID))
	}
	k := &ask{id: string(s.ID), link: l, turn: string(q.TurnID), session: t.session, run: a.turns[string(q.TurnID)]}
	name := k.turn
	if name == "" {
		name = "c" + l.born.UTC().Format("20060102T150405.000000")
	}
	k.interaction = &runtime.Interaction{InteractionID: name + ":" + k.id, CreatedAt: millis(q.StartMs)}
	if old := a.asks[k.interaction.InteractionID]; old != nil {
		return // sent again after a resume: the same request
	}
	if !a.fill(k, s.Method, &q) || len(a.asks) >= maxConcurrent {
		a.refuseAsk(k, s.Method, &q)
		return
	}
	a.asks[k.interaction.InteractionID] = k
	e := runtime.Event{SessionID: k.session.SessionID, NativeID: k.session.NativeID, RunID: k.runID(), InteractionOpened: k.interaction}
	a.emit(e)
}

// fill makes the interaction; false when it cannot be shown.
func (a *Agent) fill(k *ask, method string, q *request) bool {
	reason := cut(string(q.Reason), maxPlainReason)
	approve := func(ap runtime.Approval, allow, deny any) bool {
		if ap.Subject == "" || len([]rune(ap.Subject)) > maxSubject {
			return false
		}
		ap.Reason, ap.WorkingDirectory, ap.CallID = reason, string(q.Cwd), q.ItemID
		k.interaction.Approval = &ap
		k.answer = func(r *runtime.ResolveInteractionRequest) (any, error) {
			switch {
			case r.Answers != nil || r.Cancel:
				return nil, codes.New(codes.AnswerInvalid)
			case r.Decision == runtime.DecisionAllowOnce:
				k.closure = runtime.ClosureAllowed
				return allow, nil
			}
			k.closure = runtime.ClosureDenied
			return deny, nil
		}
		return true
	}
	decision := func(d string) any { return map[string]string{"decision": d} }
	switch method {
	case "item/commandExecution/requestApproval":
		if q.Kind != "" && q.Kind != "command" {
			return false
		}
		ap := runtime.Approval{Category: runtime.ApprovalCategoryCommand, Subject: string(q.Command), ToolName: "exec"}
		if q.Network != nil {
			ap.Category = runtime.ApprovalCategoryNetwork
			ap.Subject = strings.TrimSpace(q.Network.Protocol + "://" + q.Network.Host + "\n" + ap.Subject)
		}
		if isSet(q.Additional) {
			ap.Subject += "\n" + string(q.Additional)
		}
		return approve(ap, decision("accept"), decision("decline"))
	case "item/fileChange/requestApproval":
		if k.run == nil || isSet(q.GrantRoot) { // a whole root would be granted for longer than this once
			return false
		}
		return approve(runtime.Approval{
			Category: runtime.ApprovalCategoryFile, Subject: describeChanges(k.run.changes[q.ItemID]), ToolName: "apply_patch",
		}, decision("accept"), decision("decline"))
	case "item/permissions/requestApproval":
		if !isSet(q.Permissions) {
			return false
		}
		type granting struct {
			Permissions json.RawMessage `json:"permissions"`
			Scope       string          `json:"scope"`
		}
		return approve(runtime.Approval{Category: runtime.ApprovalCategoryPermissions, Subject: string(q.Permissions)},
			granting{grantable(q.Permissions), "turn"}, granting{json.RawMessage("{}"), "turn"})
	case "item/tool/requestUserInput":
		return k.questions(q)
	case "mcpServer/elicitation/request":
		if q.Meta != nil && q.Meta.Kind == "mcp_tool_call" {
			subject := string(q.ServerName) + " · " + q.Meta.Tool
			if isSet(q.Meta.Params) {
				subject += "\n" + string(q.Meta.Params)
			}
			return approve(runtime.Approval{
				Category: runtime.ApprovalCategoryPermissions, Subject: subject, ToolName: q.Meta.Tool,
			}, elicited("accept", nil), elicited("decline", nil))
		}
		return k.elicitation(q)
	}
	return false
}

// grantable is the requested profile without what was not asked for; nothing is added.
func grantable(raw json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return json.RawMessage("{}")
	}
	for k, v := range all {
		if !isSet(v) {
			delete(all, k)
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

func elicited(action string, content any) any {
	return map[string]any{"action": action, "content": content, "_meta": nil}
}

// refuse answers with an error. Called with the mutex held.
func (a *Agent) refuse(l *link, id json.RawMessage) {
	a.spawn(func() { _ = l.client.Refuse(a.life, id) })
}

// refuseAsk refuses what cannot be shown. Questions have no refusal that reaches the model as one: an error would come
// out as empty answers, so their turn is stopped and the person is told why. Called with the mutex held.
func (a *Agent) refuseAsk(k *ask, method string, q *request) {
	l, id := k.link, json.RawMessage(k.id)
	respond := func(v any) {
		a.spawn(func() { _ = l.client.Respond(a.life, id, v) })
	}
	code := codeAsk
	switch method {
	case "item/commandExecution/requestApproval", "item/fileChange/requestApproval":
		respond(map[string]string{"decision": "decline"})
	case "item/permissions/requestApproval":
		respond(map[string]any{"permissions": struct{}{}, "scope": "turn"})
	case "mcpServer/elicitation/request":
		respond(elicited("decline", nil))
	case "item/tool/requestUserInput":
		for _, x := range q.Questions {
			if x.Secret {
				code = codeSecret
			}
		}
		if k.run != nil {
			k.run.stopWanted = true
			a.interrupt(k.session.NativeID, k.run)
		}
	default:
		a.refuse(l, id)
		return
	}
	if k.run != nil {
		a.emit(k.run.event(runtime.Event{Notice: &runtime.Notice{Severity: runtime.SeverityWarning, Code: code}}))
	}
}

// ResolveInteraction implements runtime.Resolver. An interaction takes one answer; it is closed when the runtime says so.
func (a *Agent) ResolveInteraction(ctx context.Context, r *runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
	not := func(code string) (*runtime.ResolveInteractionResponse, error) {
		return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeNotDispatched, Code: code}, nil
	}
	a.mu.Lock()
	k := a.asks[r.InteractionID]
	if k == nil || k.taken {
		a.mu.Unlock()
		return not(codes.InteractionNotPending)
	}
	if r.Session.NativeID != "" && r.Session.NativeID != k.session.NativeID {
		a.mu.Unlock()
		return not(codes.InteractionNotPending)
	}
	if r.Cancel && k.interaction.Question != nil && k.decline == nil {
		return a.cancelQuestion(ctx, k) // unlocks
	}
	answer, err := k.answer(r)
	if r.Cancel && k.decline != nil {
		answer, err, k.closure = k.decline, nil, runtime.ClosureCancelled
	}
	if err != nil {
		a.mu.Unlock()
		return not(codes.Of(err))
	}
	k.taken = true
	a.mu.Unlock()
	err = k.link.client.Respond(ctx, json.RawMessage(k.id), answer)
	switch {
	case err == nil:
		return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeDispatched}, nil
	case errors.Is(err, appserver.ErrNotSent):
		a.mu.Lock()
		k.taken = false
		a.mu.Unlock()
		return not(codes.RuntimeUnavailable)
	}
	return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeUnknown, Code: codes.AnswerUnknown}, nil
}

// cancelQuestion stops the turn: no answer means empty answers to the model. The question stays until the turn is
// over. Called with the mutex held; unlocks it.
func (a *Agent) cancelQuestion(ctx context.Context, k *ask) (*runtime.ResolveInteractionResponse, error) {
	k.closure = runtime.ClosureCancelled
	if k.run != nil {
		k.run.stopWanted = true
	}
	thread, turn := k.session.NativeID, k.turn
	a.mu.Unlock()
	err := k.link.client.TurnInterrupt(ctx, thread, turn)
	switch {
	case err == nil:
		return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeDispatched}, nil
	case appserver.Rejected(err):
		return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeNotDispatched, Code: codes.InteractionNotPending}, nil
	}
	return &runtime.ResolveInteractionResponse{Outcome: runtime.OutcomeUnknown, Code: codes.AnswerUnknown}, nil
}

// resolved retires a request the runtime no longer waits for. Called with the mutex held.
func (a *Agent) resolved(threadID string, id json.RawMessage) {
	for name, k := range a.asks {
		if k.session.NativeID == threadID && k.id == string(id) {
			closure := runtime.ClosureExpired
			if k.taken {
				closure = k.closure
			}
			a.closeAsk(name, closure)
		}
	}
}

// closeAsk closes an interaction. Called with the mutex held.
func (a *Agent) closeAsk(name string, closure runtime.Closure) {
	k := a.asks[name]
	delete(a.asks, name)
	if closure == runtime.ClosureExpired && k.closure == runtime.ClosureCancelled {
		closure = runtime.ClosureCancelled
	}
	a.emit(runtime.Event{
		SessionID: k.session.SessionID, NativeID: k.session.NativeID, RunID: k.runID(),
		InteractionClosed: &runtime.InteractionClosed{InteractionID: name, Closure: closure},
	})
}
