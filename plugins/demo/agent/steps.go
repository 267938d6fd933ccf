package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

const (
	// wordPause lies between the words of an echo: about what a fast model does.
	wordPause = 5 * time.Millisecond
	toolTime  = 5 * time.Millisecond
)

// step does one line of the script. Lines that only matter elsewhere do nothing here.
func (x *run) step(s step) error {
	switch s.name {
	case "echo":
		return x.echo(s.arg)
	case "say":
		x.say(s.arg)
	case "stream":
		return x.stream(s)
	case "think":
		x.emit(runtime.Event{Thought: &runtime.TextChunk{PartID: "t1", Text: s.arg}})
	case "part":
		x.closePart()
	case "replace":
		x.replace(s.arg)
	case "tool":
		return x.tool(orElse(s.arg, "echo demo"), runtime.ToolStatusSucceeded)
	case "toolfail":
		return x.tool(orElse(s.arg, "false"), runtime.ToolStatusFailed)
	case "notice":
		x.emit(runtime.Event{Notice: &runtime.Notice{Severity: runtime.SeverityInfo, Code: orElse(s.arg, "demo.note")}})
	case "ask":
		return x.question(s.arg)
	case "form":
		return x.form()
	case "approve", "approvefile", "approvenet":
		return x.approve(s)
	case "many":
		return x.many(min(s.number("", 5), 50))
	case "image":
		x.files = append(x.files, runtime.Part{Data: picture(), ContentType: "image/png", Name: "demo.png"})
	case "file":
		return x.file(s)
	case "fill":
		return x.fill(min(s.number("", 10), 10_000))
	case "title":
		return x.title(s.arg)
	case "wait":
		return x.wait(time.Duration(s.number("", 100)) * time.Millisecond)
	case "steerwait":
		before := len(x.parts)
		return x.block(time.Duration(s.number("", 5000))*time.Millisecond, func() bool { return len(x.parts) > before })
	case "native":
		x.after = append(x.after, s.arg)
	case "fail":
		return fail(s.arg)
	case "limit":
		return limit()
	case "hang":
		return x.hang(s.arg)
	case "crash":
		if s.arg == "" {
			serve.Die()
		}
	case "exit":
		os.Exit(s.number("", 1))
	case "print":
		fmt.Println(s.arg)
	}
	return nil
}

// echo says a text word by word, after the greeting if there is one.
func (x *run) echo(text string) error {
	x.a.mu.Lock()
	greeting := x.a.config.Greeting
	x.a.mu.Unlock()
	for _, w := range words(greeting + text) {
		x.say(w)
		if err := x.wait(wordPause); err != nil {
			return err
		}
	}
	return nil
}

