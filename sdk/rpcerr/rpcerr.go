// Package rpcerr carries coded errors over the process boundary: a *codes.Error becomes a gRPC status with one
// ErrorDetail, and back. Both sides use it, so that a code, its outcome and its parameters arrive as they left. It knows
// nothing of what a code means for a phone. No state; every function may be called concurrently.
package rpcerr

import (
	"context"
	"errors"

	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
	"github.com/openphone-host/openphone/protocol/codes"
)

// classes says how a caller treats a code; see error.proto. A code that is not listed is a clean refusal when nothing
// was done, and a plain failure otherwise.
var classes = map[string]grpccodes.Code{
	codes.ParamsInvalid:         grpccodes.InvalidArgument,
	codes.ParametersInvalid:     grpccodes.InvalidArgument,
	codes.FrameInvalid:          grpccodes.InvalidArgument,
	codes.FrameTooLarge:         grpccodes.InvalidArgument,
	codes.PromptEmpty:           grpccodes.InvalidArgument,
	codes.PromptTooLong:         grpccodes.InvalidArgument,
	codes.KeyInvalid:            grpccodes.InvalidArgument,
	codes.TitleInvalid:          grpccodes.InvalidArgument,
	codes.CursorInvalid:         grpccodes.InvalidArgument,
	codes.AttachmentUnsupported: grpccodes.InvalidArgument,
	codes.AttachmentMalformed:   grpccodes.InvalidArgument,
	codes.AttachmentsTooMany:    grpccodes.InvalidArgument,
	codes.AnswerInvalid:         grpccodes.InvalidArgument,
	codes.DecisionInvalid:       grpccodes.InvalidArgument,
	codes.OptionInvalid:         grpccodes.InvalidArgument,
	codes.ScopeInvalid:          grpccodes.InvalidArgument,
	codes.ConfigInvalid:         grpccodes.InvalidArgument,
	codes.StateTooLarge:         grpccodes.InvalidArgument,
	codes.StateKeyInvalid:       grpccodes.InvalidArgument,

	codes.SessionUnknown:        grpccodes.NotFound,
	codes.SessionLost:           grpccodes.NotFound,
	codes.ProjectUnknown:        grpccodes.NotFound,
	codes.RunNotActive:          grpccodes.NotFound,
	codes.InteractionNotPending: grpccodes.NotFound,
	codes.AttachmentUnknown:     grpccodes.NotFound,
	codes.ArtifactUnknown:       grpccodes.NotFound,
	codes.MethodUnknown:         grpccodes.NotFound,

	codes.VersionConflict:   grpccodes.Aborted,
	codes.RevisionConflict:  grpccodes.Aborted,
	codes.OperationConflict: grpccodes.Aborted,
	codes.AttachmentChanged: grpccodes.Aborted,
	codes.WatchReplaced:     grpccodes.Aborted,

	codes.LaneFull:         grpccodes.ResourceExhausted,
	codes.SessionsFull:     grpccodes.ResourceExhausted,
	codes.StateFull:        grpccodes.ResourceExhausted,
	codes.AttentionFull:    grpccodes.ResourceExhausted,
	codes.InteractionsFull: grpccodes.ResourceExhausted,
	codes.TooManyRequests:  grpccodes.ResourceExhausted,
	codes.BridgeBusy:       grpccodes.ResourceExhausted,
	codes.ChannelOverflow:  grpccodes.ResourceExhausted,

	codes.RuntimeUnavailable: grpccodes.Unavailable,
	codes.RuntimeUnreachable: grpccodes.Unavailable,
	codes.Draining:           grpccodes.Unavailable,
	codes.Restarting:         grpccodes.Unavailable,

	codes.MethodUnsupported:   grpccodes.Unimplemented,
	codes.ProjectsUnsupported: grpccodes.Unimplemented,
	codes.SettingsUnsupported: grpccodes.Unimplemented,
	codes.SteeringUnsupported: grpccodes.Unimplemented,

	codes.DeadlineExceeded: grpccodes.DeadlineExceeded,
	codes.Internal:         grpccodes.Internal,
}

