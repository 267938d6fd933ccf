package agent

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	profilePrefix = "codex.profile." // of every method
	profileLane   = "codex.profile"  // of those that change something
	maxHandles    = 2000             // names of skills, documents and versions that are good at one time
)

// profile serves the 11 methods about a person's Codex as a whole (CX-21). They start and resume no thread, take no
// lock of one and call no model. Files are named by opaque handles that are good only as long as the app server that
// told of them lives. Writes are serialised, and one whose outcome is unknown is never repeated.
type profile struct {
	*library
	writes sync.Mutex

	handleMu sync.Mutex
	handles  map[string]handle
	owner    *appserver.Client // the app server the handles came from
}

// handle is what an opaque name stands for; exactly one of its fields is set.
type handle struct {
	document *document
	skill    *nativeSkill
	version  *layerVersion
}

func newProfile(l *library) *profile {
	return &profile{library: l, handles: map[string]handle{}}
}

// profileCall is one call with the app server it goes to.
type profileCall struct {
	client *appserver.Client
	params json.RawMessage
}

// decode reads the parameters; members that the method does not have are refused.
func (c profileCall) decode(v any) error {
	d := json.NewDecoder(bytes.NewReader(c.params))
	d.DisallowUnknownFields()
	if d.Decode(v) != nil {
		return codes.New(codes.ParametersInvalid)
	}
	return nil
}

// Call runs one method of the list in profileMethods; nothing else of the runtime can be reached this way.
func (p *profile) Call(ctx context.Context, r *runtime.CallRequest) (*runtime.CallResponse, error) {
	name, ok := strings.CutPrefix(r.Method, profilePrefix)
	method := map[string]func(context.Context, profileCall) (any, error){
		"projects": p.projects, "defaults": p.defaults, "defaults.set": p.setDefaults, "usage": p.usage,
		"skills": p.skills, "skills.set": p.setSkill, "instructions": p.instructions,
		"document": p.document, "document.set": p.setDocument, "mcp": p.mcp, "plugins": p.plugins,
	}[name]
	if !ok || method == nil {
		return nil, codes.New(codes.MethodUnknown)
	}
	client, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	p.retire(client)
	c := profileCall{client: client, params: r.Params.Data}
	if len(bytes.TrimSpace(c.params)) == 0 {
		c.params = json.RawMessage("{}")
	}
	result, err := method(ctx, c)
	if err != nil {
		return nil, readError(err)
	}
	b, err := json.Marshal(result)
	if err != nil {
		return nil, codes.New(codes.ReplyInvalid).Because(err)
	}
	return &runtime.CallResponse{Result: runtime.JSON(b)}, nil
}

// Call implements runtime.Manager.
func (a *Agent) Call(ctx context.Context, r *runtime.CallRequest) (*runtime.CallResponse, error) {
	return a.profile.Call(ctx, r)
}

// retire forgets all handles when the app server is another one.
func (p *profile) retire(client *appserver.Client) {
	p.handleMu.Lock()
	defer p.handleMu.Unlock()
	if p.owner != client {
		p.owner = client
		clear(p.handles)
	}
}

// name makes a handle. When there are too many, all older ones are forgotten: a phone reads its lists again.
func (p *profile) name(h handle) string {
	p.handleMu.Lock()
	defer p.handleMu.Unlock()
	if len(p.handles) >= maxHandles {
		clear(p.handles)
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	id := hex.EncodeToString(b[:])
	p.handles[id] = h
	return id
}

func (p *profile) find(id string) (handle, bool) {
	p.handleMu.Lock()
	defer p.handleMu.Unlock()
	h, ok := p.handles[id]
	return h, ok
}

// take finds a handle that is good once.
func (p *profile) take(id string) (handle, bool) {
	p.handleMu.Lock()
	defer p.handleMu.Unlock()
	h, ok := p.handles[id]
	if ok {
		delete(p.handles, id)
	}
	return h, ok
}

// profileMethods declares the methods of the profile.
func profileMethods() []runtime.Method {
	const (
		none    = `{}`
		project = `{"projectId":{"type":"string","minLength":1,"maxLength":256}}`
		id      = `"id":{"type":"string","minLength":1,"maxLength":256}`
		choice  = `{"type":["string","null"],"maxLength":256}`
	)
	schema := func(properties, required string) runtime.Payload {
		return runtime.JSON([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":` + properties +
			`,"required":[` + required + `],"additionalProperties":false}`))
	}
	list := runtime.JSON([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"array"}`))
	one := runtime.JSON([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`))
	read := func(name, description, properties, required string, result runtime.Payload) runtime.Method {
		return runtime.Method{
			Name: profilePrefix + name, Description: description, ParamsSchema: schema(properties, required), ResultSchema: result,
			Scope: runtime.MethodScopeRead, Risk: runtime.RiskLow, Idempotent: true,
		}
	}
	write := func(name, description, properties, required string) runtime.Method {
		return runtime.Method{
			Name: profilePrefix + name, Description: description, ParamsSchema: schema(properties, required), ResultSchema: one,
			Scope: runtime.MethodScopeWrite, Risk: runtime.RiskMedium, Lane: profileLane,
		}
	}
	return []runtime.Method{
		read("projects", "Lists the projects of this computer.", none, ``, list),
		read("defaults", "Reads model and reasoning level of new conversations.", none, ``, one),
		write("defaults.set", "Changes model and reasoning level of new conversations, if nobody else changed them meanwhile.",
			`{"model":`+choice+`,"thinking":`+choice+`,"version":{"type":"string","maxLength":512}}`, `"model","thinking","version"`),
		read("usage", "Reads the limits and the use of the signed-in account.", none, ``, one),
		read("skills", "Lists the skills of a project.", `{"projectId":{"type":"string","minLength":1,"maxLength":256},"forceReload":{"type":"boolean"}}`, `"projectId"`, one),
		write("skills.set", "Switches a skill on or off.", `{`+id+`,"enabled":{"type":"boolean"}}`, `"id","enabled"`),
		read("instructions", "Lists the instruction files of a project and of the person.", project, `"projectId"`, list),
		read("document", "Reads an instruction file or a skill.", `{`+id+`}`, `"id"`, one),
		write("document.set", "Writes an instruction file or a skill, if nobody else changed it meanwhile.",
			`{`+id+`,"content":{"type":"string","maxLength":131072},"version":{"type":"string","maxLength":512}}`, `"id","content","version"`),
		read("mcp", "Lists the MCP servers with their tools.", none, ``, list),
		read("plugins", "Lists the plugins of the agent in a project.", project, `"projectId"`, list),
	}
}
