package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Request is what a client sent.
type Request struct {
	API    string // responses, chat or messages
	Model  string
	Stream bool
	// Prompt is the last user text: the parts of the last message of a person, without what the programs add around it.
	Prompt string
	// New is true when the prompt is the last thing said, false when tool outputs followed it.
	New bool
	// Round counts the replies the prompt has had: groups of tool outputs after it.
	Round int
	// Outputs are the texts of the tool outputs of the last group.
	Outputs []string
	// Images is the number of images in the last message of a person.
	Images int
	// Closed is true when the client closed before the reply ended.
	Closed bool
	Header http.Header
	Body   json.RawMessage
}

// added are beginnings of user texts that a program, not a person, put there.
var added = []string{
	"<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<image", "</image>",
	"<system-reminder>", "# AGENTS.md",
}

func isAdded(text string) bool {
	for _, p := range added {
		if strings.HasPrefix(strings.TrimSpace(text), p) {
			return true
		}
	}
	return false
}

// entry is one element of a conversation, the same for the three APIs.
type entry struct {
	user    bool
	text    string
	images  int
	output  bool // a tool output
	outText string
}

type wireItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

type wirePart struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// parse reads a request body; api is the name of the API.
func parse(api string, body []byte) (*Request, error) {
	var b struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		Input    json.RawMessage `json:"input"`
		Messages []wireItem      `json:"messages"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("request body: %w", err)
	}
	items := b.Messages
	if len(b.Input) > 0 {
		if text := text(b.Input); text != "" && b.Input[0] == '"' {
			items = []wireItem{{Role: "user", Content: b.Input}}
		} else if err := json.Unmarshal(b.Input, &items); err != nil {
			return nil, fmt.Errorf("request input: %w", err)
		}
	}
	r := &Request{API: api, Model: b.Model, Stream: b.Stream, Body: body}
	grouped := false
	for _, it := range items {
		for _, e := range entries(it) {
			switch {
			case e.user:
				r.Prompt, r.Images, r.New, r.Round, r.Outputs = e.text, e.images, true, 0, nil
				grouped = false
			case e.output:
				if !grouped {
					r.Round++
					r.Outputs = nil
				}
				r.New, grouped = false, true
				r.Outputs = append(r.Outputs, e.outText)
			default:
				grouped = false
			}
		}
	}
	return r, nil
}

// entries reads one element. Elements without meaning for the choice of a script give nothing.
func entries(it wireItem) []entry {
	switch {
	case it.Type == "function_call_output" || it.Type == "custom_tool_call_output":
		return []entry{{output: true, outText: text(it.Output)}}
	case it.Role == "tool":
		return []entry{{output: true, outText: text(it.Content)}}
	case it.Role == "user":
		return userEntries(it.Content)
	case it.Role == "assistant" || it.Type == "function_call" || it.Type == "custom_tool_call":
		return []entry{{}}
	}
	return nil
}

func userEntries(content json.RawMessage) []entry {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		if isAdded(whole) {
			return nil
		}
		return []entry{{user: true, text: whole}}
	}
	var parts []wirePart
	if json.Unmarshal(content, &parts) != nil {
		return nil
	}
	var results []entry
	var texts []string
	images := 0
	for _, p := range parts {
		switch p.Type {
		case "tool_result":
			results = append(results, entry{output: true, outText: text(p.Content)})
		case "text", "input_text":
			if !isAdded(p.Text) {
				texts = append(texts, p.Text)
			}
		case "image", "input_image", "image_url":
			images++
		}
	}
	if len(results) > 0 {
		return results // text beside tool results is bookkeeping of the program
	}
	if len(texts) == 0 && images == 0 {
		return nil
	}
	return []entry{{user: true, text: strings.Join(texts, "\n"), images: images}}
}

// text is the text of a JSON string, of an array of parts, or the JSON itself.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []wirePart
	if json.Unmarshal(raw, &parts) == nil {
		var all []string
		for _, p := range parts {
			all = append(all, p.Text)
		}
		return strings.Join(all, "\n")
	}
	return string(raw)
}
