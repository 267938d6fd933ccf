package agent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/protocol/golden"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// fakeThread serves items and turns in pages, as the app server does.
type fakeThread struct {
	items []appserver.ItemRow // oldest first
	turns []appserver.Turn    // oldest first
}

func (f *fakeThread) serve(t *testing.T) handler {
	return func(method string, raw json.RawMessage) golden.Answer {
		p := params[appserver.PageParams](t, raw)
		switch method {
		case "thread/items/list":
			return page(f.items, p)
		case "thread/turns/list":
			return page(f.turns, p)
		}
		return fail(-32600, "unexpected "+method)
	}
}

// page gives rows newest first; a cursor is the number of rows from the oldest that are left.
func page[T any](rows []T, p appserver.PageParams) golden.Answer {
	if p.Direction != "desc" {
		return fail(-32600, "direction")
	}
	end := len(rows)
	if p.Cursor != "" {
		n, err := strconv.Atoi(p.Cursor)
		if err != nil || n > len(rows) {
			return fail(-32600, "invalid cursor: "+p.Cursor)
		}
		end = n
	}
	start := max(0, end-p.Limit)
	data := slices.Clone(rows[start:end])
	slices.Reverse(data)
	var next *string
	if start > 0 {
		s := strconv.Itoa(start)
		next = &s
	}
	return ok(map[string]any{"data": data, "nextCursor": next})
}

// turn adds a turn with a prompt, a thought, a command and an answer.
func (f *fakeThread) turn(n int, status string) {
	id := fmt.Sprintf("turn-%d", n)
	at := float64(1_700_000_000 + 10*n)
	t := appserver.Turn{ID: id, Status: appserver.String(status), StartedAt: &at, CompletedAt: &at}
	if status == "failed" {
		t.Error = &appserver.TurnError{Message: "unexpected status 401 Unauthorized: key sk-secret", Info: json.RawMessage(`{"httpConnectionFailed":{"httpStatusCode":401}}`)}
	}
	f.turns = append(f.turns, t)
	ms := at * 1000
	clock := func() *float64 { ms++; v := ms; return &v }
	f.add(id, appserver.Item{ID: "u-" + id, Type: "userMessage", ClientID: "run-" + appserver.String(id), StartedAtMs: clock(), Content: json.RawMessage(`[{"type":"text","text":"Q"}]`)})
	if status == "failed" {
		return
	}
	f.add(id, appserver.Item{ID: "r-" + id, Type: "reasoning", StartedAtMs: clock(), Content: json.RawMessage(`[]`)})
	begun := clock()
	f.add(id, appserver.Item{ID: "m-" + id, Type: "agentMessage", Text: " A\n", StartedAtMs: clock()})
	f.add(id, appserver.Item{ID: "c-" + id, Type: "commandExecution", Status: "completed", Command: "ls", StartedAtMs: begun})
}

func (f *fakeThread) add(turn string, it appserver.Item) {
	f.items = append(f.items, appserver.ItemRow{TurnID: turn, Item: it})
}

func readAll(t *testing.T, l *library, limit uint32, between func()) (pages [][]runtime.Message) {
	t.Helper()
	cursor := ""
	for range 50 {
		r, err := l.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: runtime.SessionRef{NativeID: "t"}, MaxMessages: limit, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, r.Messages)
		if cursor = r.NextCursor; cursor == "" {
			return pages
		}
		if between != nil {
			between()
		}
	}
	t.Fatal("no end")
	return nil
}

func ids(list []runtime.Message) []string {
	var names []string
	for _, m := range list {
		names = append(names, m.MessageID)
	}
	return names
}

