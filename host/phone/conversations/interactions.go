package conversations

import (
	"context"
	"slices"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Bounds of what is shown of an interaction, in UTF-16 units.
const (
	maxTitleUnits   = 2000
	maxReasonUnits  = 2000
	maxInteractions = 32 // in one list
)

func (d *Dialect) questions(ctx context.Context, c *call) (any, error) {
	key := c.sessionKey()
	if err := c.err(); err != nil {
		return nil, err
	}
	open, err := d.svc.Questions(ctx, key)
	if err != nil {
		return nil, err
	}
	out := make([]clawket.Question, 0, len(open))
	for _, o := range open {
		if q := d.question(&o.Request); q != nil && len(out) < maxInteractions {
			out = append(out, *q)
		}
	}
	return out, nil
}

// question shapes a question: one form for the backends whose apps know nothing else, otherwise the plain kinds for a
// single field. nil when it is none.
func (d *Dialect) question(i *runtime.Interaction) *clawket.Question {
	q := i.Question
	if q == nil || len(q.Fields) == 0 {
		return nil
	}
	out := &clawket.Question{
		ID: i.InteractionID, Kind: d.questionKind(q), Title: jsonframe.CutUnits(q.Title, maxTitleUnits), Message: q.Message,
		ExpiresAtMS: millisOrNull(i.ExpiresAt),
	}
	f := &q.Fields[0]
	if out.Kind != clawket.QuestionForm {
		out.Placeholder, out.Prefill = f.Placeholder, f.Prefill
		if out.Title == "" {
			out.Title = jsonframe.CutUnits(f.Title, maxTitleUnits)
		}
		if out.Kind == clawket.QuestionSelect {
			for _, o := range f.Options {
				out.Options = append(out.Options, o.Label)
			}
		}
		return out
	}
	for i := range q.Fields {
		out.Fields = append(out.Fields, formField(&q.Fields[i]))
	}
	return out
}

func (d *Dialect) questionKind(q *runtime.Question) string {
	if d.traits.forms || len(q.Fields) != 1 {
		return clawket.QuestionForm
	}
	switch f := &q.Fields[0]; f.Kind {
	case runtime.FieldKindSelect:
		if !f.AllowCustom && !f.MultiSelect {
			return clawket.QuestionSelect
		}
	case runtime.FieldKindConfirm:
		return clawket.QuestionConfirm
	case runtime.FieldKindLine:
		return clawket.QuestionInput
	case runtime.FieldKindText:
		return clawket.QuestionEditor
	}
	return clawket.QuestionForm
}

// formField shows any field as choices with or without a text of one's own.
func formField(f *runtime.Field) clawket.QuestionField {
	out := clawket.QuestionField{ID: f.FieldID, Title: f.Title, Header: f.Header, AllowCustom: f.AllowCustom, MultiSelect: f.MultiSelect, Options: []clawket.QuestionOption{}}
	switch f.Kind {
	case runtime.FieldKindConfirm:
		out.Options = []clawket.QuestionOption{{Label: "true"}, {Label: "false"}}
	case runtime.FieldKindLine, runtime.FieldKindText:
		out.AllowCustom = true
	default:
		for _, o := range f.Options {
			out.Options = append(out.Options, clawket.QuestionOption{Label: o.Label, Description: o.Description})
		}
	}
	return out
}

// respond takes an answer to a question. An answer that does not fit changes nothing; the question stays.
func (d *Dialect) respond(ctx context.Context, c *call) (any, error) {
	key, id := c.sessionKey(), c.text("questionId", clawket.MaxSessionKeyUnits)
	cancel := c.optionalFlag("cancelled")
	if err := c.err(); err != nil {
		return nil, err
	}
	if cancel {
		return done(d.svc.Respond(ctx, c.person(), key, id, sessions.Answer{Cancel: true}))
	}
	open, err := d.svc.Questions(ctx, key)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(open, func(o sessions.OpenInteraction) bool { return o.Request.InteractionID == id })
	if at < 0 || open[at].Request.Question == nil {
		return nil, codes.New(codes.InteractionNotPending)
	}
	fields, err := d.answers(c, open[at].Request.Question)
	if err != nil {
		return nil, err
	}
	return done(d.svc.Respond(ctx, c.person(), key, id, sessions.Answer{Fields: fields}))
}

func (d *Dialect) answers(c *call, q *runtime.Question) (map[string][]string, error) {
	bad := codes.New(codes.AnswerInvalid)
	var fields map[string][]string
	switch d.questionKind(q) {
	case clawket.QuestionForm:
		if c.read("answers", '{', &fields); c.failed {
			return nil, bad
		}
	case clawket.QuestionConfirm:
		value := "false"
		if c.flag("confirmed") {
			value = "true"
		}
		fields = map[string][]string{q.Fields[0].FieldID: {value}}
	default:
		fields = map[string][]string{q.Fields[0].FieldID: {c.anyText("value")}}
	}
	if c.failed {
		return nil, bad
	}
	for _, values := range fields { // whether they are all there and may be chosen is the service's to say
		if d.traits.oneAnswer && len(values) != 1 || d.traits.forms && slices.ContainsFunc(values, blank) {
			return nil, bad
		}
	}
	return fields, nil
}

// approvals lists what waits for consent. The two shipped apps want two different shapes.
func (d *Dialect) approvals(ctx context.Context, c *call) (any, error) {
	key := ""
	if d.traits.bareApprovals {
		key = c.optionalKey()
	} else {
		key = c.sessionKey()
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	if key != "" {
		if _, err := d.svc.Lookup(ctx, key); err != nil {
			return nil, err
		}
	}
	open, err := d.svc.Approvals(ctx, key)
	if err != nil {
		return nil, err
	}
	bare, wrapped := []clawket.Approval{}, []clawket.SessionApproval{}
	for _, o := range open {
		a := approval(&o.Request)
		if a == nil {
			continue
		}
		bare = append(bare, *a)
		wrapped = append(wrapped, clawket.SessionApproval{SessionKey: o.SessionKey, Approval: *a})
	}
	if d.traits.bareApprovals {
		return bare, nil
	}
	return wrapped, nil
}

func approval(i *runtime.Interaction) *clawket.Approval {
	a := i.Approval
	if a == nil {
		return nil
	}
	category := a.Category.String()
	if a.Category == runtime.ApprovalCategoryUnspecified {
		category = runtime.ApprovalCategoryPermissions.String()
	}
	return &clawket.Approval{
		Kind: "exec", ID: i.InteractionID, Command: a.Subject, Category: category, Reason: jsonframe.CutUnits(a.Reason, maxReasonUnits),
		Cwd: a.WorkingDirectory, Host: a.Host, Decisions: []string{clawket.DecisionAllowOnce, clawket.DecisionDeny},
	}
}

// resolve takes consent, once, or its refusal; there is nothing lasting.
func (d *Dialect) resolve(ctx context.Context, c *call) (any, error) {
	id, word := c.text("id", clawket.MaxSessionKeyUnits), c.anyText("decision")
	if err := c.err(); err != nil {
		return nil, err
	}
	var decision runtime.Decision
	switch word {
	case clawket.DecisionAllowOnce:
		decision = runtime.DecisionAllowOnce
	case clawket.DecisionDeny:
		decision = runtime.DecisionDeny
	default:
		return nil, codes.New(codes.DecisionInvalid)
	}
	return done(d.svc.Resolve(ctx, c.person(), id, decision))
}
