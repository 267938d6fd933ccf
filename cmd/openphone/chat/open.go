package chat

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// maxImages is how many images one prompt may carry; the host has the last word.
const maxImages = 6

// open finds or creates the conversation and joins what runs in it.
func (c *terminal) open(ctx context.Context) error {
	if c.Session == "" && !c.Follow {
		return c.create(ctx)
	}
	var rows []clawket.Session
	if err := c.phone.Call(ctx, clawket.MethodSessionsList, nil, &rows); err != nil {
		return err
	}
	row, err := pick(rows, c.Session, c.Follow)
	if err != nil {
		return err
	}
	c.session = row.Key
	if err := c.selectModel(ctx); err != nil {
		return err
	}
	return c.join(ctx)
}

func (c *terminal) create(ctx context.Context) error {
	params := map[string]string{}
	id, err := c.project(ctx)
	if err != nil {
		return err
	}
	if id != "" {
		params["projectId"] = id
	}
	var row clawket.Session
	if err := c.phone.Call(ctx, clawket.MethodSessionsCreate, params, &row); err != nil {
		return err
	}
	c.session = row.Key
	return c.selectModel(ctx)
}

// pick finds a row by the beginning of its key; without one, the row whose reply is running.
func pick(rows []clawket.Session, key string, follow bool) (clawket.Session, error) {
	var found []clawket.Session
	for _, r := range rows {
		if r.Key == key {
			return r, nil
		}
		if key == "" && r.HasActiveRun || key != "" && strings.HasPrefix(r.Key, key) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return clawket.Session{}, errors.New("more than one conversation fits: run openphone session list and give the whole key with --session")
	case follow && key == "":
		return clawket.Session{}, errors.New("no reply is running: run openphone chat to start one")
	}
	return clawket.Session{}, fmt.Errorf("there is no conversation %q: run openphone session list", key)
}

// project finds the id of the wanted project; empty: the runtime's own choice.
func (c *terminal) project(ctx context.Context) (string, error) {
	if c.phone.health.Projects == nil || !*c.phone.health.Projects {
		if c.Project != "" {
			return "", errors.New("this runtime has no projects to choose from: leave --project out")
		}
		return "", nil
	}
	var list []clawket.Project
	if err := c.phone.Call(ctx, clawket.MethodProjectsList, nil, &list); err != nil {
		return "", err
	}
	want := c.Project
	if want == "" {
		want, _ = os.Getwd()
	}
	path, _ := filepath.Abs(want)
	if real, err := filepath.EvalSymlinks(path); err == nil { // the host names a directory by its real path
		path = real
	}
	for _, p := range list {
		if p.ID == want || p.Path == want || p.Path == path || c.Project != "" && p.Name == want {
			return p.ID, nil
		}
	}
	if c.Project == "" {
		return "", nil
	}
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return "", fmt.Errorf("there is no project %q: choose one of %s", c.Project, strings.Join(names, ", "))
}

func (c *terminal) selectModel(ctx context.Context) error {
	if c.Model == "" {
		return nil
	}
	var m clawket.Models
	if err := c.phone.Call(ctx, clawket.MethodModelsList, map[string]string{"sessionKey": c.session}, &m); err != nil {
		return err
	}
	ids := make([]string, len(m.Models))
	for i, x := range m.Models {
		if x.ID == c.Model {
			return c.phone.Call(ctx, clawket.MethodModelsSelect, map[string]string{
				"sessionKey": c.session, "scope": "session", "provider": x.Provider, "model": x.ID,
			}, nil)
		}
		ids[i] = x.ID
	}
	return fmt.Errorf("there is no model %q: choose one of %s", c.Model, strings.Join(ids, ", "))
}

// join shows the reply that is running and what it waits for.
func (c *terminal) join(ctx context.Context) error {
	var h clawket.History
	if err := c.phone.Call(ctx, clawket.MethodChatHistory, map[string]string{"sessionKey": c.session}, &h); err != nil {
		return err
	}
	if h.ActiveRun == nil {
		if c.Follow {
			return errors.New("no reply is running in this conversation: leave --follow out to send one")
		}
		return nil
	}
	c.run = h.ActiveRun.RunID
	c.screen.chunk(h.ActiveRun.Text, clawket.TextSnapshot)
	var approvals []approvalRow
	var questions []clawket.Question
	for method, to := range map[string]any{clawket.MethodApprovalsList: &approvals, clawket.MethodQuestionsList: &questions} {
		err := c.phone.Call(ctx, method, map[string]string{"sessionKey": c.session}, to)
		if f := (*failure)(nil); err != nil && !errors.As(err, &f) { // a runtime that never asks refuses the list
			return err
		}
	}
	return c.catchUp(ctx, approvals, questions)
}

// approvalRow reads both shapes a backend may list: an approval, or an approval with its conversation.
type approvalRow struct {
	clawket.SessionApproval
	Bare clawket.Approval
}

// UnmarshalJSON reads the row twice, once as each shape.
func (r *approvalRow) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &r.Bare); err != nil {
		return err
	}
	return json.Unmarshal(data, &r.SessionApproval)
}

// catchUp goes through what came while the page was read. Text that the page already had is not shown twice.
func (c *terminal) catchUp(ctx context.Context, approvals []approvalRow, questions []clawket.Question) error {
	missed := c.phone.drain()
	var deltas string
	for _, u := range missed {
		if u.Type == clawket.UpdateMessageChunk && u.RunID == c.run && u.TextMode == clawket.TextDelta && u.Text != nil {
			deltas += *u.Text
		}
	}
	known := overlap(c.screen.shown, deltas)
	for _, u := range missed {
		if u.Type == clawket.UpdateMessageChunk && u.RunID == c.run && u.TextMode == clawket.TextDelta && u.Text != nil {
			n := min(known, len(*u.Text))
			rest := (*u.Text)[n:]
			known -= n
			u.Text = &rest
		}
		if err := c.handle(ctx, u); err != nil {
			return err
		}
	}
	if c.run == "" {
		return nil // it ended meanwhile
	}
	for i := range approvals {
		a := &approvals[i].Approval
		if a.ID == "" {
			a = &approvals[i].Bare
		}
		if err := c.asked(ctx, &ask{approval: a}); err != nil {
			return err
		}
	}
	for i := range questions {
		if err := c.asked(ctx, &ask{question: &questions[i], answers: map[string][]string{}}); err != nil {
			return err
		}
	}
	return nil
}

// overlap is how many bytes of next the text already ends with.
func overlap(text, next string) int {
	for n := min(len(text), len(next)); n > 0; n-- {
		if strings.HasSuffix(text, next[:n]) {
			return n
		}
	}
	return 0
}

func readImages(files []string) ([]clawket.Attachment, error) {
	if len(files) > maxImages {
		return nil, fmt.Errorf("%d images are too many: at most %d go with one message", len(files), maxImages)
	}
	var list []clawket.Attachment
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		mime := http.DetectContentType(data)
		if !strings.HasPrefix(mime, "image/") {
			return nil, fmt.Errorf("%s is not an image: use png, jpeg, webp or gif", f)
		}
		list = append(list, clawket.Attachment{
			Type: "image", MIMEType: mime, Name: filepath.Base(f), Content: base64.StdEncoding.EncodeToString(data),
		})
	}
	return list, nil
}
