package conversations

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/internal/rules"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func TestDescriptorOfEachBackend(t *testing.T) {
	row := sessions.Row{
		Key: "k", SessionID: "k", NativeID: "secret", Kind: runtime.SessionKindDirect, Title: "T", UpdatedAt: noon,
		LastActivityAt: noon.Add(time.Second), Preview: "p", ModelID: "m", ProviderID: "pr", HasActiveRun: true,
		Attention: runtime.AttentionKindApproval, Project: &sessions.Project{ID: "i", Name: "n", Path: "/n", Available: true},
		Actions: sessions.Actions{Rename: true, Reset: true, Delete: true, Pin: true, Archive: true}, Roots: []string{"/secret"},
	}
	native := sessions.Row{Key: "native:x", NativeID: "secret", Native: true, Continuation: runtime.ContinuationInUse, Project: &sessions.Project{Path: "/gone/app"}}
	common := `"connectionId":"","agentId":"%s","kind":"direct"`
	own := `{"key":"k",` + common + `,"title":"T","updatedAt":1700000000000,"lastActivityAt":1700000001000,"preview":"p","model":"m",
		"modelProvider":"pr","sessionId":"k","hasActiveRun":true,"attention":"approval","project":{"id":"i","name":"n","path":"/n","available":true},
		"source":"bridge",%s"allowedActions":{"rename":true,"reset":true,"delete":true,"pin":true%s}}`
	found := `{"key":"native:x",` + common + `,"title":"app","updatedAt":null,"lastActivityAt":null,"hasActiveRun":false,"attention":null,
		"project":{"id":"","name":"","path":"/gone/app","available":false},"source":"native",%s"allowedActions":{"rename":false,"reset":false,"delete":false,"pin":false%s}}`
	for backend, want := range map[string][4]string{
		"codex":       {`"archived":false,`, `,"archive":true`, `"archived":false,"canContinue":false,`, `,"archive":false`},
		"claude-code": {``, ``, `"canContinue":false,"continuationBlockedReason":"in_use",`, ``},
		"pi":          {``, ``, ``, ``},
	} {
		w := begin(t, backend)
		w.f.rows = []sessions.Row{row, native}
		same(t, w.ask("sessions.list", `{}`), "["+fmt.Sprintf(own, backend, want[0], want[1])+","+fmt.Sprintf(found, backend, want[2], want[3])+"]")
	}
}

// An unknown model is left out; null would make a phone refuse the whole list.
func TestCase9UnknownModelIsOmitted(t *testing.T) {
	rules.Covers(t, "SYNC-07")
	for _, backend := range backends {
		w := begin(t, backend)
		w.f.rows = []sessions.Row{{Key: "a"}, {Key: "b", ModelID: "m"}}
		for _, method := range []string{"sessions.list", "sessions.sync"} {
			got := w.ask(method, `{}`)
			if strings.Count(got, `"model"`) != 1 || strings.Contains(got, `"model":null`) || strings.Count(got, `"key"`) != 2 {
				t.Errorf("%s %s: %s", backend, method, got)
			}
		}
	}
}

func TestAttentionIsPartOfTheCatalog(t *testing.T) {
	rules.Covers(t, "SYNC-11")
	for _, backend := range []string{"codex", "claude-code", "pi"} {
		w := begin(t, backend)
		w.f.rows = []sessions.Row{{Key: "a", Attention: runtime.AttentionKindInput}, {Key: "b", Attention: runtime.AttentionKind(99)}}
		got := w.ask("sessions.sync", `{}`)
		if !strings.Contains(got, `"attention":"input"`) || !strings.Contains(got, `"attention":null`) {
			t.Errorf("%s: %s", backend, got)
		}
	}
}

