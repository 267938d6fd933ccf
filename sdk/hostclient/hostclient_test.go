package hostclient

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	hostv1 "github.com/openphone-host/openphone/proto/openphone/host/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// host is a HostService that keeps what it is told.
type host struct {
	hostv1.UnimplementedHostServiceServer
	mu      sync.Mutex
	entries map[string]*hostv1.StateEntry
	removed int
}

func (h *host) GetState(_ context.Context, q *hostv1.GetStateRequest) (*hostv1.GetStateResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &hostv1.GetStateResponse{Entry: h.entries[q.GetKey().GetName()]}, nil
}

func (h *host) PutState(_ context.Context, q *hostv1.PutStateRequest) (*hostv1.PutStateResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := q.GetKey().GetName()
	if q.ExpectedRevision != nil && h.entries[name].GetRevision() != q.GetExpectedRevision() {
		return nil, rpcerr.Encode(codes.New(codes.RevisionConflict))
	}
	rev := h.entries[name].GetRevision() + 1
	if q.Value == nil {
		h.removed++
		delete(h.entries, name)
	} else {
		h.entries[name] = &hostv1.StateEntry{Key: q.GetKey(), Value: q.GetValue(), Revision: rev}
	}
	return &hostv1.PutStateResponse{Revision: rev}, nil
}

func (h *host) ListState(_ *hostv1.ListStateRequest, s grpc.ServerStreamingServer[hostv1.ListStateResponse]) error {
	for _, e := range h.entries {
		if err := s.Send(&hostv1.ListStateResponse{Entries: []*hostv1.StateEntry{e}}); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) InvokePhoneTool(q *hostv1.InvokePhoneToolRequest, s grpc.ServerStreamingServer[hostv1.InvokePhoneToolResponse]) error {
	if q.GetTool() == "broken" {
		return nil // a stream without a result
	}
	for _, st := range []hostv1.PhoneToolStage{hostv1.PhoneToolStage_PHONE_TOOL_STAGE_WAITING_FOR_CONFIRMATION, hostv1.PhoneToolStage_PHONE_TOOL_STAGE_RUNNING} {
		if err := s.Send(&hostv1.InvokePhoneToolResponse{Kind: &hostv1.InvokePhoneToolResponse_Progress{Progress: &hostv1.PhoneToolProgress{Stage: st}}}); err != nil {
			return err
		}
	}
	return s.Send(&hostv1.InvokePhoneToolResponse{Kind: &hostv1.InvokePhoneToolResponse_Result{Result: &hostv1.PhoneToolResult{Status: hostv1.PhoneToolStatus_PHONE_TOOL_STATUS_OK}}})
}

func connect(t *testing.T, h *host) *Client {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	hostv1.RegisterHostServiceServer(g, h)
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Serve(lis) })
	t.Cleanup(func() { g.Stop(); wg.Wait() })
	conn, err := grpc.NewClient("passthrough:///host", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(conn)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestState(t *testing.T) {
	t.Parallel()
	h := &host{entries: map[string]*hostv1.StateEntry{}}
	c := connect(t, h)
	ctx := t.Context()
	key := runtime.StateKey{Name: "a/b"}
	if e, err := c.GetState(ctx, key); e != nil || err != nil {
		t.Fatalf("GetState of nothing = %v, %v", e, err)
	}
	zero := uint64(0)
	rev, err := c.PutState(ctx, key, nil, &zero) // an empty value is a value
	if err != nil || rev != 1 || h.removed != 0 {
		t.Fatalf("PutState = %d, %v; removed %d", rev, err, h.removed)
	}
	if _, err := c.PutState(ctx, key, []byte("x"), &zero); codes.Of(err) != codes.RevisionConflict {
		t.Errorf("PutState with an old revision = %v, want revision_conflict", err)
	}
	if list, err := c.ListState(ctx, "", "a"); err != nil || len(list) != 1 || list[0].Key != key {
		t.Errorf("ListState = %v, %v", list, err)
	}
	if err := c.DeleteState(ctx, key, &rev); err != nil || h.removed != 1 {
		t.Errorf("DeleteState = %v; removed %d", err, h.removed)
	}
}

func TestInvokePhoneTool(t *testing.T) {
	t.Parallel()
	c := connect(t, &host{})
	var stages []runtime.PhoneToolStage
	r, err := c.InvokePhoneTool(t.Context(), &runtime.InvokePhoneToolRequest{CallID: "c", Tool: "openphone.ui.tap"}, func(p *runtime.PhoneToolProgress) { stages = append(stages, p.Stage) })
	if err != nil || r.Status != runtime.PhoneToolStatusOk || len(stages) != 2 {
		t.Errorf("InvokePhoneTool = %+v, %v after %v", r, err, stages)
	}
	if _, err := c.InvokePhoneTool(t.Context(), &runtime.InvokePhoneToolRequest{CallID: "d", Tool: "broken"}, nil); codes.Of(err) != codes.OutcomeUnknown {
		t.Errorf("a stream without a result gives %v, want outcome_unknown", err)
	}
}

func TestWhatTheHostDoesNotGrant(t *testing.T) {
	t.Parallel()
	none := New(nil, 0)
	if _, err := none.GetState(t.Context(), runtime.StateKey{Name: "a"}); codes.Of(err) != codes.FeatureNotGranted {
		t.Errorf("without a broker: %v, want feature_not_granted", err)
	}
	c := connect(t, &host{})
	err := c.ListPhoneTools(t.Context(), runtime.SessionRef{}, func(*runtime.ListPhoneToolsResponse) error { return nil })
	if codes.Of(err) != codes.MethodUnsupported {
		t.Errorf("an absent method: %v, want method_unsupported", err)
	}
	_ = c.Close()
	if err := c.ClearAttention(t.Context(), "a"); err == nil {
		t.Error("a closed client answers")
	}
}
