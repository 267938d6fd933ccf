package runtimes

import (
	"context"
	"regexp"
	"unicode/utf8"

	"google.golang.org/grpc"

	hostv1 "github.com/openphone-host/openphone/proto/openphone/host/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// hostFeatures are what this host grants to a plugin in Configure. Phone tools come with the phone endpoints.
var hostFeatures = []string{"state", "attention"}

const (
	maxStateValue = 256 << 10 // host.proto, StateEntry
	maxStateBatch = 1 << 20   // host.proto, ListStateResponse
)

var stateName = regexp.MustCompile(`^[a-zA-Z0-9._/-]{1,200}$`)

// hostService answers one instance; the connection tells who is calling, so no request says it.
type hostService struct {
	hostv1.UnimplementedHostServiceServer
	instance  string
	state     StateStore
	attention AttentionStore
}

func (h *hostService) register(s *grpc.Server) { hostv1.RegisterHostServiceServer(s, h) }

func (h *hostService) GetState(ctx context.Context, r *hostv1.GetStateRequest) (*hostv1.GetStateResponse, error) {
	key, err := h.key(r.GetKey())
	if err != nil {
		return nil, rpcerr.Encode(err)
	}
	e, err := h.state.GetState(ctx, h.instance, key)
	if err != nil {
		return nil, rpcerr.Encode(err)
	}
	return &hostv1.GetStateResponse{Entry: protomap.ToStateEntry(e)}, nil
}

func (h *hostService) PutState(ctx context.Context, r *hostv1.PutStateRequest) (*hostv1.PutStateResponse, error) {
	key, err := h.key(r.GetKey())
	if err != nil {
		return nil, rpcerr.Encode(err)
	}
	if r.Value == nil {
		if err := h.state.DeleteState(ctx, h.instance, key, r.ExpectedRevision); err != nil {
			return nil, rpcerr.Encode(err)
		}
		return &hostv1.PutStateResponse{}, nil
	}
	if len(r.Value) > maxStateValue {
		return nil, rpcerr.Encode(codes.New(codes.StateTooLarge))
	}
	rev, err := h.state.PutState(ctx, h.instance, key, r.Value, r.ExpectedRevision)
	if err != nil {
		return nil, rpcerr.Encode(err)
	}
	return &hostv1.PutStateResponse{Revision: rev}, nil
}

func (h *hostService) ListState(r *hostv1.ListStateRequest, out grpc.ServerStreamingServer[hostv1.ListStateResponse]) error {
	if h.state == nil {
		return rpcerr.Encode(codes.New(codes.FeatureNotGranted))
	}
	list, err := h.state.ListState(out.Context(), h.instance, r.GetSessionId(), r.GetPrefix())
	if err != nil {
		return rpcerr.Encode(err)
	}
	batch, size := &hostv1.ListStateResponse{}, 0
	for i := range list {
		n := len(list[i].Value) + len(list[i].Key.Name) + 64
		if size > 0 && size+n > maxStateBatch {
			if err := out.Send(batch); err != nil {
				return err
			}
			batch, size = &hostv1.ListStateResponse{}, 0
		}
		batch.Entries = append(batch.Entries, protomap.ToStateEntry(&list[i]))
		size += n
	}
	if size > 0 {
		return out.Send(batch)
	}
	return nil
}

func (h *hostService) RaiseAttention(ctx context.Context, r *hostv1.RaiseAttentionRequest) (*hostv1.RaiseAttentionResponse, error) {
	if h.attention == nil {
		return nil, rpcerr.Encode(codes.New(codes.FeatureNotGranted))
	}
	if id := r.GetAttentionId(); id == "" || len(id) > 200 || !utf8.ValidString(id) {
		return nil, rpcerr.Encode(codes.New(codes.ParamsInvalid))
	}
	if err := h.attention.RaiseAttention(ctx, h.instance, protomap.FromRaiseAttentionRequest(r)); err != nil {
		return nil, rpcerr.Encode(err)
	}
	return &hostv1.RaiseAttentionResponse{}, nil
}

func (h *hostService) ClearAttention(ctx context.Context, r *hostv1.ClearAttentionRequest) (*hostv1.ClearAttentionResponse, error) {
	if h.attention == nil {
		return nil, rpcerr.Encode(codes.New(codes.FeatureNotGranted))
	}
	if err := h.attention.ClearAttention(ctx, h.instance, r.GetAttentionId()); err != nil {
		return nil, rpcerr.Encode(err)
	}
	return &hostv1.ClearAttentionResponse{}, nil
}

// The phone tools: not granted, and a plugin that asks nevertheless is told so in the contract's own way.

func (h *hostService) ListPhoneTools(*hostv1.ListPhoneToolsRequest, grpc.ServerStreamingServer[hostv1.ListPhoneToolsResponse]) error {
	return rpcerr.Encode(codes.New(codes.FeatureNotGranted))
}

func (h *hostService) InvokePhoneTool(*hostv1.InvokePhoneToolRequest, grpc.ServerStreamingServer[hostv1.InvokePhoneToolResponse]) error {
	return rpcerr.Encode(codes.New(codes.FeatureNotGranted))
}

func (h *hostService) CancelPhoneTool(context.Context, *hostv1.CancelPhoneToolRequest) (*hostv1.CancelPhoneToolResponse, error) {
	return nil, rpcerr.Encode(codes.New(codes.FeatureNotGranted))
}

func (h *hostService) key(k *hostv1.StateKey) (runtime.StateKey, error) {
	if h.state == nil {
		return runtime.StateKey{}, codes.New(codes.FeatureNotGranted)
	}
	key := runtime.StateKey{SessionID: k.GetSessionId(), Name: k.GetName()}
	if !stateName.MatchString(key.Name) || len(key.SessionID) > 200 {
		return runtime.StateKey{}, codes.New(codes.StateKeyInvalid)
	}
	return key, nil
}
