// Package protomap carries the contract types of sdk/runtime over the process boundary: one converter in each direction
// for every message and enum, generated from the protos. It holds no state; every function may be called concurrently.
package protomap

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func fromTime(t *timestamppb.Timestamp) time.Time {
	if t == nil || !t.IsValid() {
		return time.Time{}
	}
	return t.AsTime()
}

func toTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func fromDuration(d *durationpb.Duration) time.Duration {
	if d == nil || !d.IsValid() {
		return 0
	}
	return d.AsDuration()
}

func toDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