// Encode turns an error into the status a gRPC handler returns. A *codes.Error travels with code, outcome, origin and
// parameters; its cause stays behind. Anything else becomes internal with an unknown outcome, and the end of a context
// keeps its own status. nil stays nil.
func Encode(err error) error {
	if err == nil {
		return nil
	}
	e := codes.As(err)
	if e == nil {
		if _, ok := status.FromError(err); ok {
			return err
		}
		switch {
		case errors.Is(err, context.Canceled):
			return status.Error(grpccodes.Canceled, "cancelled")
		case errors.Is(err, context.DeadlineExceeded):
			e = codes.New(codes.DeadlineExceeded).With(codes.Unknown)
		default:
			e = codes.New(codes.Internal)
		}
	}
	d := &runtimev1.ErrorDetail{
		Code:       e.Code,
		Outcome:    outcome(e.Outcome),
		Origin:     runtimev1.ErrorOrigin_ERROR_ORIGIN_PLUGIN,
		Parameters: e.Params,
	}
	if e.Source == "runtime" {
		d.Origin = runtimev1.ErrorOrigin_ERROR_ORIGIN_RUNTIME
	}
	if e.RetryAfter > 0 {
		d.RetryAfter = durationpb.New(e.RetryAfter)
	}
	class, ok := classes[e.Code]
	if !ok {
		class = grpccodes.Unknown
		if e.Outcome == codes.NotDispatched {
			class = grpccodes.FailedPrecondition
		}
	}
	st, serr := status.New(class, e.Code).WithDetails(d)
	if serr != nil {
		return status.Error(class, e.Code)
	}
	return st.Err()
}

// Decode turns the error of a gRPC call into a *codes.Error; nil stays nil. A detail wins. Without one the status code
// decides: an absent method is method_unsupported, a missed deadline deadline_exceeded, a lost connection
// runtime_unavailable, all else internal. Every one of them leaves the outcome unknown, but for an absent method.
func Decode(err error) *codes.Error {
	if err == nil {
		return nil
	}
	if e := codes.As(err); e != nil {
		return e
	}
	st, _ := status.FromError(err)
	for _, any := range st.Details() {
		d, ok := any.(*runtimev1.ErrorDetail)
		if !ok || d.GetCode() == "" {
			continue
		}
		e := codes.New(d.GetCode())
		e.Source = "plugin"
		if d.GetOrigin() == runtimev1.ErrorOrigin_ERROR_ORIGIN_RUNTIME {
			e.Source = "runtime"
		}
		e.Outcome = fromOutcome(d.GetOutcome())
		e.RetryAfter = d.GetRetryAfter().AsDuration()
		for k, v := range d.GetParameters() {
			if e.Params == nil {
				e.Params = map[string]string{}
			}
			e.Params[k] = v
		}
		return e.Because(err)
	}
	code, out := codes.Internal, codes.Unknown
	switch {
	case errors.Is(err, context.DeadlineExceeded) || st.Code() == grpccodes.DeadlineExceeded:
		code = codes.DeadlineExceeded
	case st.Code() == grpccodes.Unimplemented:
		code, out = codes.MethodUnsupported, codes.NotDispatched
	case st.Code() == grpccodes.Unavailable || st.Code() == grpccodes.Canceled:
		code = codes.RuntimeUnavailable
	}
	e := codes.New(code)
	e.Source = "plugin"
	return e.With(out).Because(err)
}

func outcome(o codes.Outcome) runtimev1.Outcome {
	switch o {
	case codes.NotDispatched:
		return runtimev1.Outcome_OUTCOME_NOT_DISPATCHED
	case codes.Dispatched:
		return runtimev1.Outcome_OUTCOME_DISPATCHED
	}
	return runtimev1.Outcome_OUTCOME_UNKNOWN
}

func fromOutcome(o runtimev1.Outcome) codes.Outcome {
	switch o {
	case runtimev1.Outcome_OUTCOME_NOT_DISPATCHED:
		return codes.NotDispatched
	case runtimev1.Outcome_OUTCOME_DISPATCHED:
		return codes.Dispatched
	}
	return codes.Unknown
}
