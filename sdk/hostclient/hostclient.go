// Package hostclient is the typed client of HostService: what a plugin may ask of the host. It dials the broker once, at
// once, because the broker forgets an offer after 5 s, and keeps the connection; gRPC heals it by itself. It must not
// know any runtime.
//
// A Client is safe for concurrent use.
package hostclient

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	hostv1 "github.com/openphone-host/openphone/proto/openphone/host/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/rpcerr"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// fast and io are the deadlines of the classes the calls belong to.
	fast   = 2 * time.Second
	ioTime = 10 * time.Second
	// maxMessage is the receive limit; see serve.MaxMessage.
	maxMessage = 17 << 20
)

// Client implements runtime.Host.
type Client struct {
	mu   sync.Mutex
	conn *grpc.ClientConn
	err  error // a broker stream can be dialled once; its failure is final
}

var _ runtime.Host = (*Client)(nil)

// New makes a client for the broker stream id and dials it, which takes 5 s at most and is done before the host answers
// a call. The stream id 0 means that the host offers nothing: every call fails with feature_not_granted.
func New(b *plugin.GRPCBroker, id uint32) *Client {
	if b == nil || id == 0 {
		return &Client{err: codes.New(codes.FeatureNotGranted)}
	}
	conn, err := b.DialWithOptions(id, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return &Client{err: codes.New(codes.RuntimeUnavailable).Because(err)}
	}
	return &Client{conn: conn}
}

// NewConn makes a client over a connection that exists already.
func NewConn(conn *grpc.ClientConn) *Client { return &Client{conn: conn} }

// Close lets the connection go.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = codes.New(codes.RuntimeUnavailable)
	}
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

func (c *Client) client() (hostv1.HostServiceClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	return hostv1.NewHostServiceClient(c.conn), nil
}

// call makes one unary call within limit.
func call[Q, R any](ctx context.Context, c *Client, limit time.Duration, q *Q, do func(hostv1.HostServiceClient, context.Context, *Q, ...grpc.CallOption) (*R, error)) (*R, error) {
	h, err := c.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := do(h, ctx, q)
	if err != nil {
		return nil, rpcerr.Decode(err)
	}
	return r, nil
}

// GetState implements runtime.Host.
func (c *Client) GetState(ctx context.Context, key runtime.StateKey) (*runtime.StateEntry, error) {
	r, err := call(ctx, c, fast, &hostv1.GetStateRequest{Key: protomap.ToStateKey(&key)}, hostv1.HostServiceClient.GetState)
	if err != nil {
		return nil, err
	}
	return protomap.FromStateEntry(r.GetEntry()), nil
}

// PutState implements runtime.Host.
func (c *Client) PutState(ctx context.Context, key runtime.StateKey, value []byte, expected *uint64) (uint64, error) {
	if value == nil {
		value = []byte{} // an absent value would remove the entry
	}
	r, err := call(ctx, c, fast, &hostv1.PutStateRequest{Key: protomap.ToStateKey(&key), Value: value, ExpectedRevision: expected}, hostv1.HostServiceClient.PutState)
	if err != nil {
		return 0, err
	}
	return r.GetRevision(), nil
}

// DeleteState implements runtime.Host.
func (c *Client) DeleteState(ctx context.Context, key runtime.StateKey, expected *uint64) error {
	_, err := call(ctx, c, fast, &hostv1.PutStateRequest{Key: protomap.ToStateKey(&key), ExpectedRevision: expected}, hostv1.HostServiceClient.PutState)
	return err
}

// ListState implements runtime.Host.
func (c *Client) ListState(ctx context.Context, sessionID, prefix string) ([]runtime.StateEntry, error) {
	h, err := c.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ioTime)
	defer cancel()
	stream, err := h.ListState(ctx, &hostv1.ListStateRequest{SessionId: sessionID, Prefix: prefix})
	if err != nil {
		return nil, rpcerr.Decode(err)
	}
	var list []runtime.StateEntry
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, rpcerr.Decode(err)
		}
		for _, e := range r.GetEntries() {
			list = append(list, *protomap.FromStateEntry(e))
		}
	}
}

// RaiseAttention implements runtime.Host.
func (c *Client) RaiseAttention(ctx context.Context, r *runtime.RaiseAttentionRequest) error {
	_, err := call(ctx, c, fast, protomap.ToRaiseAttentionRequest(r), hostv1.HostServiceClient.RaiseAttention)
	return err
}

// ClearAttention implements runtime.Host.
func (c *Client) ClearAttention(ctx context.Context, attentionID string) error {
	_, err := call(ctx, c, fast, &hostv1.ClearAttentionRequest{AttentionId: attentionID}, hostv1.HostServiceClient.ClearAttention)
	return err
}

// ListPhoneTools implements runtime.Host.
func (c *Client) ListPhoneTools(ctx context.Context, session runtime.SessionRef, send func(*runtime.ListPhoneToolsResponse) error) error {
	h, err := c.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := protomap.ToListPhoneToolsRequest(&runtime.ListPhoneToolsRequest{Session: session})
	if session.IsZero() {
		q.Session = nil
	}
	stream, err := h.ListPhoneTools(ctx, q)
	if err != nil {
		return rpcerr.Decode(err)
	}
	for {
		r, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return rpcerr.Decode(err)
		}
		if err := send(protomap.FromListPhoneToolsResponse(r)); err != nil {
			return err
		}
	}
}

// InvokePhoneTool implements runtime.Host. A stream that ends without a result has an unknown outcome.
func (c *Client) InvokePhoneTool(ctx context.Context, r *runtime.InvokePhoneToolRequest, progress func(*runtime.PhoneToolProgress)) (*runtime.PhoneToolResult, error) {
	h, err := c.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := h.InvokePhoneTool(ctx, protomap.ToInvokePhoneToolRequest(r))
	if err != nil {
		return nil, rpcerr.Decode(err)
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = codes.New(codes.OutcomeUnknown)
			}
			return nil, rpcerr.Decode(err)
		}
		switch {
		case m.GetResult() != nil:
			return protomap.FromPhoneToolResult(m.GetResult()), nil
		case m.GetProgress() != nil && progress != nil:
			progress(protomap.FromPhoneToolProgress(m.GetProgress()))
		}
	}
}

// CancelPhoneTool implements runtime.Host.
func (c *Client) CancelPhoneTool(ctx context.Context, callID string) error {
	_, err := call(ctx, c, fast, &hostv1.CancelPhoneToolRequest{CallId: callID}, hostv1.HostServiceClient.CancelPhoneTool)
	return err
}
