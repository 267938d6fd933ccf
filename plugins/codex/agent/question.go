package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// question is one field of a native question.
type question struct {
	ID       string           `json:"id"`
	Header   appserver.String `json:"header"`
	Question appserver.String `json:"question"`
	Other    bool             `json:"isOther"`
	Secret   bool             `json:"isSecret"`
	Options  []struct {
		Label       string           `json:"label"`
		Description appserver.String `json:"description"`
	} `json:"options"`
}

// questions makes one question of all fields, under their own ids; false when one of them cannot be shown.
func (k *ask) questions(q *request) bool {
	if len(q.Questions) == 0 || len(q.Questions) > maxQuestions || k.run == nil {
		return false
	}
	out := &runtime.Question{}
	for _, x := range q.Questions {
		if x.Secret || x.ID == "" || len(x.Options) > maxChoices {
			return false
		}
		f := runtime.Field{
			FieldID: x.ID, Title: cut(string(x.Question), maxPlainReason), Header: string(x.Header),
			Kind: runtime.FieldKindSelect, AllowCustom: x.Other,
		}
		if len(x.Options) == 0 {
			f.Kind, f.AllowCustom = runtime.FieldKindText, true
		}
		for _, o := range x.Options {
			f.Options = append(f.Options, runtime.FieldOption{Label: o.Label, Description: string(o.Description)})
		}
		out.Fields = append(out.Fields, f)
	}
	out.Title = out.Fields[0].Header
	if out.Title == "" {
		out.Title = out.Fields[0].Title
	}
	k.interaction.Question = out
	k.answer = func(r *runtime.ResolveInteractionRequest) (any, error) {
		values, err := answersOf(r, out.Fields)
		if err != nil {
			return nil, err
		}
		type one struct {
			Answers []string `json:"answers"`
		}
		all := map[string]one{}
		for id, v := range values {
			all[id] = one{v}
		}
		k.closure = runtime.ClosureAnswered
		return map[string]any{"answers": all}, nil
	}
	return true
}

// answersOf takes answers to all fields, or none.
func answersOf(r *runtime.ResolveInteractionRequest, fields []runtime.Field) (map[string][]string, error) {
	bad := codes.New(codes.AnswerInvalid)
	if r.Answers == nil || len(r.Answers.Answers) != len(fields) {
		return nil, bad
	}
	values := map[string][]string{}
	for _, x := range r.Answers.Answers {
		i := slices.IndexFunc(fields, func(f runtime.Field) bool { return f.FieldID == x.FieldID })
		if i < 0 || len(x.Values) != 1 || strings.TrimSpace(x.Values[0]) == "" {
			return nil, bad
		}
		f := fields[i]
		listed := slices.ContainsFunc(f.Options, func(o runtime.FieldOption) bool { return o.Label == x.Values[0] })
		if f.Kind == runtime.FieldKindSelect && !f.AllowCustom && !listed {
			return nil, bad
		}
		values[x.FieldID] = x.Values
	}
	if len(values) != len(fields) {
		return nil, bad
	}
	return values, nil
}

// property is one property of an elicitation's schema.
type property struct {
	Type        string           `json:"type"`
	Title       appserver.String `json:"title"`
	Description appserver.String `json:"description"`
	Enum        []string         `json:"enum"`
	Format      string           `json:"format"`
}

// elicitation shows the form of an MCP server: text, choices, yes or no, numbers. Everything else is refused.
func (k *ask) elicitation(q *request) bool {
	if q.Mode != "form" && q.Mode != "" {
		return false
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(q.Schema, &schema) != nil || len(schema.Properties) == 0 || len(schema.Properties) > maxQuestions {
		return false
	}
	out := &runtime.Question{Title: cut(string(q.Message), maxPlainReason), Message: string(q.ServerName)}
	types := map[string]string{}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var p property
		if json.Unmarshal(schema.Properties[name], &p) != nil || p.Format == "password" || len(p.Enum) > maxChoices {
			return false
		}
		f := runtime.Field{FieldID: name, Title: cut(string(p.Description), maxPlainReason), Header: string(p.Title)}
		if f.Title == "" {
			f.Title = name
		}
		switch {
		case p.Type == "string" && len(p.Enum) > 0:
			f.Kind = runtime.FieldKindSelect
			for _, e := range p.Enum {
				f.Options = append(f.Options, runtime.FieldOption{Label: e})
			}
		case p.Type == "boolean":
			f.Kind = runtime.FieldKindConfirm
		case p.Type == "string", p.Type == "number", p.Type == "integer":
			f.Kind = runtime.FieldKindLine
		default:
			return false
		}
		types[name] = p.Type
		out.Fields = append(out.Fields, f)
	}
	k.interaction.Question = out
	k.decline = elicited("cancel", nil)
	k.answer = func(r *runtime.ResolveInteractionRequest) (any, error) {
		values, err := answersOf(r, out.Fields)
		if err != nil {
			return nil, err
		}
		content := map[string]any{}
		for name, v := range values {
			if content[name], err = typed(types[name], v[0]); err != nil {
				return nil, codes.New(codes.AnswerInvalid)
			}
		}
		k.closure = runtime.ClosureAnswered
		return elicited("accept", content), nil
	}
	return true
}

// typed turns an answer into the JSON type the schema wants.
func typed(kind, s string) (any, error) {
	switch kind {
	case "boolean":
		return strconv.ParseBool(s)
	case "integer":
		return strconv.ParseInt(s, 10, 64)
	case "number":
		return strconv.ParseFloat(s, 64)
	}
	return s, nil
}