func (x *run) stream(s step) error {
	n, rate, size := s.number("n", 100), s.number("rate", 50), s.number("size", 8)
	for i := range n {
		x.say(piece(i, size))
		if rate > 0 {
			if err := x.wait(time.Second / time.Duration(rate)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *run) tool(command string, end runtime.ToolStatus) error {
	x.closePart()
	x.tools++
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return err
	}
	call := runtime.ToolCall{
		CallID: fmt.Sprintf("c-%s-%d", x.n.id, x.tools), Name: "shell", Title: command, Kind: "command",
		Status: runtime.ToolStatusRunning, Input: runtime.JSON(input), StartedAt: time.Now().UTC(),
	}
	live := func(c runtime.ToolCall) {
		if !x.catching {
			x.emit(runtime.Event{ToolCall: &c})
		}
	}
	live(call)
	if err := x.wait(toolTime); err != nil {
		call.Status, call.FinishedAt = runtime.ToolStatusFailed, time.Now().UTC()
		live(call)
		return err
	}
	call.Status, call.FinishedAt = end, time.Now().UTC()
	call.Duration = call.FinishedAt.Sub(call.StartedAt)
	call.Output = runtime.Payload{ContentType: "text/plain", Data: []byte("output of " + command + "\n")}
	live(call)
	x.keep(runtime.Message{MessageID: "m-" + call.CallID, Role: runtime.RoleTool, ToolCall: &call})
	return nil
}

func (x *run) question(arg string) error {
	list := strings.Split(arg, "|")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	f := runtime.Field{FieldID: "answer", Kind: runtime.FieldKindLine, Title: orElse(list[0], "Well?")}
	if len(list) > 1 {
		f.Kind = runtime.FieldKindSelect
		for _, o := range list[1:] {
			f.Options = append(f.Options, runtime.FieldOption{Label: o})
		}
	}
	rec, err := x.ask(&runtime.Interaction{Question: &runtime.Question{Title: f.Title, Fields: []runtime.Field{f}}})
	if err != nil {
		return err
	}
	x.say("answer: " + orElse(strings.Join(rec[0].Values, "; "), "none") + "\n")
	return nil
}

func (x *run) form() error {
	rec, err := x.ask(&runtime.Interaction{Question: &runtime.Question{Title: "A form", Message: "Four fields, answered together.", Fields: []runtime.Field{
		{FieldID: "colours", Kind: runtime.FieldKindSelect, Title: "Colours", Header: "colours", MultiSelect: true, AllowCustom: true, Options: []runtime.FieldOption{{Label: "red", Description: "Like a rose."}, {Label: "blue"}}},
		{FieldID: "sure", Kind: runtime.FieldKindConfirm, Title: "Sure?"},
		{FieldID: "name", Kind: runtime.FieldKindLine, Title: "Name", Placeholder: "your name"},
		{FieldID: "story", Kind: runtime.FieldKindText, Title: "Story", Prefill: "Once"},
	}}})
	if err != nil {
		return err
	}
	x.say("form: " + orElse(strings.Join(rec[0].Values, "; "), "none") + "\n")
	return nil
}

func (x *run) approve(s step) error {
	ap := &runtime.Approval{Category: runtime.ApprovalCategoryCommand, Subject: orElse(s.arg, "rm -rf build"), Reason: "The demo wants to.", WorkingDirectory: x.ref.ProjectPath, ToolName: "shell", Risk: runtime.RiskMedium}
	switch s.name {
	case "approvefile":
		path := orElse(s.arg, "hello.txt")
		ap.Category, ap.ToolName, ap.Risk = runtime.ApprovalCategoryFile, "edit", runtime.RiskLow
		ap.Subject = path + "\n--- a/" + path + "\n+++ b/" + path + "\n@@ -1 +1 @@\n-hello\n+hello, world\n"
	case "approvenet":
		ap.Category, ap.ToolName, ap.Risk, ap.Subject = runtime.ApprovalCategoryNetwork, "fetch", runtime.RiskHigh, orElse(s.arg, "example.org:443")
	}
	rec, err := x.ask(&runtime.Interaction{Approval: ap})
	if err != nil {
		return err
	}
	x.say(decision(rec[0]) + "\n")
	return nil
}

func decision(r record) string {
	if r.Allowed {
		return "allowed"
	}
	return "denied"
}

func (x *run) many(n int) error {
	var list []*runtime.Interaction
	for i := range n {
		in := &runtime.Interaction{Approval: &runtime.Approval{Category: runtime.ApprovalCategoryCommand, Subject: fmt.Sprintf("command %d", i+1), ToolName: "shell", Risk: runtime.RiskMedium}}
		if i == n-1 {
			in.AgentName = "helper"
		}
		list = append(list, in)
	}
	recs, err := x.ask(list...)
	if err != nil {
		return err
	}
	for i, r := range recs {
		x.say(fmt.Sprintf("command %d %s\n", i+1, decision(r)))
	}
	return nil
}

// picture is a small image, the same every time.
var picture = sync.OnceValue(func() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for i := range 256 {
		img.Set(i%16, i/16, color.RGBA{R: uint8(16 * (i % 16)), G: uint8(16 * (i / 16)), B: 128, A: 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return nil
	}
	return b.Bytes()
})

// file delivers bytes the journal keeps and the phone reads as an attachment.
func (x *run) file(s step) error {
	f := strings.Fields(s.arg)
	name, size := "demo.txt", 1000
	if len(f) > 0 {
		name = strings.ReplaceAll(f[0], "/", "_")
	}
	if len(f) > 1 {
		size = step{arg: f[1]}.number("", size)
	}
	data := bytes.Repeat([]byte("The demo wrote this line.\n"), size/26+1)[:size]
	x.a.mu.Lock()
	id, err := x.a.store.keepFile(data)
	x.a.mu.Unlock()
	if err != nil {
		return fail(codes.StoreUnreadable)
	}
	p := runtime.Part{AttachmentID: id, ContentType: "text/plain", Name: name, Size: ptr(uint64(size))}
	x.files = append(x.files, p)
	x.closePart()
	x.keep(runtime.Message{MessageID: fmt.Sprintf("f-%s-%d", x.n.id, len(x.files)), Role: runtime.RoleAssistant, Parts: []runtime.Part{p}})
	return nil
}

// fill gives the conversation a past.
func (x *run) fill(n int) error {
	if x.catching {
		return nil // an earlier process did
	}
	x.a.mu.Lock()
	defer x.a.mu.Unlock()
	for i := range n {
		for _, m := range []runtime.Message{
			{MessageID: fmt.Sprintf("h-%s-%d-q", x.n.id, i), Role: runtime.RoleUser, Parts: []runtime.Part{{Text: fmt.Sprintf("question %d", i)}}},
			{MessageID: fmt.Sprintf("h-%s-%d-a", x.n.id, i), Role: runtime.RoleAssistant, Parts: []runtime.Part{{Text: fmt.Sprintf("answer %d", i)}}},
		} {
			m.CreatedAt = time.Now().UTC()
			if err := x.a.store.append(record{T: "message", Session: x.n.session, Message: &m}); err != nil {
				return fail(codes.StoreUnreadable)
			}
		}
	}
	return nil
}

func (x *run) title(text string) error {
	x.a.mu.Lock()
	err := x.a.store.append(record{T: "title", Session: x.n.session, Title: text})
	row := x.a.row(x.a.store.sessions[x.n.session], false)
	x.a.mu.Unlock()
	if err != nil {
		return fail(codes.StoreUnreadable)
	}
	x.a.emit(x.ref, runtime.Event{SessionChanged: &row})
	return nil
}

// hang makes a call hang from now on, or this run until the process ends.
func (x *run) hang(call string) error {
	if call != "" {
		x.a.mu.Lock()
		x.a.hung[call] = true
		x.a.mu.Unlock()
		return nil
	}
	x.caughtUp()
	<-x.a.life.Done()
	return errCut
}