func page(t *testing.T, text string) (p clawket.Page) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCase10SyncKinds(t *testing.T) {
	rules.Covers(t, "SYNC-02")
	w := begin(t, "codex")
	for i := range 100 {
		w.f.rows = append(w.f.rows, sessions.Row{Key: fmt.Sprintf("k%02d", i), Title: "one", Preview: repeat("p", 100)})
	}
	first := page(t, w.ask("sessions.sync", `{}`))
	if first.Kind != "full" || first.Total != 100 {
		t.Fatalf("got %+v", first)
	}
	base := func(p clawket.Page) string {
		return `{"base":{"epoch":"` + p.Epoch + `","revision":"` + p.Revision + `"}}`
	}
	if p := page(t, w.ask("sessions.sync", base(first))); p.Kind != "unchanged" || p.Revision != first.Revision {
		t.Errorf("got %+v", p)
	}
	w.f.rows[3].Title = "two"
	w.f.rows = append(w.f.rows[:7], w.f.rows[8:]...)
	second := page(t, w.ask("sessions.sync", base(first)))
	if second.Kind != "delta" || len(second.Upserts) != 1 || second.Upserts[0].Title != "two" || len(second.Order) != 99 ||
		len(second.RemovedKeys) != 1 || second.RemovedKeys[0] != "k07" || second.BaseRevision != first.Revision {
		t.Errorf("got %+v", second)
	}
	w.f.rows[3].Title = "three"
	w.ask("sessions.sync", `{}`)
	if p := page(t, w.ask("sessions.sync", base(first))); p.Kind != "full" || p.Offset != 0 {
		t.Errorf("a base that is gone: %+v", p)
	}
	if p := page(t, w.ask("sessions.sync", `{"page":{"epoch":"`+first.Epoch+`","revision":"`+first.Revision+`","offset":0}}`)); p.Kind != "expired" {
		t.Errorf("a page that is gone: %+v", p)
	}
}

func TestCase11SyncParams(t *testing.T) {
	rules.Covers(t, "SYNC-06")
	id := repeat("0a", 16)
	for _, params := range []string{
		`{"more":1}`, `{"base":{"epoch":"` + id + `","revision":"` + id + `"},"page":{"epoch":"` + id + `","revision":"` + id + `","offset":0}}`,
		`{"page":{"epoch":"` + id + `","revision":"` + id + `","offset":-1}}`, `{"page":{"epoch":"` + id + `","revision":"` + id + `","offset":10001}}`,
		`{"page":{"epoch":"` + id + `","revision":"` + id + `","offset":1.5}}`, `{"base":{"epoch":"` + id + `","revision":"` + id[1:] + `"}}`,
		`{"base":{"epoch":"` + id + `"}}`, `{"base":null}`, `{"page":{"epoch":"` + id + `","revision":"` + id + `","offset":0},"pageIndex":true}`,
		`{"pageIndex":false}`, `{"base":{"epoch":"` + strings.ToUpper(id) + `","revision":"` + id + `"}}`,
	} {
		begin(t, "codex").refused("sessions.sync", params, codes.ParamsInvalid)
	}
	for backend, want := range map[string]bool{"codex": true, "claude-code": false, "pi": false} {
		w := begin(t, backend)
		w.f.rows = []sessions.Row{{Key: "a"}}
		if got := w.ask("sessions.sync", `{"pageIndex":true}`); strings.Contains(got, "pageOffsets") != want {
			t.Errorf("%s: %s", backend, got)
		}
	}
}

func TestCase12IncompleteScan(t *testing.T) {
	rules.Covers(t, "SYNC-01", "SYNC-03")
	w := begin(t, "codex")
	w.f.rows = []sessions.Row{{Key: "a"}, {Key: "b"}}
	first := page(t, w.ask("sessions.sync", `{}`))
	w.f.incomplete = true
	w.refused("sessions.sync", `{}`, codes.CatalogIncomplete)
	if p := page(t, w.ask("sessions.sync", `{"page":{"epoch":"`+first.Epoch+`","revision":"`+first.Revision+`","offset":0}}`)); p.Kind != "full" || p.Total != 2 {
		t.Errorf("the former snapshot: %+v", p)
	}
	if got := w.ask("sessions.list", `{}`); strings.Count(got, `"key"`) != 2 {
		t.Errorf("the old list: %s", got)
	}
}

