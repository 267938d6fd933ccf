package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// ask is something the agent waits for: an approval or a question.
type ask struct {
	approval *clawket.Approval
	question *clawket.Question
	field    int
	answers  map[string][]string
}

func (a *ask) id() string {
	if a.approval != nil {
		return a.approval.ID
	}
	return a.question.ID
}

// show writes what is asked; prompt is written without a line feed, so that the answer stands behind it.
func (c *terminal) show(a *ask) {
	if a.approval != nil {
		c.screen.approval(*a.approval)
		c.screen.write(bold, "Allow once? [y/N] ")
		return
	}
	q := a.question
	if a.field == 0 {
		c.screen.line(bold, "? %s", q.Title)
		if q.Message != "" {
			c.screen.line(plain, "  %s", q.Message)
		}
	}
	switch q.Kind {
	case clawket.QuestionForm:
		f := q.Fields[a.field]
		if f.Title != q.Title {
			c.screen.line(plain, "  %s", f.Title)
		}
		for i, o := range f.Options {
			line := fmt.Sprintf("  %d. %s", i+1, o.Label)
			if o.Description != "" {
				line += " — " + o.Description
			}
			c.screen.line(plain, "%s", line)
		}
		c.screen.write(bold, answerPrompt(len(f.Options), f.AllowCustom, f.MultiSelect))
	case clawket.QuestionSelect:
		for i, o := range q.Options {
			c.screen.line(plain, "  %d. %s", i+1, o)
		}
		c.screen.write(bold, answerPrompt(len(q.Options), false, false))
	case clawket.QuestionConfirm:
		c.screen.write(bold, "[y/N] ")
	default:
		if q.Prefill != "" {
			c.screen.line(dim, "  (empty takes: %s)", oneLine([]byte(q.Prefill)))
		}
		c.screen.write(bold, "answer: ")
	}
}

func answerPrompt(options int, custom, many bool) string {
	switch {
	case options == 0:
		return "answer: "
	case many:
		return fmt.Sprintf("numbers from 1-%d, separated by commas: ", options)
	case custom:
		return fmt.Sprintf("1-%d or your own words: ", options)
	}
	return fmt.Sprintf("1-%d: ", options)
}

// answer takes a line for the ask at the head. When it is complete it goes to the host.
func (c *terminal) answer(ctx context.Context, line string) error {
	a := c.asks[0]
	yes := strings.EqualFold(line, "y") || strings.EqualFold(line, "yes")
	if a.approval != nil {
		decision := clawket.DecisionDeny
		if yes {
			decision = clawket.DecisionAllowOnce
		}
		return c.settle(ctx, clawket.MethodApprovalsResolve, map[string]any{"id": a.approval.ID, "decision": decision})
	}
	q := a.question
	params := map[string]any{"sessionKey": c.session, "questionId": q.ID}
	switch q.Kind {
	case clawket.QuestionForm:
		f := q.Fields[a.field]
		labels := make([]string, len(f.Options))
		for i, o := range f.Options {
			labels[i] = o.Label
		}
		values := choose(labels, line, f.MultiSelect)
		if values == nil {
			if !f.AllowCustom && len(labels) > 0 || strings.TrimSpace(line) == "" {
				c.show(a)
				return nil
			}
			values = []string{line}
		}
		a.answers[f.ID] = values
		if a.field++; a.field < len(q.Fields) {
			c.show(a)
			return nil
		}
		params["answers"] = a.answers
	case clawket.QuestionSelect:
		v := choose(q.Options, line, false)
		if v == nil {
			c.show(a)
			return nil
		}
		params["value"] = v[0]
	case clawket.QuestionConfirm:
		params["confirmed"] = yes
	default:
		if line == "" {
			line = q.Prefill
		}
		params["value"] = line
	}
	return c.settle(ctx, clawket.MethodQuestionsRespond, params)
}

// dismiss answers the head when the input is at its end: nothing is ever allowed by silence.
func (c *terminal) dismiss(ctx context.Context) error {
	a := c.asks[0]
	c.screen.line(dim, "(no answer: %s)", map[bool]string{true: "denied", false: "cancelled"}[a.approval != nil])
	if a.approval != nil {
		return c.settle(ctx, clawket.MethodApprovalsResolve, map[string]any{"id": a.approval.ID, "decision": clawket.DecisionDeny})
	}
	return c.settle(ctx, clawket.MethodQuestionsRespond,
		map[string]any{"sessionKey": c.session, "questionId": a.question.ID, "cancelled": true})
}

// settle sends an answer and goes on to the next ask. A refusal is shown: somebody else was faster, or it is too late.
func (c *terminal) settle(ctx context.Context, method string, params map[string]any) error {
	c.asks = c.asks[1:]
	err := c.phone.Call(ctx, method, params, nil)
	if f := (*failure)(nil); errors.As(err, &f) {
		c.screen.line(red, "! %s", f.Message)
	} else if err != nil {
		return err
	}
	if len(c.asks) > 0 {
		c.show(c.asks[0])
	}
	return nil
}

// resolved drops an ask that ended without us.
func (c *terminal) resolved(id, how string) {
	for i, a := range c.asks {
		if a.id() != id {
			continue
		}
		c.asks = append(c.asks[:i], c.asks[i+1:]...)
		if i == 0 {
			if how == "" {
				how = "closed"
			}
			c.screen.line(dim, "(no longer open: %s)", how)
			if len(c.asks) > 0 {
				c.show(c.asks[0])
			}
		}
		return
	}
}

// choose reads numbers or labels; nil when the line names none of them.
func choose(labels []string, line string, many bool) []string {
	parts := []string{line}
	if many {
		parts = strings.Split(line, ",")
	}
	var picked []string
	for _, p := range parts {
		p = strings.TrimSpace(p)
		if n, err := strconv.Atoi(p); err == nil && n >= 1 && n <= len(labels) {
			picked = append(picked, labels[n-1])
			continue
		}
		found := false
		for _, l := range labels {
			if strings.EqualFold(l, p) {
				picked, found = append(picked, l), true
			}
		}
		if !found {
			return nil
		}
	}
	return picked
}