func TestHistoryPages(t *testing.T) {
	rules.Covers(t, "CX-10", "CX-29")
	f := &fakeThread{}
	for n := range 32 {
		status := "completed"
		if n == 3 {
			status = "failed"
		}
		f.turn(n, status)
	}
	// 31 turns of three messages, one of a prompt and a notice: 95 messages.
	l, _, _ := fakeLibrary(t, f.serve(t), "", "")
	pages := readAll(t, l, 40, nil)
	var sizes []int
	var all []string
	for _, p := range pages {
		sizes = append(sizes, len(p))
		all = append(ids(p), all...)
	}
	if diff := cmp.Diff([]int{40, 40, 15}, sizes); diff != "" {
		t.Errorf("page sizes (-want +got):\n%s", diff)
	}
	seen := map[string]bool{}
	for _, id := range all {
		if seen[id] {
			t.Errorf("%s twice", id)
		}
		seen[id] = true
	}
	if diff := cmp.Diff([]string{"u-turn-31", "toolcall_c-turn-31", "m-turn-31"}, all[len(all)-3:]); diff != "" {
		t.Errorf("the command began before the answer (-want +got):\n%s", diff)
	}
	oldest := pages[2]
	var failed *runtime.Message
	for i, m := range oldest {
		if m.MessageID == "codex-turn-error:turn-3" {
			failed = &oldest[i]
			if i == 0 || oldest[i-1].MessageID != "u-turn-3" {
				t.Errorf("the notice stands after %v", ids(oldest[:i]))
			}
		}
	}
	if failed == nil || failed.NoticeCode != codeAuth || failed.Role != runtime.RoleSystem || failed.CreatedAt.Unix() != 1_700_000_030 || len(failed.Parts) != 0 {
		t.Fatalf("notice = %+v", failed)
	}
	if got := oldest[0]; got.RunID != "run-turn-0" || got.NativeRunID != "turn-0" || got.Role != runtime.RoleUser {
		t.Errorf("first prompt = %+v", got)
	}
	if got := oldest[2]; got.Parts[0].Text != " A\n" {
		t.Errorf("text = %q", got.Parts[0].Text)
	}
}

func TestHistoryWhileItGrows(t *testing.T) {
	f := &fakeThread{}
	for n := range 12 {
		f.turn(n, "completed")
	}
	grown := 12
	l, _, _ := fakeLibrary(t, f.serve(t), "", "")
	pages := readAll(t, l, 5, func() {
		f.turn(grown, "completed")
		grown++
	})
	var all []string
	for _, p := range pages {
		all = append(ids(p), all...)
	}
	if len(all) != 36 {
		t.Errorf("%d messages, want the 36 there were at the beginning: %v", len(all), all)
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 36 {
		t.Errorf("%d different messages", n)
	}
}

func TestHistoryTellsOfTurnsThatWereCutOff(t *testing.T) {
	f := &fakeThread{}
	f.turn(0, "interrupted") // a person stopped it
	f.turn(1, "interrupted")
	f.turns[1].CompletedAt = nil // its process died
	f.turn(2, "inProgress")
	f.turns[2].CompletedAt = nil
	l, _, _ := fakeLibrary(t, f.serve(t), "", "")
	var notices []string
	for _, m := range readAll(t, l, 40, nil)[0] {
		if m.NoticeCode != "" {
			notices = append(notices, m.MessageID+" "+m.NoticeCode)
		}
	}
	if diff := cmp.Diff([]string{"codex-turn-error:turn-1 " + codes.Interrupted}, notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}

func TestHistoryBounds(t *testing.T) {
	f := &fakeThread{}
	f.turn(0, "completed")
	at := 1.0
	f.turns = append(f.turns, appserver.Turn{ID: "big", Status: "completed"})
	f.add("big", appserver.Item{ID: "big", Type: "agentMessage", Text: appserver.String(strings.Repeat("x", 5000)), StartedAtMs: &at})
	l, _, _ := fakeLibrary(t, f.serve(t), "", "")
	read := func(r runtime.ReadHistoryRequest) (*runtime.ReadHistoryResponse, error) {
		r.Session = runtime.SessionRef{NativeID: "t"}
		return l.ReadHistory(t.Context(), &r)
	}
	if _, err := read(runtime.ReadHistoryRequest{MaxBytes: 4000}); codes.Of(err) != codes.MessageTooLarge {
		t.Errorf("oversize message: %v", err)
	}
	r, err := read(runtime.ReadHistoryRequest{MaxBytes: 5300})
	if err != nil || len(r.Messages) != 1 || r.NextCursor == "" || r.AsOfSeq != 7 {
		t.Errorf("one large message: %+v, %v", r, err)
	}
	for _, cursor := range []string{"%", "e30", base64.RawURLEncoding.EncodeToString([]byte(`{"a":"gone"}`)), strings.Repeat("A", 5000)} {
		if _, err := read(runtime.ReadHistoryRequest{Cursor: cursor}); codes.Of(err) != codes.CursorInvalid {
			t.Errorf("cursor %.20s: %v", cursor, err)
		}
	}
	if r, err := l.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: runtime.SessionRef{SessionID: "s"}}); err != nil || len(r.Messages) != 0 {
		t.Errorf("no native thread: %+v, %v", r, err)
	}
}

