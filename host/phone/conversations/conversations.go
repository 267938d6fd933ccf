// Package conversations is the dialect of the shipped apps for Codex, Claude Code and Pi, and of every client of ours: it
// translates requests of phones into calls of sessions.Service, and its updates into events.
//
// What differs between the backends stands in one table (traits.go). The package knows no socket, no plugin and nothing
// durable; every text a phone is shown is either the conversation's own or a fixed sentence. A Dialect is safe for
// concurrent use; updates reach all phones in the order the service gave them.
package conversations

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/openphone-host/openphone/host/phone"
	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/host/sessions/snapshot"
	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// Options configure a Dialect.
type Options struct {
	Backend string // name on the wire: the instance id
	Service sessions.Service
	// Version is the host's own, told as bridgeVersion; one that is not 1 to 128 plain characters is left out.
	Version string
	Log     *slog.Logger // nil discards
}

// Dialect serves one backend.
type Dialect struct {
	backend string
	event   string
	version string
	svc     sessions.Service
	log     *slog.Logger
	traits  traits
	catalog *snapshot.Catalog
	cancel  func()

	// about is the runtime's last account of itself; it has the sentences of the plugin's own codes.
	about atomic.Pointer[runtime.Description]

	mu    sync.Mutex
	peers map[phone.Peer]*interest
	down  bool // the runtime was announced as gone
}

var _ phone.Dialect = (*Dialect)(nil)

// New makes a dialect and begins to listen to its service; Close ends that.
func New(o Options) *Dialect {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dialect{
		backend: o.Backend, event: clawket.EventName(o.Backend), version: plainVersion(o.Version), svc: o.Service,
		log: o.Log, traits: traitsOf(o.Backend), peers: map[phone.Peer]*interest{},
	}
	d.catalog = d.newCatalog()
	d.cancel = o.Service.Subscribe(d.deliver)
	return d
}

// Close stops the events and ends a read of the catalog.
func (d *Dialect) Close() {
	d.cancel()
	d.catalog.Close()
}

// Join implements phone.Dialect.
func (d *Dialect) Join(p phone.Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[p] = &interest{}
}

// Leave implements phone.Dialect.
func (d *Dialect) Leave(p phone.Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.peers, p)
}

// call is one request on its way through a handler.
type call struct {
	params
	peer phone.Peer
	raw  json.RawMessage // the whole params object, nil when absent
}

func (c *call) person() sessions.Person {
	p := c.peer.Phone()
	return sessions.Person{ID: p.ID, Label: p.Label}
}

type handler func(d *Dialect, ctx context.Context, c *call) (any, error)

// handlers are all methods; a backend serves those its traits do not switch off.
var handlers = map[string]handler{
	clawket.MethodConnect:          (*Dialect).health,
	clawket.MethodHealth:           (*Dialect).health,
	clawket.MethodAgentsList:       (*Dialect).agents,
	clawket.MethodProjectsList:     (*Dialect).projects,
	clawket.MethodSessionsList:     (*Dialect).list,
	clawket.MethodSessionsSync:     (*Dialect).syncCatalog,
	clawket.MethodSessionsActivity: (*Dialect).activity,
	clawket.MethodSessionsCreate:   (*Dialect).create,
	clawket.MethodSessionsRename:   (*Dialect).rename,
	clawket.MethodSessionsReset:    (*Dialect).reset,
	clawket.MethodSessionsDelete:   (*Dialect).delete,
	clawket.MethodSessionsArchive:  (*Dialect).archive,
	clawket.MethodSessionsArchived: (*Dialect).archived,
	clawket.MethodChatHistory:      (*Dialect).history,
	clawket.MethodChatSend:         (*Dialect).send,
	clawket.MethodChatAbort:        (*Dialect).abort,
	clawket.MethodChatSteer:        (*Dialect).steer,
	clawket.MethodChatPromptStatus: (*Dialect).promptStatus,
	clawket.MethodQuestionsList:    (*Dialect).questions,
	clawket.MethodQuestionsRespond: (*Dialect).respond,
	clawket.MethodApprovalsList:    (*Dialect).approvals,
	clawket.MethodApprovalsResolve: (*Dialect).resolve,
	clawket.MethodModelsList:       (*Dialect).models,
	clawket.MethodModelsSelect:     (*Dialect).selectModel,
	clawket.MethodModelsThinking:   (*Dialect).setThinking,
	clawket.MethodModelsFast:       (*Dialect).setFast,
	clawket.MethodModelsPermission: (*Dialect).setPermissions,
	clawket.MethodSkillsList:       (*Dialect).skills,
	clawket.MethodArtifactsOpen:    (*Dialect).openArtifact,
	clawket.MethodArtifactsRead:    (*Dialect).readArtifact,
	clawket.MethodUpdateStart:      (*Dialect).update,
	clawket.MethodUpdateStatus:     (*Dialect).update,
}

// update refuses whatever is asked about updates: they are started on the computer, never from a phone (UPD-02).
func (d *Dialect) update(context.Context, *call) (any, error) {
	return nil, codes.New(codes.UpdateNotOffered)
}

// Serve implements phone.Dialect.
func (d *Dialect) Serve(ctx context.Context, p phone.Peer, method string, raw json.RawMessage) (any, error) {
	h, ok := handlers[method]
	if !ok && d.traits.profile && isProfile(method) {
		h, ok = profileHandler(method), true
	}
	if !ok || d.traits.without[method] {
		return nil, codes.New(codes.MethodUnsupported)
	}
	c := &call{peer: p, raw: raw}
	if len(raw) > 0 {
		fields, err := clawket.Fields(raw)
		if err != nil {
			return nil, codes.New(codes.ParamsInvalid).Because(err)
		}
		c.fields = fields
	}
	return h(d, ctx, c)
}

// acknowledged is the answer of every method that only says that it worked.
type acknowledged struct {
	OK bool `json:"ok"`
}

func plainVersion(v string) string {
	if len(v) < 1 || len(v) > 128 {
		return ""
	}
	for _, r := range v {
		if r < ' ' || r == 0x7f {
			return ""
		}
	}
	return v
}
