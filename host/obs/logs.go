package obs

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// ringRecords is how many records of each component are kept in memory.
	ringRecords = 2000
	// maxComponents bounds the rings; records of further components share the last one.
	maxComponents = 64
	// followBuffer is how many records may wait for one reader before it loses some.
	followBuffer = 1024
	// maxValue is the longest text of one attribute, in bytes.
	maxValue = 4096
	// floodBurst is how many equal lines of a component are written within floodWindow; the rest is counted.
	floodBurst  = 20
	floodWindow = time.Minute
	// maxFloods bounds the lines that are watched for repetition.
	maxFloods = 1024
)

// Options of Logs. The zero value writes nothing and keeps records of level info.
type Options struct {
	// Output gets every line that passes its level; nil: none does.
	Output io.Writer
	// JSON writes one JSON object per line instead of text.
	JSON bool
	// Level is the lowest level of every component; change it with SetLevel.
	Level slog.Level
}

// Record is one line, already resolved: it holds text only.
type Record struct {
	At         time.Time
	Level      slog.Level
	Component  string
	Message    string
	Attributes map[string]string
}

// Logs makes loggers and keeps what they wrote.
type Logs struct {
	out slog.Handler // nil without an output

	mu        sync.Mutex
	level     slog.Level            // guarded by mu, as all below
	levels    map[string]slog.Level // by component
	rings     map[string]*ring
	followers map[*follower]struct{}
	floods    map[string]*flood
}

type ring struct {
	list []Record
	next int
}

type follower struct {
	ch   chan Record
	lost uint64 // guarded by Logs.mu
}

type flood struct {
	since time.Time
	count int
}

// New makes Logs.
func New(o Options) *Logs {
	l := &Logs{
		level: o.Level, levels: map[string]slog.Level{}, rings: map[string]*ring{},
		followers: map[*follower]struct{}{}, floods: map[string]*flood{},
	}
	if o.Output != nil {
		opt := &slog.HandlerOptions{Level: slog.LevelDebug - 4}
		if o.JSON {
			l.out = slog.NewJSONHandler(o.Output, opt)
		} else {
			l.out = slog.NewTextHandler(o.Output, opt)
		}
	}
	return l
}

// Logger gives the logger of a component. A logger made from it by With(keyComponent, name) belongs to that component.
func (l *Logs) Logger(component string) *slog.Logger {
	return slog.New(&handler{logs: l, component: component, out: l.with(component)})
}

func (l *Logs) with(component string) slog.Handler {
	if l.out == nil || component == "" {
		return l.out
	}
	return l.out.WithAttrs([]slog.Attr{slog.String(keyComponent, component)})
}

// SetLevel changes the lowest level of a component; an empty name changes all.
func (l *Logs) SetLevel(component string, level slog.Level) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if component == "" {
		l.level = level
		clear(l.levels)
		return
	}
	l.levels[component] = level
}

// Recent gives the records that are kept, oldest first. No component means all of them.
func (l *Logs) Recent(components ...string) []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recent(components)
}

func (l *Logs) recent(components []string) []Record {
	var list []Record
	for name, r := range l.rings {
		if len(components) == 0 || slices.Contains(components, name) {
			list = append(list, r.list[r.next:]...)
			list = append(list, r.list[:r.next]...)
		}
	}
	slices.SortStableFunc(list, func(a, b Record) int { return a.At.Compare(b.At) })
	return list
}

// Components lists the names that have written something.
func (l *Logs) Components() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.rings))
}

