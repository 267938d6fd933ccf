package sessions

import (
	"strings"
	"unicode/utf8"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/jsonframe"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	maxFields      = 10
	maxAnswerUnits = 64_000
)

// showable reports whether every field can be filled in by a person.
func showable(q *runtime.Question) bool {
	if len(q.Fields) == 0 || len(q.Fields) > maxFields {
		return false
	}
	ids := map[string]bool{}
	for _, f := range q.Fields {
		if f.FieldID == "" || ids[f.FieldID] {
			return false
		}
		ids[f.FieldID] = true
		switch f.Kind {
		case runtime.FieldKindSelect:
			if len(f.Options) == 0 && !f.AllowCustom {
				return false
			}
		case runtime.FieldKindConfirm, runtime.FieldKindLine, runtime.FieldKindText:
		default:
			return false
		}
	}
	return true
}

// fill checks a person's answer against the question: every field, nothing else, each value one that may be given.
func fill(q *runtime.Question, given map[string][]string) (*runtime.Answers, error) {
	if len(given) != len(q.Fields) {
		return nil, codes.New(codes.AnswerInvalid)
	}
	answers := &runtime.Answers{}
	for _, f := range q.Fields {
		values, ok := given[f.FieldID]
		if !ok || !fits(f, values) {
			return nil, codes.New(codes.AnswerInvalid)
		}
		answers.Answers = append(answers.Answers, runtime.Answer{FieldID: f.FieldID, Values: values})
	}
	return answers, nil
}

func fits(f runtime.Field, values []string) bool {
	for _, v := range values {
		if !utf8.ValidString(v) || jsonframe.Units(v) > maxAnswerUnits {
			return false
		}
	}
	switch f.Kind {
	case runtime.FieldKindConfirm:
		return len(values) == 1 && (values[0] == "true" || values[0] == "false")
	case runtime.FieldKindLine:
		return len(values) == 1 && !strings.ContainsAny(values[0], "\r\n")
	case runtime.FieldKindText:
		return len(values) == 1
	}
	if len(values) == 0 || len(values) > 1 && !f.MultiSelect {
		return false
	}
	listed := map[string]bool{}
	for _, o := range f.Options {
		listed[o.Label] = true
	}
	seen := map[string]bool{}
	for _, v := range values {
		custom := !listed[v]
		if seen[v] || custom && (!f.AllowCustom || len(values) > 1 || strings.TrimSpace(v) == "") {
			return false // several listed labels, or one custom text
		}
		seen[v] = true
	}
	return true
}
