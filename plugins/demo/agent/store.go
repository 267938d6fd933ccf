package agent

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	journalName = "journal.jsonl"
	filesName   = "files"
)

// record is one line of the journal. T says which fields count.
type record struct {
	T       string            `json:"t"` // session, title, archived, settings, run, message, answer, end
	At      time.Time         `json:"at"`
	Session string            `json:"session,omitempty"` // native id
	HostID  string            `json:"host_id,omitempty"`
	Title   string            `json:"title,omitempty"`
	Project string            `json:"project,omitempty"`
	Parent  string            `json:"parent,omitempty"`
	On      bool              `json:"on,omitempty"`
	Model   string            `json:"model,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Run     string            `json:"run,omitempty"`
	Prompt  string            `json:"prompt,omitempty"`
	Survive bool              `json:"survive,omitempty"`
	Message *runtime.Message  `json:"message,omitempty"`
	End     *runtime.RunEnded `json:"end,omitempty"`
	Ask     string            `json:"ask,omitempty"` // interaction id
	Values  []string          `json:"values,omitempty"`
	Allowed bool              `json:"allowed,omitempty"`
}

// conversation is one native conversation.
type conversation struct {
	id, hostID, title, project, parent string
	archived                           bool
	updated                            time.Time
	model                              string
	options                            map[string]string
	messages                           []runtime.Message
}

// nativeRun is what the journal knows about a run.
type nativeRun struct {
	id, session, prompt string
	began               time.Time
	survive             bool
	end                 *runtime.RunEnded
	answers             map[string]record // by interaction id
}

// store is the demo's native store: an append-only journal that two processes of one instance may share, and files. The
// agent's lock guards it.
type store struct {
	dir    string
	f      *os.File
	offset int64 // up to here the journal is in memory

	sessions map[string]*conversation
	runs     map[string]*nativeRun
}

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(filepath.Join(dir, filesName), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s := &store{dir: dir, f: f, sessions: map[string]*conversation{}, runs: map[string]*nativeRun{}}
	if err := s.refresh(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return s, nil
}

func (s *store) close() error { return s.f.Close() }

// refresh reads what was appended since, by whichever process. A last line without an end is still being written.
func (s *store) refresh() error {
	st, err := s.f.Stat()
	if err != nil {
		return codes.New(codes.StoreUnreadable).Because(err)
	}
	if st.Size() == s.offset {
		return nil
	}
	r := bufio.NewReader(io.NewSectionReader(s.f, s.offset, st.Size()-s.offset))
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return codes.New(codes.StoreUnreadable).Because(err)
		}
		s.offset += int64(len(line))
		var rec record
		if json.Unmarshal(bytes.TrimSpace(line), &rec) == nil { // a torn line of a dead process is skipped
			s.apply(&rec)
		}
	}
}

// append writes a record and reads it back, so that memory and file never differ.
func (s *store) append(rec record) error {
	if rec.At.IsZero() {
		rec.At = time.Now().UTC()
	}
	b, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if s.torn() {
		b = append([]byte{'\n'}, b...)
	}
	if _, err := s.f.Write(append(b, '\n')); err != nil {
		return err
	}
	return s.refresh()
}

// torn reports that a dead process left half a line at the end.
func (s *store) torn() bool {
	st, err := s.f.Stat()
	return err == nil && st.Size() > s.offset
}

func (s *store) apply(rec *record) {
	if rec.T == "session" && s.sessions[rec.Session] == nil {
		s.sessions[rec.Session] = &conversation{id: rec.Session, hostID: rec.HostID, title: rec.Title, project: rec.Project, parent: rec.Parent, options: map[string]string{}}
	}
	c := s.sessions[rec.Session]
	if c == nil {
		return
	}
	switch rec.T {
	case "title":
		c.title = rec.Title
	case "archived":
		c.archived = rec.On
	case "settings":
		if rec.Model != "" {
			c.model = rec.Model
		}
		for k, v := range rec.Options {
			c.options[k] = v
		}
		return // a setting is no change of the conversation
	case "run":
		s.runs[rec.Run] = &nativeRun{id: rec.Run, session: rec.Session, prompt: rec.Prompt, began: rec.At, survive: rec.Survive, answers: map[string]record{}}
	case "message":
		c.messages = append(c.messages, *rec.Message)
	case "answer":
		if r := s.runs[rec.Run]; r != nil {
			r.answers[rec.Ask] = *rec
		}
	case "end":
		if r := s.runs[rec.Run]; r != nil && r.end == nil {
			r.end = rec.End
		}
	}
	c.updated = rec.At
}

// nativeOf names the conversation of a reference. The name is made from the host's, so a conversation that was prepared
// and never dispatched needs no record.
func nativeOf(ref runtime.SessionRef) string {
	if ref.NativeID != "" {
		return ref.NativeID
	}
	sum := sha256.Sum256([]byte(ref.SessionID))
	return "d-" + hex.EncodeToString(sum[:12])
}

// find gives the conversation a reference names: nil when it is new, session_lost when it should be there and is not.
func (s *store) find(ref runtime.SessionRef) (*conversation, error) {
	if c := s.sessions[nativeOf(ref)]; c != nil {
		return c, nil
	}
	if ref.NativeID != "" && ref.NativeID != nativeOf(runtime.SessionRef{SessionID: ref.SessionID}) {
		return nil, codes.New(codes.SessionLost)
	}
	return nil, nil
}

// ensure writes the conversation down if it is new.
func (s *store) ensure(ref runtime.SessionRef, title string) (*conversation, error) {
	c, err := s.find(ref)
	if err != nil || c != nil {
		return c, err
	}
	id := nativeOf(ref)
	if err := s.append(record{T: "session", Session: id, HostID: ref.SessionID, Project: ref.ProjectPath, Title: title}); err != nil {
		return nil, err
	}
	return s.sessions[id], nil
}

// list gives the conversations of one kind, newest first.
func (s *store) list(archived bool) []*conversation {
	var list []*conversation
	for _, c := range s.sessions {
		if c.archived == archived {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *conversation) int {
		if n := b.updated.Compare(a.updated); n != 0 {
			return n
		}
		return bytes.Compare([]byte(a.id), []byte(b.id))
	})
	return list
}

// keepFile stores bytes under their checksum and gives the name of the attachment.
func (s *store) keepFile(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	path := filepath.Join(s.dir, filesName, name)
	if _, err := os.Stat(path); err == nil {
		return name, nil
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return "", err
	}
	return name, os.Rename(tmp, path)
}