func TestCase13RenameDuringAScan(t *testing.T) {
	rules.Covers(t, "SYNC-04")
	w := begin(t, "codex")
	w.f.rows = []sessions.Row{{Key: "a", Title: "old"}}
	scans := 0
	w.f.onList = func() {
		if scans++; scans == 1 {
			w.f.mu.Lock()
			w.f.rows[0].Title = "new"
			w.f.generation++
			w.f.mu.Unlock()
		}
	}
	if p := page(t, w.ask("sessions.sync", `{}`)); scans != 2 || p.Sessions[0].Title != "new" {
		t.Errorf("%d scans, %+v", scans, p)
	}
	w.f.onList = func() {
		w.f.mu.Lock()
		w.f.generation++
		w.f.mu.Unlock()
	}
	w.refused("sessions.sync", `{}`, codes.CatalogChanged)
}

func TestCase14CatalogLimits(t *testing.T) {
	w := begin(t, "codex")
	w.f.rows = []sessions.Row{{Key: "a"}}
	first := page(t, w.ask("sessions.sync", `{}`))
	for name, rows := range map[string][]sessions.Row{
		"10001 rows":   make([]sessions.Row, 10001),
		"a large row":  {{Key: "a", Title: repeat("x", 65025)}},
		"double key":   {{Key: "a"}, {Key: "a"}},
		"empty key":    {{Key: ""}},
		"too long key": {{Key: repeat("k", 1025)}},
	} {
		for i := range rows {
			if len(rows) > 10 {
				rows[i].Key = strconv.Itoa(i)
			}
		}
		w.f.rows = rows
		if _, err := w.try("sessions.sync", `{}`); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w.f.rows = []sessions.Row{{Key: "a"}}
	if p := page(t, w.ask("sessions.sync", `{"base":{"epoch":"`+first.Epoch+`","revision":"`+first.Revision+`"}}`)); p.Kind != "unchanged" {
		t.Errorf("the snapshot did not stay: %+v", p)
	}
}

func TestArchivedRows(t *testing.T) {
	w := begin(t, "codex")
	w.f.rows = []sessions.Row{{Key: "n", Native: true, Archived: true, Continuation: runtime.ContinuationAllowed, Actions: sessions.Actions{Pin: true, Archive: true}}}
	got := w.ask("sessions.archived", `{}`)
	for _, want := range []string{`"archived":true`, `"canContinue":false`, `"pin":false`, `"archive":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// messages makes a conversation of n messages that is read from the end, like a plugin does it.
func messages(n int, text func(i int) string) func(cursor string, max int) (*sessions.History, error) {
	return func(cursor string, max int) (*sessions.History, error) {
		end := n
		if cursor != "" {
			at, err := strconv.Atoi(cursor)
			if err != nil || at <= 0 || at > n {
				return nil, codes.New(codes.CursorInvalid)
			}
			end = at
		}
		h := &sessions.History{Key: "s"}
		start := 0
		if end > max {
			start = end - max
			h.NextCursor = strconv.Itoa(start)
		}
		for i := start; i < end; i++ {
			h.Messages = append(h.Messages, sessions.HistoryMessage{Message: runtime.Message{MessageID: fmt.Sprint("m", i), Role: runtime.RoleAssistant, Parts: []runtime.Part{{Text: text(i)}}}})
		}
		return h, nil
	}
}

func readAll(t *testing.T, w *world) (sizes []int, ids []string) {
	t.Helper()
	cursor := ""
	for {
		params := `{"sessionKey":"s"` + cursor + `}`
		var h clawket.History
		if err := json.Unmarshal([]byte(w.ask("chat.history", params)), &h); err != nil {
			t.Fatal(err)
		}
		var page []string
		for _, m := range h.Messages {
			page = append(page, m.ID)
		}
		sizes, ids = append(sizes, len(page)), append(page, ids...)
		if h.NextCursor == "" {
			return sizes, ids
		}
		cursor = fmt.Sprintf(`,"cursor":%q`, h.NextCursor)
	}
}

func TestCase27Pages(t *testing.T) {
	for backend, want := range map[string]string{"codex": "[40 40 15]", "pi": "[40 40 15]", "demo": "[40 40 15]", "claude-code": "[95]"} {
		w := begin(t, backend)
		w.f.history = messages(95, func(i int) string { return "x" })
		sizes, ids := readAll(t, w)
		if fmt.Sprint(sizes) != want || len(ids) != 95 || ids[0] != "m0" || ids[94] != "m94" {
			t.Errorf("%s: pages %v, %d messages", backend, sizes, len(ids))
		}
		for _, cursor := range []string{"abc", "-1", "99999", "1.5", "", repeat("A", 4097), base64.RawURLEncoding.EncodeToString([]byte(`{"kind":"turns","native":"40"}`))} {
			w.refused("chat.history", `{"sessionKey":"s","cursor":"`+cursor+`"}`, codes.CursorInvalid)
		}
	}
	w := begin(t, "codex")
	w.f.history = func(string, int) (*sessions.History, error) {
		return &sessions.History{NextCursor: "abc"}, nil
	}
	if got := w.ask("chat.history", `{"sessionKey":"s"}`); !strings.Contains(got, `"`+base64.RawURLEncoding.EncodeToString([]byte(`{"kind":"items","native":"abc"}`))+`"`) {
		t.Errorf("codex cursor: %s", got)
	}
	vector := "eyJraW5kIjoiaXRlbXMiLCJuYXRpdmUiOiJhYmMiLCJlbmQiOjE3fQ"
	if native, err := w.d.unwrapCursor(vector); native != "abc" || err != nil {
		t.Errorf("vector: %q, %v", native, err)
	}
	if native, err := w.d.unwrapCursor(base64.RawURLEncoding.EncodeToString([]byte(`{"native":"t1"}`))); native != "t1" || err != nil {
		t.Errorf("older form: %q, %v", native, err)
	}
	pi := begin(t, "pi")
	pi.f.history = messages(95, func(i int) string { return "x" })
	if got := pi.ask("chat.history", `{"sessionKey":"s"}`); !strings.Contains(got, `"nextCursor":"55"`) {
		t.Errorf("pi cursor: %s", got)
	}
}

func TestCase27PagesBySize(t *testing.T) {
	w := begin(t, "codex")
	w.f.history = messages(41, func(i int) string { return repeat("x", 300_000) })
	sizes, ids := readAll(t, w)
	if len(ids) != 41 || fmt.Sprint(sizes) != "[20 21]" {
		t.Errorf("pages %v, %d messages", sizes, len(ids))
	}
	w.f.history = messages(3, func(i int) string { return repeat("x", map[int]int{0: 10, 1: 7<<20 + 1, 2: 10}[i]) })
	if got := w.ask("chat.history", `{"sessionKey":"s"}`); strings.Count(got, `"id"`) != 1 || !strings.Contains(got, `"m2"`) {
		t.Errorf("the message before the large one: %.300s", got)
	}
	w.f.history = messages(1, func(i int) string { return repeat("x", 7<<20+1) })
	w.refused("chat.history", `{"sessionKey":"s"}`, codes.MessageTooLarge)
}

func TestHistoryMessages(t *testing.T) {
	one, cost := uint64(3), 0.5
	list := []sessions.HistoryMessage{
		{Message: runtime.Message{MessageID: "u", Role: runtime.RoleUser, CreatedAt: noon, NativeRunID: "turn", Parts: []runtime.Part{{Text: " look "}, {Data: []byte("hi"), ContentType: "image/png", Name: "a.png"}}}, IdempotencyKey: "k"},
		{Message: runtime.Message{MessageID: "hidden"}},
		{Message: runtime.Message{MessageID: "t", Role: runtime.RoleTool, ToolCall: &runtime.ToolCall{
			CallID: "c1", Name: "exec", Title: "run it", Status: runtime.ToolStatusUnknown,
			Input: runtime.JSON([]byte(`{"cmd":"ls"}`)), Output: runtime.Payload{ContentType: "text/plain", Data: []byte(repeat("y", 40000))}, Duration: 1500 * time.Millisecond, StartedAt: noon,
		}}},
		{
			Message: runtime.Message{MessageID: "a", Role: runtime.RoleAssistant, Parts: []runtime.Part{{Text: "one"}, {Text: "two"}}, ModelID: "m", ProviderID: "p", Usage: &runtime.Usage{InputTokens: &one, CostUSD: &cost}},
			Files:   []sessions.ArtifactRef{{ID: "file_1", MIME: "application/pdf", Name: "r.pdf"}, {ID: "image_1", Image: true, MIME: "image/png", Name: "i.png", Data: []byte("hi")}}, Converted: true, DisplayText: "shown",
		},
		{Message: runtime.Message{MessageID: "n", Role: runtime.RoleSystem, NoticeCode: codes.RunFailed}},
	}
	user := `{"id":"u","role":"user","text":" look ","timestampMs":1700000000000,"idempotencyKey":"k"%s,"attachments":[{"type":"image","mimeType":"image/png","content":"aGk=","name":"a.png"}]}`
	tool := `{"id":"%s","role":"tool","text":"","tool":{"name":"exec","status":"unknown","callId":"c1","input":{"cmd":"ls"},"output":"` + repeat("y", 32000) + `","summary":"run it","durationMs":1500,"startedAtMs":1700000000000%s}}`
	assistant := `{"id":"a","role":"assistant","text":"one\n\ntwo","provider":"p","model":"m"%s,"artifactDisplayText":"shown","attachments":[{"type":"file","mimeType":"application/pdf","name":"r.pdf","artifactId":"file_1"},%s]}`
	notice := `{"id":"n","role":"system","text":"The agent couldn't complete this reply. Please try again."}`
	byID := `{"type":"image","mimeType":"image/png","name":"i.png","artifactId":"image_1"}`
	inline := `{"type":"image","mimeType":"image/png","name":"i.png","content":"aGk="}`
	usage := `,"usage":{"input":3,"costUsd":0.5}`
	for _, c := range []struct{ name, backend, params, turn, toolID, reported, usage, image string }{
		{"codex", "codex", ``, `,"turnId":"turn"`, "toolcall_c1", `,"statusReported":true`, ``, byID},
		{"claude", "claude-code", ``, ``, "toolcall_c1", ``, ``, byID},
		{"old pi app", "pi", ``, ``, "c1", ``, usage, inline},
		{"new pi app", "pi", `,"artifacts":true`, ``, "c1", ``, usage, byID},
	} {
		t.Run("Case31 "+c.name, func(t *testing.T) {
			rules.Covers(t, "ART-04")
			w := begin(t, c.backend)
			w.f.history = func(string, int) (*sessions.History, error) {
				return &sessions.History{Messages: list, SessionID: "sid", Thinking: "high"}, nil
			}
			same(t, w.ask("chat.history", `{"sessionKey":"s"`+c.params+`}`), `{"key":"s","hasActiveRun":false,"sessionId":"sid","thinkingLevel":"high","messages":[`+
				fmt.Sprintf(user, c.turn)+","+fmt.Sprintf(tool, c.toolID, c.reported)+","+fmt.Sprintf(assistant, c.usage, c.image)+","+notice+`]}`)
		})
	}
}

func TestActiveRunInHistory(t *testing.T) {
	run := &sessions.ActiveRun{RunID: "r", NativeRunID: "turn", InputMessageID: "u", InputKey: "k", Text: "so far", StartedAt: noon, Abortable: true}
	for backend, want := range map[string]string{
		"codex":       `{"runId":"r","text":"so far","startedAtMs":1700000000000,"sessionAbortable":true,"turnId":"turn","inputMessageId":"u","inputMessageKey":"k","messageTimestampMs":1700000000000}`,
		"claude-code": `{"runId":"r","text":"so far","startedAtMs":1700000000000,"sessionAbortable":true}`,
	} {
		w := begin(t, backend)
		w.f.history = func(string, int) (*sessions.History, error) { return &sessions.History{ActiveRun: run}, nil }
		same(t, w.ask("chat.history", `{"sessionKey":"s"}`), `{"key":"s","messages":[],"hasActiveRun":true,"activeRun":`+want+`}`)
	}
}

func TestLongToolInputIsBoxedForPi(t *testing.T) {
	input := runtime.JSON([]byte(`{"a":"` + repeat("x", 32001) + `"}`))
	if got := string(begin(t, "pi").d.toolInput(input)); !strings.HasPrefix(got, `{"preview":"{\"a\":\"xxx`) || len(got) > 32100 {
		t.Errorf("pi: %.60s, %d bytes", got, len(got))
	}
	if got := begin(t, "codex").d.toolInput(input); string(got) != string(input.Data) {
		t.Errorf("codex: %.60s", got)
	}
}

func TestModels(t *testing.T) {
	context200 := uint64(200000)
	s := runtime.Settings{
		ModelID: "m1", ProviderID: "openai", NoticeCode: codes.PermissionsNotRestored,
		Models: []runtime.Model{
			{ModelID: "m1", Name: "One", ProviderID: "openai", ThinkingLevels: []string{"low", "high"}, ContentTypes: []string{"image/png"}, ContextTokens: &context200, Price: &runtime.ModelPrice{Input: 1, Output: 2}, ResolvedID: "m1-2026"},
			{ModelID: "m2", ProviderID: "openai"},
		},
		Options: []runtime.Option{
			{OptionID: "thinking", Value: str("low")},
			{OptionID: "fast", Available: true},
			{OptionID: "permissions", Value: str("read-only"), Available: true, ConfirmationRequired: true, Choices: []runtime.OptionChoice{{Value: "workspace"}, {Value: "read-only"}}},
		},
	}
	for _, c := range []struct{ backend, params, want string }{
		{"codex", `{"sessionKey":"s"}`, `{"ok":true,"scope":"session","currentModel":"m1","currentProvider":"openai","currentBaseUrl":"","models":[
			{"id":"m1","name":"One","provider":"openai","input":["text","image"],"reasoning":true,"reasoningLevels":["low","high"]},
			{"id":"m2","name":"m2","provider":"openai","input":["text"],"reasoning":false}],"thinkingLevel":"low","fastMode":{"enabled":null,"available":true},
			"permissions":{"mode":"read-only","available":true,"availableModes":["workspace","read-only"],"scope":"session","requiresConfirmation":true},
			"note":"Codex did not restore the conversation permissions. Select and confirm permissions before sending."}`},
		{"codex", `{}`, `{"ok":true,"scope":"session","currentModel":"","currentProvider":"","currentBaseUrl":"","models":[
			{"id":"m1","name":"One","provider":"openai","input":["text","image"],"reasoning":true,"reasoningLevels":["low","high"]},
			{"id":"m2","name":"m2","provider":"openai","input":["text"],"reasoning":false}]}`},
		{"claude-code", `{"sessionKey":"s"}`, `{"ok":true,"scope":"session","currentModel":"m1","currentProvider":"openai","currentBaseUrl":"","models":[
			{"id":"m1","name":"One","provider":"openai","sortOrder":0,"resolvedModel":"m1-2026"},{"id":"m2","name":"m2","provider":"openai","sortOrder":1}],"thinkingLevel":"low"}`},
		{"pi", `{"sessionKey":"s"}`, `{"ok":true,"scope":"session","currentModel":"m1","currentProvider":"openai","currentBaseUrl":"","models":[
			{"id":"m1","name":"One","provider":"openai","input":["text","image"],"reasoning":true,"contextWindow":200000,"cost":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0}},
			{"id":"m2","name":"m2","provider":"openai","input":["text"],"reasoning":false}]}`},
	} {
		w := begin(t, c.backend)
		w.f.settings = s
		same(t, w.ask("models.list", c.params), c.want)
	}
}

func TestModelSetters(t *testing.T) {
	s := runtime.Settings{ModelID: "m1", ProviderID: "openai", Models: []runtime.Model{{ModelID: "m1", ProviderID: "openai", ThinkingLevels: []string{"low"}}}}
	for _, c := range []struct{ backend, method, params, code, model, provider, options string }{
		{"codex", "models.select", `"scope":"session","provider":"openai","model":"m2"`, "", "m2", "", ""},
		{"codex", "models.select", `"scope":"session","provider":"other","model":"m2"`, codes.OptionInvalid, "", "", ""},
		{"codex", "models.select", `"scope":"global","provider":"openai","model":"m2"`, codes.ScopeInvalid, "", "", ""},
		{"codex", "models.select", `"provider":"openai","model":"m2"`, codes.ScopeInvalid, "", "", ""},
		{"codex", "models.select", `"scope":"session","provider":"openai"`, codes.ParamsInvalid, "", "", ""},
		{"claude-code", "models.select", `"scope":"session","provider":"other","model":"m2"`, "", "m2", "", ""},
		{"pi", "models.select", `"scope":"session","provider":"p","model":"m2"`, "", "m2", "p", ""},
		{"codex", "models.thinking", `"level":"low"`, "", "", "", "map[thinking:low]"},
		{"codex", "models.thinking", `"level":"high"`, codes.OptionInvalid, "", "", ""},
		{"codex", "models.fast", `"enabled":true`, "", "", "", "map[fast:on]"},
		{"codex", "models.fast", `"enabled":false`, "", "", "", "map[fast:off]"},
		{"codex", "models.fast", `"enabled":"yes"`, codes.ParamsInvalid, "", "", ""},
		{"codex", "models.permissions", `"mode":"full-access"`, "", "", "", "map[permissions:full-access]"},
		{"codex", "models.permissions", `"mode":"custom"`, codes.OptionInvalid, "", "", ""},
	} {
		w := begin(t, c.backend)
		w.f.settings = s
		if _, err := w.try(c.method, `{"sessionKey":"s",`+c.params+`}`); codes.Of(err) != c.code {
			t.Errorf("%s %s %s: %v", c.backend, c.method, c.params, err)
		}
		if w.f.change == nil {
			if c.code == "" {
				t.Errorf("%s %s: nothing was changed", c.method, c.params)
			}
			continue
		}
		model, provider, options := "", "", ""
		if w.f.change.ModelID != nil {
			model = *w.f.change.ModelID
		}
		if w.f.change.ProviderID != nil {
			provider = *w.f.change.ProviderID
		}
		if w.f.change.Options != nil {
			options = fmt.Sprint(w.f.change.Options)
		}
		if c.code != "" || model != c.model || provider != c.provider || options != c.options {
			t.Errorf("%s %s: changed %q %q %s", c.method, c.params, model, provider, options)
		}
	}
}

func TestProfile(t *testing.T) {
	long := repeat("x", 257)
	for _, c := range []struct{ name, method, reply, want string }{
		{"projects", "profile.projects", `[{"id":"a","name":"A","available":true,"path":"/secret"}]`, `[{"id":"a","name":"A","available":true}]`},
		{"same id twice", "profile.projects", `[{"id":"a","name":"A"},{"id":"a","name":"B"}]`, ""},
		{"long name", "profile.projects", `[{"id":"a","name":"` + long + `"}]`, ""},
		{"not a list", "profile.projects", `{}`, ""},
		{
			"defaults", "profile.defaults", `{"model":null,"thinking":"low","version":"v","editable":true,"models":[{"id":"m","name":"M","isDefault":true,"levels":["low"],"defaultLevel":"low"}]}`,
			`{"model":null,"thinking":"low","version":"v","editable":true,"models":[{"id":"m","name":"M","isDefault":true,"levels":["low"],"defaultLevel":"low"}]}`,
		},
		{"no version", "profile.defaults.set", `{"model":null,"thinking":null,"editable":true,"models":[]}`, ""},
		{
			"usage", "profile.usage", `{"plan":null,"quotas":[{"id":"q","name":"Q","windows":[{"minutes":300,"usedPercent":12.5,"resetsAt":1700000000}]}],"lifetimeTokens":null,"daily":[{"date":"2026-10-01","tokens":5}]}`,
			`{"plan":null,"quotas":[{"id":"q","name":"Q","windows":[{"minutes":300,"usedPercent":12.5,"resetsAt":1700000000}]}],"lifetimeTokens":null,"daily":[{"date":"2026-10-01","tokens":5}]}`,
		},
		{"reset in milliseconds of a far year", "profile.usage", `{"plan":null,"quotas":[{"id":"q","name":"Q","windows":[{"minutes":300,"usedPercent":1,"resetsAt":8640000000001}]}],"daily":[]}`, ""},
		{"bad date", "profile.usage", `{"plan":null,"quotas":[],"daily":[{"date":"1.10.2026","tokens":5}]}`, ""},
		{"tokens not whole", "profile.usage", `{"plan":null,"quotas":[],"daily":[{"date":"2026-10-01","tokens":5.5}]}`, ""},
		{"skills", "profile.skills", `{"skills":[{"id":"s","name":"S","description":"","scope":"user","enabled":true,"editable":true}],"errorCount":0}`, `{"skills":[{"id":"s","name":"S","description":"","scope":"user","enabled":true,"editable":true}],"errorCount":0}`},
		{"system skill editable", "profile.skills.set", `{"skills":[{"id":"s","name":"S","scope":"system","editable":true}],"errorCount":0}`, ""},
		{"skill scope", "profile.skills", `{"skills":[{"id":"s","name":"S","scope":"world"}],"errorCount":0}`, ""},
		{"instructions", "profile.instructions", `[{"id":"i","name":"AGENTS.md","exists":false,"scope":"project"}]`, `[{"id":"i","name":"AGENTS.md","exists":false,"scope":"project"}]`},
		{"other file", "profile.instructions", `[{"id":"i","name":"SOUL.md","exists":true,"scope":"project"}]`, ""},
		{"five", "profile.instructions", `[{"id":"1","name":"AGENTS.md","scope":"user"},{"id":"2","name":"AGENTS.md","scope":"user"},{"id":"3","name":"AGENTS.md","scope":"user"},{"id":"4","name":"AGENTS.md","scope":"user"},{"id":"5","name":"AGENTS.md","scope":"user"}]`, ""},
		{"document", "profile.document", `{"id":"i","name":"AGENTS.md","content":"a","version":"` + repeat("0a", 32) + `","editable":true,"missing":false,"size":1}`, `{"id":"i","name":"AGENTS.md","content":"a","version":"` + repeat("0a", 32) + `","editable":true,"missing":false,"size":1}`},
		{"document version", "profile.document.set", `{"id":"i","name":"AGENTS.md","content":"a","version":"1","size":1}`, ""},
		{"document with NUL", "profile.document", `{"id":"i","name":"AGENTS.md","content":"\u0000","version":"` + repeat("0a", 32) + `","size":1}`, ""},
		{"document too large", "profile.document", `{"id":"i","name":"AGENTS.md","content":"` + repeat("x", 131073) + `","version":"` + repeat("0a", 32) + `","size":1}`, ""},
		{"servers", "profile.mcp", `[{"name":"s","auth":"required","toolsAvailable":false,"tools":[]}]`, `[{"name":"s","auth":"required","toolsAvailable":false,"tools":[]}]`},
		{"server auth", "profile.mcp", `[{"name":"s","auth":"yes","toolsAvailable":false,"tools":[]}]`, ""},
		{"plugins", "profile.plugins", `[{"id":"p","name":"P","description":"d","enabled":true}]`, `[{"id":"p","name":"P","description":"d","enabled":true}]`},
		{"null", "profile.plugins", `null`, ""},
		{"no JSON", "profile.plugins", `[`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := begin(t, "codex")
			w.f.reply = c.reply
			if c.want == "" {
				w.refused(c.method, `{"id":"x"}`, codes.ReplyInvalid)
				return
			}
			same(t, w.ask(c.method, `{"id":"x"}`), c.want)
			if want := "codex." + c.method + ` {"id":"x"}`; w.f.managed != want {
				t.Errorf("called %q, want %q", w.f.managed, want)
			}
		})
	}
	w := begin(t, "codex")
	for _, method := range []string{"profile.", "profile.secrets", "profile.projects.set", "Profile.projects", "profile.document.delete"} {
		w.refused(method, `{}`, codes.MethodUnsupported)
	}
	if w.f.managed != "" {
		t.Errorf("the plugin was called: %s", w.f.managed)
	}
}
