package control

import (
	"context"
	"crypto/subtle"
	"errors"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/rpcerr"
)

const (
	// tokenKey carries the token where the transport has no permissions.
	tokenKey = "openphone-control-token"
	// maxStreams bounds the calls of one client at a time.
	maxStreams = 64
	// goodbye is how long calls in progress may take to end when the host ends.
	goodbye = 500 * time.Millisecond
)

// Run offers the service until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	l, token, err := listen(s.opt.Dir)
	if err != nil {
		return codes.New(codes.StoreReadOnly).Because(err)
	}
	defer os.Remove(address(s.opt.Dir))
	check := func(ctx context.Context) error {
		if token == "" {
			return nil
		}
		md, _ := metadata.FromIncomingContext(ctx)
		if got := md.Get(tokenKey); len(got) != 1 || subtle.ConstantTimeCompare([]byte(got[0]), []byte(token)) != 1 {
			return status.Error(grpccodes.PermissionDenied, "token")
		}
		return nil
	}
	g := grpc.NewServer(
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			resp, err := h(ctx, req)
			return resp, s.encode(info.FullMethod, err)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if err := check(stream.Context()); err != nil {
				return err
			}
			return s.encode(info.FullMethod, h(srv, stream))
		}),
	)
	controlv1.RegisterControlServiceServer(g, &service{Server: s})
	var group errgroup.Group
	group.Go(func() error {
		if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
		return nil
	})
	<-ctx.Done()
	close(s.ending)
	// A client that does not read keeps its stream, and with it a graceful stop, waiting: it gets a moment and is cut.
	cut := time.AfterFunc(goodbye, g.Stop)
	g.GracefulStop()
	cut.Stop()
	return group.Wait()
}

// encode makes the status of a failed call, and logs what has no code: it is a fault of ours.
func (s *Server) encode(method string, err error) error {
	if err == nil {
		return nil
	}
	if codes.As(err) == nil && !errors.Is(err, context.Canceled) {
		s.log.Warn("control call failed", "method", method, "error", err)
	}
	return rpcerr.Encode(err)
}
