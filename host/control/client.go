package control

import (
	"context"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/rpcerr"
)

// maxAnswer bounds one answer of the host: a long list of conversations fits.
const maxAnswer = 64 << 20

// Client speaks to a running host. Errors of its calls, also those of streams, are *codes.Error; host_absent means that
// no host runs on the data directory.
type Client struct {
	controlv1.ControlServiceClient
	conn *grpc.ClientConn
}

// Dial prepares a client for the host with this data directory. Nothing is sent yet: the first call tells whether the
// host is there.
func Dial(dir string) (*Client, error) {
	dial, token, err := dialer(dir)
	if err != nil {
		return nil, codes.New(codes.HostAbsent).Because(err)
	}
	with := func(ctx context.Context) context.Context {
		if token == "" {
			return ctx
		}
		return metadata.AppendToOutgoingContext(ctx, tokenKey, token)
	}
	conn, err := grpc.NewClient("passthrough:///openphone",
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket's permissions, or loopback and the token
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return decode(invoke(with(ctx), method, req, reply, cc, opts...))
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(with(ctx), desc, cc, method, opts...)
			if err != nil {
				return nil, decode(err)
			}
			return decoding{s}, nil
		}),
	)
	if err != nil {
		return nil, codes.New(codes.HostAbsent).Because(err)
	}
	return &Client{ControlServiceClient: controlv1.NewControlServiceClient(conn), conn: conn}, nil
}

// Close ends the connection and every call on it.
func (c *Client) Close() error { return c.conn.Close() }

type decoding struct{ grpc.ClientStream }

func (d decoding) RecvMsg(m any) error { return decode(d.ClientStream.RecvMsg(m)) }

// decode makes a coded error of a failed call. The end of a stream stays io.EOF.
func decode(err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	if st.Code() == grpccodes.Unavailable && len(st.Details()) == 0 {
		return codes.New(codes.HostAbsent).Because(err)
	}
	return rpcerr.Decode(err)
}