func TestHistoryOfEmptyAndLegacyThreads(t *testing.T) {
	empty := func(method string, _ json.RawMessage) golden.Answer {
		if method == "thread/turns/list" {
			return fail(-32601, "list_turns is not supported yet")
		}
		return fail(-32601, "thread/items/list is not supported yet")
	}
	l, _, _ := fakeLibrary(t, empty, "", "")
	r, err := l.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: runtime.SessionRef{NativeID: "t"}})
	if err != nil || len(r.Messages) != 0 || r.NextCursor != "" {
		t.Errorf("unmaterialized thread: %+v, %v", r, err)
	}
	l, _, _ = fakeLibrary(t, recordedAnswers(t, "59-legacy-history-mode.jsonl"), "", "")
	r, err = l.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: runtime.SessionRef{NativeID: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Messages {
		got = append(got, m.Role.String()+" "+m.Parts[0].Text)
	}
	if diff := cmp.Diff([]string{"user Q1", "assistant Note", "assistant Answer", "user Q2", "assistant A2"}, got); diff != "" {
		t.Errorf("legacy thread (-want +got):\n%s", diff)
	}
	l, _, _ = fakeLibrary(t, func(string, json.RawMessage) golden.Answer {
		return fail(-32600, "thread not loaded: 01a")
	}, "", "")
	if _, err := l.ReadHistory(t.Context(), &runtime.ReadHistoryRequest{Session: runtime.SessionRef{NativeID: "t"}}); codes.Of(err) != codes.SessionLost {
		t.Errorf("lost thread: %v", err)
	}
}

func TestTurnErrorCodes(t *testing.T) {
	rules.Covers(t, "CX-10")
	refusal := "The 'gpt-5.9' model is not supported when using Codex with a ChatGPT account."
	for _, tt := range []struct {
		name, message, info, want string
	}{
		{"rejected key", "x", `{"httpConnectionFailed":{"httpStatusCode":401}}`, codeAuth},
		{"401 after many attempts", "x", `{"responseTooManyFailedAttempts":{"httpStatusCode":401}}`, codeAuth},
		{"account", "x", `"unauthorized"`, codeAuth},
		{"plain refusal", refusal, `"other"`, codeModel},
		{"refusal in a body", `{"type":"error","status":400,"error":{"type":"invalid_request_error","message":"` + refusal + `"}}`, `"other"`, codeModel},
		{"refusal in a detail", `{"detail":"` + refusal + `"}`, `"other"`, codeModel},
		{"refusal with more text", refusal + " Really.", `"other"`, codeTurn},
		{"refusal with another status", `{"type":"error","status":500,"error":{"type":"invalid_request_error","message":"` + refusal + `"}}`, `"other"`, codeTurn},
		{"refusal of a strange name", "The 'a b' model is not supported when using Codex with a ChatGPT account.", `"other"`, codeTurn},
		{"too long", strings.Repeat(" ", maxRefusal) + refusal, `"other"`, codeTurn},
		{"unknown kind", "x", `{"newKind":{}}`, codeTurn},
		{"429", "x", `{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`, codeTurn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := failureCode(&appserver.TurnError{Message: appserver.String(tt.message), Info: json.RawMessage(tt.info)}); got != tt.want {
				t.Errorf("code = %s, want %s", got, tt.want)
			}
		})
	}
	if got := failureCode(nil); got != codeTurn {
		t.Errorf("no error: %s", got)
	}
}