// Follow gives past, the records kept, and then hands every further record to send until ctx ends, send fails or over is
// closed, which is no error. lost counts records that did not fit because send was too slow. It blocks.
func (l *Logs) Follow(ctx context.Context, over <-chan struct{}, past func([]Record) error, send func(r Record, lost uint64) error) error {
	f := &follower{ch: make(chan Record, followBuffer)}
	l.mu.Lock()
	kept := l.recent(nil)
	l.followers[f] = struct{}{}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.followers, f)
		l.mu.Unlock()
	}()
	if err := past(kept); err != nil {
		return err
	}
	for {
		select {
		case r := <-f.ch:
			l.mu.Lock()
			lost := f.lost
			f.lost = 0
			l.mu.Unlock()
			if err := send(r, lost); err != nil {
				return err
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *Logs) enabled(component string, level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	least, ok := l.levels[component]
	if !ok {
		least = l.level
	}
	return level >= least
}

// admit decides whether a line is one too many of its kind; suppressed is how many were left out before it.
func (l *Logs) admit(r *Record) (ok bool, suppressed int) {
	key := r.Component + "\x00" + r.Message + "\x00" + r.Attributes[KeyCode] + "\x00" + r.Attributes[KeyRuntime]
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.floods[key]
	if f == nil {
		if len(l.floods) >= maxFloods {
			clear(l.floods)
		}
		f = &flood{since: r.At}
		l.floods[key] = f
	}
	if r.At.Sub(f.since) >= floodWindow {
		suppressed = max(0, f.count-floodBurst)
		f.since, f.count = r.At, 0
	}
	f.count++
	return f.count <= floodBurst, suppressed
}

func (l *Logs) keep(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.rings[r.Component]
	if x == nil {
		name := r.Component
		if len(l.rings) >= maxComponents {
			name = ""
		}
		if x = l.rings[name]; x == nil {
			x = &ring{}
			l.rings[name] = x
		}
	}
	if len(x.list) < ringRecords {
		x.list = append(x.list, r)
	} else {
		x.list[x.next] = r
		x.next = (x.next + 1) % ringRecords
	}
	for f := range l.followers {
		select {
		case f.ch <- r:
		default:
			f.lost++
		}
	}
}

// handler is one component's way into Logs.
type handler struct {
	logs      *Logs
	component string
	out       slog.Handler
	attrs     []slog.Attr
	group     string // prefix of attributes, with a dot
}

var _ slog.Handler = (*handler)(nil)

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.logs.enabled(h.component, level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	r := Record{At: cmp.Or(rec.Time, time.Now()), Level: rec.Level, Component: h.component, Message: rec.Message}
	add := func(prefix string, a slog.Attr) { flatten(&r, prefix, a) }
	for _, a := range h.attrs {
		add("", a)
	}
	rec.Attrs(func(a slog.Attr) bool { add(h.group, a); return true })
	ok, suppressed := h.logs.admit(&r)
	if !ok {
		return nil
	}
	if suppressed > 0 {
		a := slog.Int(KeySuppressed, suppressed)
		rec = rec.Clone()
		rec.AddAttrs(a)
		flatten(&r, "", a)
	}
	h.logs.keep(r)
	if h.out == nil {
		return nil
	}
	return h.out.Handle(ctx, rec)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Clone(h.attrs)
	rest := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		if a.Key == keyComponent && h.group == "" {
			c.component = a.Value.Resolve().String()
			continue
		}
		rest = append(rest, a)
		c.attrs = append(c.attrs, slog.Attr{Key: h.group + a.Key, Value: a.Value})
	}
	if c.component != h.component { // the output carries one component only, and what was said so far
		c.out = h.logs.with(c.component)
		if c.out != nil && len(h.attrs) > 0 {
			c.out = c.out.WithAttrs(h.attrs)
		}
	}
	if c.out != nil && len(rest) > 0 {
		c.out = c.out.WithAttrs(rest)
	}
	return &c
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.group = h.group + name + "."
	if c.out != nil {
		c.out = c.out.WithGroup(name)
	}
	return &c
}

// flatten writes an attribute as text.
func flatten(r *Record, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, x := range v.Group() {
			flatten(r, prefix, x)
		}
		return
	}
	if a.Key == "" {
		return
	}
	text := v.String()
	if len(text) > maxValue {
		text = text[:maxValue] + "…"
	}
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	r.Attributes[prefix+a.Key] = text
}

// RedirectStandard sends what libraries write with Go's standard logger to l, at debug: some of it names sockets.
func RedirectStandard(l *slog.Logger) {
	log.SetFlags(0)
	log.SetPrefix("")
	log.SetOutput(lines{l})
}

type lines struct{ l *slog.Logger }

func (w lines) Write(b []byte) (int, error) {
	w.l.Debug("library", "line", string(bytes.TrimSpace(b)))
	return len(b), nil
}
