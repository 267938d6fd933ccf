package rpcerr

import (
	"context"
	"errors"
	"testing"
	"time"

	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"
	"github.com/openphone-host/openphone/protocol/codes"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	late := codes.New(codes.LaneFull, "n", "8")
	late.RetryAfter = 3 * time.Second
	native := codes.New(codes.RuntimeLoginRequired)
	native.Source = "runtime"
	for name, tc := range map[string]struct {
		err   *codes.Error
		class grpccodes.Code
	}{
		"bad request":     {codes.New(codes.ParamsInvalid), grpccodes.InvalidArgument},
		"not found":       {codes.New(codes.SessionLost), grpccodes.NotFound},
		"clean refusal":   {codes.New(codes.RunActive), grpccodes.FailedPrecondition},
		"unknown outcome": {codes.New(codes.NotConfirmed).With(codes.Unknown), grpccodes.Unknown},
		"dispatched":      {codes.New(codes.RunFailed), grpccodes.Unknown},
		"busy":            {late, grpccodes.ResourceExhausted},
		"draining":        {codes.New(codes.Draining), grpccodes.Unavailable},
		"absent":          {codes.New(codes.MethodUnsupported), grpccodes.Unimplemented},
		"of the runtime":  {native, grpccodes.FailedPrecondition},
		"code of a plugin": {
			(&codes.Error{Code: "demo.refused", Source: "plugin"}).With(codes.NotDispatched), grpccodes.FailedPrecondition,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := Encode(tc.err.Because(errors.New("secret cause")))
			if got := status.Code(wire); got != tc.class {
				t.Errorf("status %v, want %v", got, tc.class)
			}
			if status.Convert(wire).Message() != tc.err.Code {
				t.Errorf("the message is %q, want the code alone", status.Convert(wire).Message())
			}
			got := Decode(wire)
			want := struct {
				Code, Outcome string
				Runtime       bool
				Retry         time.Duration
				Params        map[string]string
			}{tc.err.Code, string(tc.err.Outcome), tc.err.Source == "runtime", tc.err.RetryAfter, tc.err.Params}
			have := want
			have.Code, have.Outcome, have.Runtime, have.Retry, have.Params = got.Code, string(got.Outcome), got.Source == "runtime", got.RetryAfter, got.Params
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestErrorsWithoutACode(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err     error
		want    string
		outcome codes.Outcome
	}{
		"a plain error":      {Encode(errors.New("open /home/someone/x: denied")), codes.Internal, codes.Unknown},
		"a missed deadline":  {Encode(context.DeadlineExceeded), codes.DeadlineExceeded, codes.Unknown},
		"a lost connection":  {status.Error(grpccodes.Unavailable, "EOF"), codes.RuntimeUnavailable, codes.Unknown},
		"an absent method":   {status.Error(grpccodes.Unimplemented, "unknown method"), codes.MethodUnsupported, codes.NotDispatched},
		"too large":          {status.Error(grpccodes.ResourceExhausted, "message larger than max"), codes.Internal, codes.Unknown},
		"a caller gone away": {Encode(context.Canceled), codes.RuntimeUnavailable, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Decode(tc.err)
			if got.Code != tc.want || got.Outcome != tc.outcome {
				t.Errorf("Decode = %s %q, want %s %q", got.Code, got.Outcome, tc.want, tc.outcome)
			}
		})
	}
	if Decode(nil) != nil || Encode(nil) != nil {
		t.Error("nil does not stay nil")
	}
	if m := status.Convert(Encode(errors.New("open /home/someone/x: denied"))).Message(); m != codes.Internal {
		t.Errorf("the message of a plain error is %q: its text must stay behind", m)
	}
}
