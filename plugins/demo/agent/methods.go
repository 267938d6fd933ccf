package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

func schema(s string) runtime.Payload { return runtime.JSON([]byte(s)) }

// methods declares what Call can do.
func methods() []runtime.Method {
	counter := schema(`{"type":"object","required":["value"],"properties":{"value":{"type":"integer"}}}`)
	return []runtime.Method{
		{
			Name: "demo.echo", Description: "Gives its parameters back.", ParamsSchema: schema(`{"type":"object"}`), ResultSchema: schema(`{"type":"object"}`),
			Scope: runtime.MethodScopeRead, Risk: runtime.RiskLow, Idempotent: true,
		},
		{
			Name: "demo.counter.read", Description: "Reads a counter.", ParamsSchema: schema(`{"type":"object"}`), ResultSchema: counter,
			Scope: runtime.MethodScopeRead, Risk: runtime.RiskLow, Idempotent: true,
		},
		{
			Name: "demo.counter.add", Description: "Adds to the counter.",
			ParamsSchema: schema(`{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer","minimum":-1000,"maximum":1000},"wait_ms":{"type":"integer","minimum":0,"maximum":2000}}}`),
			ResultSchema: counter, Scope: runtime.MethodScopeWrite, Risk: runtime.RiskMedium, Lane: "demo.counter",
		},
	}
}

// Call implements runtime.Manager. The lane keeps additions one after the other.
func (a *Agent) Call(ctx context.Context, r *runtime.CallRequest) (*runtime.CallResponse, error) {
	a.maybeHang("call")
	switch r.Method {
	case "demo.echo":
		if !json.Valid(r.Params.Data) {
			return nil, codes.New(codes.ParametersInvalid)
		}
		return &runtime.CallResponse{Result: runtime.JSON(r.Params.Data)}, nil
	case "demo.counter.read":
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.counted()
	case "demo.counter.add":
		var p struct {
			N    *int64 `json:"n"`
			Wait int    `json:"wait_ms"`
		}
		if err := json.Unmarshal(r.Params.Data, &p); err != nil || p.N == nil || p.Wait < 0 || p.Wait > 2000 {
			return nil, codes.New(codes.ParametersInvalid)
		}
		if err := sleepUntil(ctx, time.Now().Add(time.Duration(p.Wait)*time.Millisecond)); err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.counter += *p.N
		return a.counted()
	}
	return nil, codes.New(codes.MethodUnknown)
}

func (a *Agent) counted() (*runtime.CallResponse, error) {
	b, err := json.Marshal(map[string]int64{"value": a.counter})
	if err != nil {
		return nil, err
	}
	return &runtime.CallResponse{Result: runtime.JSON(b)}, nil
}

// sleepUntil waits for a moment, or for the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) error {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
