package sessions

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// maxParams bounds the parameters of a management call, in bytes.
const maxParams = 1 << 20

// Manage calls a management method: one the plugin declares, can serve now, and does not keep for the person at the
// computer. Parameters are checked against its schema before the plugin sees them.
//
// Errors: method_unknown, parameters_invalid, reply_invalid, the method's own.
func (c *Conversations) Manage(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	m := c.declared(method)
	if m == nil {
		return nil, codes.New(codes.MethodUnknown)
	}
	switch m.Scope {
	case runtime.MethodScopeRead, runtime.MethodScopeWrite, runtime.MethodScopeAdmin:
	default: // local, or of a newer contract
		return nil, codes.New(codes.MethodUnknown)
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if len(params) > maxParams || !valid(m.ParamsSchema, params) {
		return nil, codes.New(codes.ParametersInvalid)
	}
	resp, err := c.rt.Call(ctx, &runtime.CallRequest{Method: method, Params: runtime.JSON(params)})
	if err != nil {
		return nil, err
	}
	if !valid(m.ResultSchema, resp.Result.Data) {
		return nil, codes.New(codes.ReplyInvalid)
	}
	return json.RawMessage(resp.Result.Data), nil
}

// declared finds a method in Description that Status names.
func (c *Conversations) declared(method string) *runtime.Method {
	d, s := c.rt.Description(), c.rt.Status()
	if d == nil || !contains(s.Methods, method) || !c.can(runtime.CapabilityManagement) {
		return nil
	}
	for i := range d.Methods {
		if d.Methods[i].Name == method {
			return &d.Methods[i]
		}
	}
	return nil
}

// valid checks a document against a schema; without a schema any JSON will do.
func valid(schema runtime.Payload, document []byte) bool {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return false
	}
	if schema.IsZero() {
		return true
	}
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Data))
	if err != nil {
		return false
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{}) // a schema refers to nothing outside itself
	if compiler.AddResource(schemaURL, text) != nil {
		return false
	}
	compiled, err := compiler.Compile(schemaURL)
	return err == nil && compiled.Validate(doc) == nil
}

const schemaURL = "openphone:schema"

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, codes.New(codes.ParametersInvalid) }
