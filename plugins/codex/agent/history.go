package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	itemPage     = 32      // native items asked for at once
	fullTurnPage = 8       // whole turns asked for at once, for threads of older versions
	turnPage     = 50      // turns without items asked for at once
	maxReadPages = 64      // native pages read for one answer
	maxCursor    = 4096    // characters of a cursor
	maxMessages  = 40      // messages of a page when the host does not say
	maxBytes     = 7 << 20 // bytes of a page when the host does not say
	maxClientID  = 200     // length of a client message id that is taken for a run id
)

// place is where an older page begins. Native pages hold more rows than a page of ours may, and the newest one grows;
// so a place names the native page and the last row that was shown of it, not a position.
type place struct {
	Whole  bool   `json:"w,omitempty"` // the thread has no items/list, its turns are read whole
	Native string `json:"n,omitempty"` // cursor of the native page the last shown row was on
	After  string `json:"a,omitempty"` // that row: everything older is next
	Turn   string `json:"b,omitempty"` // turn of the row before the native page
	Turns  string `json:"t,omitempty"` // cursor of the page of turns the native page begins in
}

// row is one message with the place it was read at. Rows are newest first.
type row struct {
	message runtime.Message
	turn    string
	notice  bool
	at      place
}

// ReadHistory reads one page of what the runtime recorded. An empty conversation is an empty page.
func (l *library) ReadHistory(ctx context.Context, r *runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
	seq := l.seq()
	answer := &runtime.ReadHistoryResponse{AsOfSeq: seq}
	from, err := parsePlace(r.Cursor)
	if err == nil && r.Session.NativeID == "" {
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	client, err := l.client(ctx)
	if err != nil {
		return nil, err
	}
	limit, size := int(r.MaxMessages), r.MaxBytes
	if limit == 0 {
		limit = maxMessages
	}
	if size == 0 {
		size = maxBytes
	}
	h := &historyReader{client: client, thread: r.Session.NativeID, at: from, want: limit + 1, skipTo: from.After}
	rows, err := h.read(ctx)
	if err != nil {
		return nil, readError(err)
	}
	kept, err := fitting(rows, limit, size)
	if err != nil {
		return nil, err
	}
	if kept < len(rows) {
		last := rows[kept-1]
		last.at.After = last.message.MessageID
		answer.NextCursor = last.at.String()
	}
	answer.Messages = inOrder(rows[:kept], kept < len(rows) && rows[kept].turn == rows[kept-1].turn, from.After != "")
	return answer, nil
}

// fitting counts the newest rows that fit into a page.
func fitting(rows []row, limit int, size uint64) (int, error) {
	var sum uint64
	for i, r := range rows {
		n := messageSize(r.message)
		if n > size {
			if i == 0 {
				return 0, codes.New(codes.MessageTooLarge)
			}
			return i, nil
		}
		if sum += n; i == limit || sum > size {
			return i, nil
		}
	}
	return len(rows), nil
}

// messageSize estimates the bytes a message takes on the wire, where files are in base64.
func messageSize(m runtime.Message) uint64 {
	n := 200
	for _, p := range m.Parts {
		n += len(p.Text) + (len(p.Data)+2)/3*4
	}
	if m.ToolCall != nil {
		n += len(m.ToolCall.Input.Data) + len(m.ToolCall.Output.Data) + len(m.ToolCall.Title)
	}
	return uint64(n)
}

// inOrder puts rows oldest first. The runtime records items when they end; a turn is shown in the order its items
// began, but only where all of it is on this page and every item has a start.
func inOrder(rows []row, cutOld, cutNew bool) []runtime.Message {
	list := slices.Clone(rows)
	slices.Reverse(list)
	for start := 0; start < len(list); {
		end := start
		clocks := true
		for end < len(list) && list[end].turn == list[start].turn {
			clocks = clocks && !list[end].message.CreatedAt.IsZero()
			end++
		}
		if whole := (start > 0 || !cutOld) && (end < len(list) || !cutNew); whole && clocks {
			slices.SortStableFunc(list[start:end], func(a, b row) int {
				if a.notice != b.notice { // a notice is about the whole turn
					if a.notice {
						return 1
					}
					return -1
				}
				return a.message.CreatedAt.Compare(b.message.CreatedAt)
			})
		}
		start = end
	}
	messages := make([]runtime.Message, len(list))
	for i, r := range list {
		messages[i] = r.message
	}
	return messages
}

// historyReader collects rows of one thread for one answer.
type historyReader struct {
	client *appserver.Client
	thread string
	at     place
	want   int
	skipTo string // row after which to begin; empty: begun

	rows  []row
	turns *turnIndex
}

func (h *historyReader) read(ctx context.Context) ([]row, error) {
	h.turns = &turnIndex{client: h.client, thread: h.thread, cursor: h.at.Turns, known: map[string]foundTurn{}}
	next := h.items
	if h.at.Whole {
		next = h.wholeTurns
	}
	for range maxReadPages {
		more, err := next(ctx)
		if appserver.Classify(err) == appserver.RefusalEmptyHistory {
			if h.at.Whole || h.at.Native != "" {
				return nil, nil // nothing is recorded yet
			}
			h.at.Whole = true
			next = h.wholeTurns
			continue
		}
		if err != nil {
			return nil, err
		}
		if !more || len(h.rows) >= h.want {
			break
		}
	}
	if h.skipTo != "" {
		return nil, codes.New(codes.CursorInvalid)
	}
	return h.rows, nil
}

// items reads one page of items.
func (h *historyReader) items(ctx context.Context) (more bool, err error) {
	page, err := h.client.Items(ctx, appserver.PageParams{ThreadID: h.thread, Cursor: h.at.Native, Limit: itemPage, Direction: "desc"})
	if err != nil {
		return false, err
	}
	previous := h.at.Turn
	for i, r := range page.Data {
		turn, err := h.turns.find(ctx, r.TurnID)
		if err != nil {
			return false, err
		}
		if i == 0 {
			h.at.Turns = turn.page
		}
		if r.TurnID != previous {
			h.notice(turn.Turn)
		}
		previous = r.TurnID
		if r.Item.StartedAtMs == nil {
			r.Item.StartedAtMs = r.StartedAtMs
		}
		if r.Item.CompletedAtMs == nil {
			r.Item.CompletedAtMs = r.CompletedAtMs
		}
		h.add(turn.Turn, r.TurnID, r.Item)
	}
	h.at.Turn = previous
	return h.advance(page.Next)
}

// wholeTurns reads one page of turns with their items.
func (h *historyReader) wholeTurns(ctx context.Context) (more bool, err error) {
	page, err := h.client.Turns(ctx, appserver.PageParams{ThreadID: h.thread, Cursor: h.at.Native, Limit: fullTurnPage, Direction: "desc", ItemsView: "full"})
	if err != nil {
		return false, err
	}
	for _, t := range page.Data {
		h.notice(t)
		for _, it := range slices.Backward(t.Items) {
			h.add(t, t.ID, it)
		}
	}
	return h.advance(page.Next)
}

// advance goes to the next native page; a cursor that comes back ends the reading.
func (h *historyReader) advance(next *string) (bool, error) {
	if next == nil || *next == "" || *next == h.at.Native {
		return false, nil
	}
	h.at.Native = *next
	return true, nil
}

// add appends the row of an item, if it has one.
func (h *historyReader) add(turn appserver.Turn, turnID string, it appserver.Item) {
	m, ok := messageOf(turn, it)
	if !ok {
		return
	}
	m.NativeRunID = turnID
	h.push(row{message: m, turn: turnID, at: h.at})
}

// notice appends the fixed sentence of a turn that did not end well: failed, or cut off by the end of its process, which
// left it without an end time. It comes first because rows are newest first.
func (h *historyReader) notice(t appserver.Turn) {
	end := ending(t, t.CompletedAt != nil)
	if !t.Terminal() || end.Reason != runtime.EndReasonFailed {
		return
	}
	at := seconds(t.CompletedAt)
	if at.IsZero() {
		at = seconds(t.StartedAt)
	}
	h.push(row{turn: t.ID, notice: true, at: h.at, message: runtime.Message{
		MessageID: "codex-turn-error:" + t.ID, Role: runtime.RoleSystem, NoticeCode: end.Code, NativeRunID: t.ID, CreatedAt: at,
	}})
}

func (h *historyReader) push(r row) {
	if h.skipTo == "" {
		h.rows = append(h.rows, r)
	} else if r.message.MessageID == h.skipTo {
		h.skipTo = ""
	}
}

// turnIndex finds turns by id while a history is read from new to old.
type turnIndex struct {
	client *appserver.Client
	thread string
	cursor string // of the next page
	done   bool
	known  map[string]foundTurn
}

type foundTurn struct {
	appserver.Turn
	page string // cursor of the page the turn was on
}

// find reads pages until the turn is there. A turn that is nowhere is an unknown one, not an error.
func (x *turnIndex) find(ctx context.Context, id string) (foundTurn, error) {
	for range maxReadPages {
		if t, ok := x.known[id]; ok || x.done {
			return t, nil
		}
		page, err := x.client.Turns(ctx, appserver.PageParams{ThreadID: x.thread, Cursor: x.cursor, Limit: turnPage, Direction: "desc", ItemsView: "notLoaded"})
		if err != nil {
			return foundTurn{}, err
		}
		for _, t := range page.Data {
			x.known[t.ID] = foundTurn{Turn: t, page: x.cursor}
		}
		if page.Next == nil || *page.Next == "" || *page.Next == x.cursor {
			x.done = true
		} else {
			x.cursor = *page.Next
		}
	}
	return foundTurn{}, nil
}

// String is the place as a cursor.
func (p place) String() string {
	b, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePlace(cursor string) (place, error) {
	var p place
	if cursor == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(cursor) > maxCursor || json.Unmarshal(b, &p) != nil || p.After == "" {
		return p, codes.New(codes.CursorInvalid)
	}
	return p, nil
}
