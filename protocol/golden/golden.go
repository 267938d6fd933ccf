// Package golden reads recordings of JSON conversations and plays one side of them, so that code can be tested against
// what a real program said without that program.
//
// A recording is a file of lines {"dir":"c2s"|"s2c","msg":{…}}: c2s is what the client wrote, s2c what the server
// wrote; a line may carry a "scenario". Messages are the JSON-RPC dialect without a version member. The package knows no
// runtime and no method. Frames are plain data; a Server is used by one goroutine.
package golden

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Dir is a direction.
type Dir string

// Directions.
const (
	ToServer Dir = "c2s"
	ToClient Dir = "s2c"
)

// maxLine bounds a line of a recording or of a conversation.
const maxLine = 64 << 20

// Frame is one recorded message.
type Frame struct {
	Dir      Dir             `json:"dir"`
	Msg      json.RawMessage `json:"msg"`
	Scenario string          `json:"scenario,omitempty"`
	Line     int             `json:"-"`
}

// Message is what a player looks at in a message.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// IsRequest reports that the message wants an answer.
func (m Message) IsRequest() bool { return m.Method != "" && len(m.ID) > 0 }

// IsAnswer reports that the message is an answer.
func (m Message) IsAnswer() bool { return m.Method == "" && len(m.ID) > 0 }

// Parse looks into the frame's message. A message that is no object gives an empty Message.
func (f Frame) Parse() Message {
	var m Message
	if json.Unmarshal(f.Msg, &m) != nil {
		return Message{}
	}
	return m
}

// Load reads a recording from a file.
func Load(path string) ([]Frame, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	frames, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return frames, nil
}

// Read reads a recording.
func Read(r io.Reader) ([]Frame, error) {
	var frames []Frame
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		f := Frame{Line: n}
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if f.Dir != ToServer && f.Dir != ToClient || len(f.Msg) == 0 {
			return nil, fmt.Errorf("line %d: want dir c2s or s2c and a msg", n)
		}
		frames = append(frames, f)
	}
	return frames, lines.Err()
}

// Scenario gives the frames of one scenario.
func Scenario(frames []Frame, name string) []Frame {
	var list []Frame
	for _, f := range frames {
		if f.Scenario == name {
			list = append(list, f)
		}
	}
	return list
}

// Scenarios names the scenarios in order.
func Scenarios(frames []Frame) []string {
	var names []string
	seen := map[string]bool{}
	for _, f := range frames {
		if f.Scenario != "" && !seen[f.Scenario] {
			seen[f.Scenario] = true
			names = append(names, f.Scenario)
		}
	}
	return names
}

// Same reports whether two JSON texts say the same, numbers digit by digit; the order of members does not count.
func Same(a, b []byte) bool {
	ca, errA := canonical(a)
	cb, errB := canonical(b)
	return errA == nil && errB == nil && bytes.Equal(ca, cb)
}

func canonical(b []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
