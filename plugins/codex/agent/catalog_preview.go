package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/sdk/runtime"
	"golang.org/x/sync/errgroup"
)

const (
	previewReaders = 3                // threads looked at side by side
	maxPreviews    = 512              // last messages kept
	previewRetry   = 30 * time.Second // a failed look is not repeated before
)

// preview is what was last said in a thread, good for one native version of it.
type preview struct {
	version string
	last    *runtime.LastMessage // nil: the look failed
	at      time.Time
}

// lastMessages gives the last message of each thread; nil where it could not be read, which spoils nothing. Only the
// short form of turns is asked for, never tools or whole histories (CX-22), and only for versions not yet known.
func (l *library) lastMessages(ctx context.Context, client *appserver.Client, threads []appserver.Thread) []*runtime.LastMessage {
	list := make([]*runtime.LastMessage, len(threads))
	var g errgroup.Group
	g.SetLimit(previewReaders)
	for i, t := range threads {
		version := fmt.Sprintf("%v:%v", t.UpdatedAt, t.RecencyAt)
		l.mu.Lock()
		p, ok := l.previews[t.ID]
		l.mu.Unlock()
		if ok && p.version == version && (p.last != nil || l.now().Sub(p.at) < previewRetry) {
			list[i] = p.last
			continue
		}
		g.Go(func() error {
			last, err := readLast(ctx, client, t.ID)
			if err != nil {
				l.log.Debug("preview not read", "err", readError(err))
			}
			list[i] = last
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(l.previews) >= maxPreviews {
				clear(l.previews)
			}
			l.previews[t.ID] = preview{version: version, last: last, at: l.now()}
			return nil
		})
	}
	_ = g.Wait() // the functions never fail
	return list
}

// readLast finds the last thing a person or the agent said in the newest turns.
func readLast(ctx context.Context, client *appserver.Client, threadID string) (*runtime.LastMessage, error) {
	page, err := client.Turns(ctx, appserver.PageParams{ThreadID: threadID, Limit: previewRead, Direction: "desc", ItemsView: "summary"})
	if appserver.Classify(err) == appserver.RefusalEmptyHistory {
		return &runtime.LastMessage{}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, turn := range page.Data {
		for _, it := range slices.Backward(turn.Items) {
			if m, ok := lastMessage(turn, it); ok {
				return m, nil
			}
		}
	}
	return &runtime.LastMessage{}, nil
}

func lastMessage(turn appserver.Turn, it appserver.Item) (*runtime.LastMessage, bool) {
	m, ok := messageOf(turn, it)
	if !ok || m.Role != runtime.RoleUser && m.Role != runtime.RoleAssistant {
		return nil, false
	}
	last := &runtime.LastMessage{Role: m.Role, CreatedAt: m.CreatedAt, HasImage: hasImage(it)}
	for _, p := range m.Parts {
		if last.Text != "" && p.Text != "" {
			last.Text += "\n"
		}
		last.Text += p.Text
	}
	last.Text = cutUnits(last.Text, shownUnits)
	return last, last.Text != "" || last.HasImage
}
