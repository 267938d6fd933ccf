package conformance

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	hostv1 "github.com/openphone-host/openphone/proto/openphone/host/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/rpcerr"
)

// hostState is the host's side of the broker: state in memory, attention taken, phone tools not granted. It
// belongs to a data directory and outlives the plugin's processes, as the host's does.
type hostState struct {
	hostv1.UnimplementedHostServiceServer
	mu  sync.Mutex
	rev uint64
	m   map[[2]string]*hostv1.StateEntry
}

func newHostState() *hostState { return &hostState{m: map[[2]string]*hostv1.StateEntry{}} }

// stateOf is the state of the instance whose directory dir is.
func (k *kit) stateOf(dir string) *hostState {
	k.stateMu.Lock()
	defer k.stateMu.Unlock()
	if k.states == nil {
		k.states = map[string]*hostState{}
	}
	if k.states[dir] == nil {
		k.states[dir] = newHostState()
	}
	return k.states[dir]
}

func key(k *hostv1.StateKey) [2]string { return [2]string{k.GetSessionId(), k.GetName()} }

func (h *hostState) GetState(_ context.Context, q *hostv1.GetStateRequest) (*hostv1.GetStateResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &hostv1.GetStateResponse{Entry: h.m[key(q.GetKey())]}, nil
}

func (h *hostState) PutState(_ context.Context, q *hostv1.PutStateRequest) (*hostv1.PutStateResponse, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := key(q.GetKey())
	if q.ExpectedRevision != nil && h.m[k].GetRevision() != q.GetExpectedRevision() {
		return nil, rpcerr.Encode(codes.New(codes.RevisionConflict))
	}
	h.rev++
	if q.Value == nil {
		delete(h.m, k)
	} else {
		h.m[k] = &hostv1.StateEntry{Key: q.GetKey(), Value: q.GetValue(), Revision: h.rev}
	}
	return &hostv1.PutStateResponse{Revision: h.rev}, nil
}

func (h *hostState) ListState(q *hostv1.ListStateRequest, stream grpc.ServerStreamingServer[hostv1.ListStateResponse]) error {
	h.mu.Lock()
	var list []*hostv1.StateEntry
	for k, e := range h.m {
		if k[0] == q.GetSessionId() && len(k[1]) >= len(q.GetPrefix()) && k[1][:len(q.GetPrefix())] == q.GetPrefix() {
			list = append(list, e)
		}
	}
	h.mu.Unlock()
	return stream.Send(&hostv1.ListStateResponse{Entries: list})
}

func (h *hostState) RaiseAttention(context.Context, *hostv1.RaiseAttentionRequest) (*hostv1.RaiseAttentionResponse, error) {
	return &hostv1.RaiseAttentionResponse{}, nil
}

func (h *hostState) ClearAttention(context.Context, *hostv1.ClearAttentionRequest) (*hostv1.ClearAttentionResponse, error) {
	return &hostv1.ClearAttentionResponse{}, nil
}

func (h *hostState) ListPhoneTools(*hostv1.ListPhoneToolsRequest, grpc.ServerStreamingServer[hostv1.ListPhoneToolsResponse]) error {
	return rpcerr.Encode(codes.New(codes.FeatureNotGranted))
}