func TestDeliveredImages(t *testing.T) {
	rules.Covers(t, "ART-02")
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n0000"))
	result := func(s string) json.RawMessage { b, _ := json.Marshal(s); return b }
	for _, tt := range []struct {
		name string
		item appserver.Item
		want bool
	}{
		{"completed", appserver.Item{Type: "imageGeneration", Status: "completed", Result: result(png), Failure: json.RawMessage("null")}, true},
		{"running", appserver.Item{Type: "imageGeneration", Status: "inProgress", Result: result(png)}, false},
		{"failed", appserver.Item{Type: "imageGeneration", Status: "completed", Result: result(png), Failure: json.RawMessage(`{"code":"x"}`)}, false},
		{"a gif", appserver.Item{Type: "imageGeneration", Status: "completed", Result: result(base64.StdEncoding.EncodeToString([]byte("GIF89a")))}, false},
		{"not base64", appserver.Item{Type: "imageGeneration", Status: "completed", Result: result("@@")}, false},
		{"too large", appserver.Item{Type: "imageGeneration", Status: "completed", Result: result(strings.Repeat("A", maxDelivered*2))}, false},
		{"a screenshot the agent looked at", appserver.Item{Type: "imageView", Status: "completed", Result: result(png)}, false},
		{"an image of a tool", appserver.Item{Type: "mcpToolCall", Status: "completed", Result: json.RawMessage(`{"content":[{"type":"image","data":"` + png + `"}]}`)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := messageOf(appserver.Turn{}, tt.item)
			if got := m.Role == runtime.RoleAssistant && len(m.Parts) == 1 && m.Parts[0].Data != nil; got != tt.want {
				t.Errorf("delivered = %v, message %+v", got, m)
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	one, zero := 1.0, 0.0
	no := false
	out := appserver.String(strings.Repeat("é", maxOutput+1))
	for _, tt := range []struct {
		name   string
		item   appserver.Item
		status runtime.ToolStatus
		tool   string
	}{
		{"running", appserver.Item{Type: "commandExecution", Status: "inProgress"}, runtime.ToolStatusRunning, "exec"},
		{"completed", appserver.Item{Type: "commandExecution", Status: "completed", ExitCode: &zero, Output: &out}, runtime.ToolStatusSucceeded, "exec"},
		{"exit code", appserver.Item{Type: "commandExecution", Status: "completed", ExitCode: &one}, runtime.ToolStatusFailed, "exec"},
		{"declined", appserver.Item{Type: "fileChange", Status: "declined"}, runtime.ToolStatusFailed, "apply_patch"},
		{"native error", appserver.Item{Type: "mcpToolCall", Status: "completed", Tool: "tap", Error: json.RawMessage(`{"message":"x"}`)}, runtime.ToolStatusFailed, "tap"},
		{"no success", appserver.Item{Type: "dynamicToolCall", Status: "completed", Tool: "battery", Success: &no}, runtime.ToolStatusFailed, "battery"},
		{"a word nobody knows", appserver.Item{Type: "fileChange", Status: "odd"}, runtime.ToolStatusUnknown, "apply_patch"},
		{"image looked at", appserver.Item{Type: "imageView"}, runtime.ToolStatusSucceeded, "view_image"},
		{"search with an action", appserver.Item{Type: "webSearch", Action: json.RawMessage(`{"type":"search"}`)}, runtime.ToolStatusSucceeded, "web_search"},
		{"search without", appserver.Item{Type: "webSearch"}, runtime.ToolStatusUnknown, "web_search"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := toolCall(tt.item)
			if call == nil || call.Status != tt.status || call.Name != tt.tool {
				t.Errorf("call = %+v", call)
			}
			if n := len([]rune(string(call.Output.Data))); n > maxOutput {
				t.Errorf("output of %d characters", n)
			}
		})
	}
	if toolCall(appserver.Item{Type: "contextCompaction"}) != nil {
		t.Error("a compaction is no tool")
	}
}
