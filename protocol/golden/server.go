package golden

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Answer is what a Server says to a request that the recording does not have at this point.
type Answer struct {
	Result any
	// Code and Message make it an error, when Code is not 0.
	Code    int
	Message string
}

// Server plays the server's half of a recording to a client that speaks one JSON object per line.
//
// It writes what the server wrote up to the next thing the client wrote, then waits until the client says the like: a
// request with the same method, or an answer to the same request of the server. Recorded answers go out under the id
// the client used. Whatever else the client asks goes to Other; other notifications are only noted.
type Server struct {
	// Other answers requests the recording does not have; nil refuses them.
	Other func(method string, params json.RawMessage) Answer
	// Heard are the client's messages, in order.
	Heard []Message
	// Reached is called with the index of each recorded frame before it is played or awaited, and with their number when
	// all are over; it may be nil.
	Reached func(i int)
}

// Play plays until the recording is over and the client closes its side. It fails when the client closes before.
func (s *Server) Play(frames []Frame, r io.Reader, w io.Writer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	ids := map[string]json.RawMessage{} // recorded id of a client's request -> the client's
	for i, f := range frames {
		if s.Reached != nil {
			s.Reached(i)
		}
		m := f.Parse()
		if f.Dir == ToClient {
			if err := s.write(w, f, m, ids); err != nil {
				return err
			}
			continue
		}
		if m.Method != "" && len(m.ID) == 0 || m.Method == "" && len(m.ID) == 0 {
			continue // a notification or no message at all: nothing waits for it
		}
		if err := s.await(lines, w, m, ids); err != nil {
			return fmt.Errorf("line %d of the recording: %w", f.Line, err)
		}
	}
	if s.Reached != nil {
		s.Reached(len(frames))
	}
	for lines.Scan() {
		if err := s.other(w, lines.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) write(w io.Writer, f Frame, m Message, ids map[string]json.RawMessage) error {
	msg := f.Msg
	if m.IsAnswer() {
		id, ok := ids[string(m.ID)]
		if !ok {
			return nil // the answer to something the client never asked
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(f.Msg, &fields); err != nil {
			return err
		}
		fields["id"] = id
		b, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		msg = b
	}
	_, err := w.Write(append(append([]byte(nil), msg...), '\n'))
	return err
}

// await reads until the client says the like of want.
func (s *Server) await(lines *bufio.Scanner, w io.Writer, want Message, ids map[string]json.RawMessage) error {
	for lines.Scan() {
		var got Message
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			return fmt.Errorf("the client wrote %.200q: %w", lines.Bytes(), err)
		}
		switch {
		case want.IsRequest() && got.IsRequest() && got.Method == want.Method:
			s.Heard = append(s.Heard, got)
			ids[string(want.ID)] = got.ID
			return nil
		case want.IsAnswer() && got.IsAnswer() && string(got.ID) == string(want.ID):
			s.Heard = append(s.Heard, got)
			return nil
		}
		if err := s.other(w, lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the client closed before %s%s", want.Method, want.ID)
}

func (s *Server) other(w io.Writer, line []byte) error {
	var got Message
	if err := json.Unmarshal(line, &got); err != nil {
		return fmt.Errorf("the client wrote %.200q: %w", line, err)
	}
	s.Heard = append(s.Heard, got)
	if !got.IsRequest() {
		return nil
	}
	answer := Answer{Code: -32600, Message: "not in the recording"}
	if s.Other != nil {
		answer = s.Other(got.Method, got.Params)
	}
	out := map[string]any{"id": got.ID, "result": answer.Result}
	if answer.Code != 0 {
		out = map[string]any{"id": got.ID, "error": map[string]any{"code": answer.Code, "message": answer.Message}}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
