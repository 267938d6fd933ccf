package control

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/runtimes"
	controlv1 "github.com/openphone-host/openphone/proto/openphone/control/v1"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	// defaultDrain is how long Shutdown lets replies run when nobody says otherwise.
	defaultDrain = 10 * time.Second
	// settle is how long changes of the status gather before they are sent.
	settle = 20 * time.Millisecond
	// mostReceipts bounds ShowSession.
	mostReceipts = 50
)

// service is ControlService; Server keeps its own methods apart from the generated ones.
type service struct {
	controlv1.UnimplementedControlServiceServer
	*Server
}

func (s *service) GetStatus(context.Context, *controlv1.GetStatusRequest) (*controlv1.GetStatusResponse, error) {
	return &controlv1.GetStatusResponse{Status: s.status()}, nil
}

func (s *service) WatchStatus(_ *controlv1.WatchStatusRequest, out grpc.ServerStreamingServer[controlv1.WatchStatusResponse]) error {
	var last *controlv1.HostStatus
	for {
		moved := s.change()
		if now := s.status(); last == nil || !proto.Equal(now, last) {
			last = now
			if err := out.Send(&controlv1.WatchStatusResponse{Status: now}); err != nil {
				return err
			}
		}
		select {
		case <-moved:
		case <-s.ending:
			return nil
		case <-out.Context().Done():
			return out.Context().Err()
		}
		timer := time.NewTimer(settle)
		select {
		case <-timer.C:
		case <-out.Context().Done():
			timer.Stop()
			return out.Context().Err()
		}
	}
}

func (s *service) Diagnose(ctx context.Context, _ *controlv1.DiagnoseRequest) (*controlv1.DiagnoseResponse, error) {
	list := append(s.opt.Backend.Checks(ctx), s.runtimeChecks(ctx)...)
	out := &controlv1.DiagnoseResponse{}
	for _, c := range list {
		result := controlv1.CheckResult_CHECK_RESULT_FAILED
		switch c.Result {
		case OK:
			result = controlv1.CheckResult_CHECK_RESULT_OK
		case Warning:
			result = controlv1.CheckResult_CHECK_RESULT_WARNING
		}
		out.Checks = append(out.Checks, &controlv1.Check{Name: c.Name, Result: result, Message: c.Message, Advice: c.Advice})
	}
	return out, nil
}

func (s *service) Shutdown(ctx context.Context, r *controlv1.ShutdownRequest) (*controlv1.ShutdownResponse, error) {
	drain := defaultDrain
	if r.Drain != nil {
		drain = max(0, r.Drain.AsDuration())
	}
	return &controlv1.ShutdownResponse{}, s.opt.Backend.Shutdown(ctx, drain, r.GetForce())
}

func (s *service) SetLogLevel(_ context.Context, r *controlv1.SetLogLevelRequest) (*controlv1.SetLogLevelResponse, error) {
	level, ok := obs.ParseLevel(r.GetLevel())
	if !ok || s.opt.Logs == nil {
		return nil, codes.New(codes.ParamsInvalid)
	}
	s.opt.Logs.SetLevel(r.GetComponent(), level)
	return &controlv1.SetLogLevelResponse{}, nil
}

func (s *service) ReadMetrics(context.Context, *controlv1.ReadMetricsRequest) (*controlv1.ReadMetricsResponse, error) {
	if s.opt.Metrics == nil {
		return &controlv1.ReadMetricsResponse{}, nil
	}
	text, err := obs.MetricsText(s.opt.Metrics)
	return &controlv1.ReadMetricsResponse{Text: text}, err
}

func (s *service) ShowConfig(context.Context, *controlv1.ShowConfigRequest) (*controlv1.ShowConfigResponse, error) {
	path, settings := s.opt.Backend.Config()
	out := &controlv1.ShowConfigResponse{Path: path}
	for _, x := range settings {
		out.Settings = append(out.Settings, &controlv1.Setting{Key: x.Key, Value: x.Value, Origin: x.Origin, Live: x.Live})
	}
	return out, nil
}

func (s *service) ReloadConfig(ctx context.Context, _ *controlv1.ReloadConfigRequest) (*controlv1.ReloadConfigResponse, error) {
	applied, restart, err := s.opt.Backend.Reload(ctx)
	return &controlv1.ReloadConfigResponse{Applied: applied, Restart: restart}, err
}

func (s *service) ListRuntimes(context.Context, *controlv1.ListRuntimesRequest) (*controlv1.ListRuntimesResponse, error) {
	return &controlv1.ListRuntimesResponse{Runtimes: s.runtimes()}, nil
}

func (s *service) RestartRuntime(ctx context.Context, r *controlv1.RestartRuntimeRequest) (*controlv1.RestartRuntimeResponse, error) {
	i, err := s.instance(r.GetId())
	if err != nil {
		return nil, err
	}
	if err := i.Restart(ctx); err != nil {
		return nil, err
	}
	return &controlv1.RestartRuntimeResponse{Runtime: runtimeStatus(i.Snapshot())}, nil
}

func (s *service) EnableRuntime(ctx context.Context, r *controlv1.EnableRuntimeRequest) (*controlv1.EnableRuntimeResponse, error) {
	s.rescan()
	i, err := s.instance(r.GetId())
	if err != nil {
		return nil, err
	}
	if state, _ := i.State(); state == runtimes.Ready { // another executable takes over without cutting replies
		err = i.Upgrade(ctx)
	} else {
		_, err = i.Trust(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := s.opt.Backend.SetEnabled(ctx, r.GetId(), true); err != nil {
		return nil, err
	}
	if err := i.Reload(ctx); err != nil {
		return nil, err
	}
	return &controlv1.EnableRuntimeResponse{Runtime: runtimeStatus(i.Snapshot())}, nil
}

func (s *service) DisableRuntime(ctx context.Context, r *controlv1.DisableRuntimeRequest) (*controlv1.DisableRuntimeResponse, error) {
	i, err := s.instance(r.GetId())
	if err != nil {
		return nil, err
	}
	if !r.GetForce() {
		left, err := i.Drain(ctx, false)
		if err == nil && (len(left.RunIds) > 0 || left.OtherWork > 0) {
			_, _ = i.Drain(ctx, true)
			return nil, codes.New(codes.SessionBusy)
		}
	}
	if err := s.opt.Backend.SetEnabled(ctx, r.GetId(), false); err != nil {
		_, _ = i.Drain(ctx, true)
		return nil, err
	}
	if err := i.Reload(ctx); err != nil {
		return nil, err
	}
	return &controlv1.DisableRuntimeResponse{Runtime: runtimeStatus(i.Snapshot())}, nil
}

func (s *service) UpgradeRuntime(ctx context.Context, r *controlv1.UpgradeRuntimeRequest) (*controlv1.UpgradeRuntimeResponse, error) {
	s.rescan()
	i, err := s.instance(r.GetId())
	if err != nil {
		return nil, err
	}
	if err := i.Upgrade(ctx); err != nil {
		return nil, err
	}
	return &controlv1.UpgradeRuntimeResponse{Runtime: runtimeStatus(i.Snapshot())}, nil
}

func (s *service) OfferProject(ctx context.Context, r *controlv1.OfferProjectRequest) (*controlv1.OfferProjectResponse, error) {
	return &controlv1.OfferProjectResponse{}, s.opt.Backend.OfferProject(ctx, r.GetPath())
}

func (s *service) PairDirect(ctx context.Context, r *controlv1.PairDirectRequest) (*controlv1.PairDirectResponse, error) {
	p, err := s.opt.Backend.Pair(ctx, r.GetLabel(), r.GetReachable())
	if err != nil {
		return nil, err
	}
	out := &controlv1.PairDirectResponse{PhoneId: p.PhoneID, Notice: p.Notice}
	for _, b := range p.Backends {
		out.Backends = append(out.Backends, &controlv1.PairedBackend{Backend: b.Backend, Url: b.URL, Token: b.Token, Qr: b.QR})
	}
	return out, nil
}

func (s *service) ListPhones(ctx context.Context, _ *controlv1.ListPhonesRequest) (*controlv1.ListPhonesResponse, error) {
	list, err := s.opt.Backend.Phones(ctx)
	out := &controlv1.ListPhonesResponse{}
	for _, p := range list {
		out.Phones = append(out.Phones, phone(p))
	}
	return out, err
}

func (s *service) RevokePhone(ctx context.Context, r *controlv1.RevokePhoneRequest) (*controlv1.RevokePhoneResponse, error) {
	p, err := s.opt.Backend.Revoke(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	return &controlv1.RevokePhoneResponse{Phone: phone(p)}, nil
}

func (s *service) instance(id string) (*runtimes.Instance, error) {
	if s.opt.Runtimes == nil {
		return nil, codes.New(codes.RuntimeUnknown)
	}
	return s.opt.Runtimes.Instance(id)
}

func (s *service) rescan() {
	if s.opt.Runtimes != nil {
		s.opt.Runtimes.Rescan()
	}
}

func (s *service) status() *controlv1.HostStatus {
	i := s.opt.Backend.Info()
	return &controlv1.HostStatus{
		Ready: i.Ready, Listen: i.Listen, Reachable: i.Reachable, Pid: int64(os.Getpid()), Version: i.Version,
		DataDir: s.opt.Dir, StartedAt: stamp(i.StartedAt), Runtimes: s.runtimes(), Sockets: uint32(i.Sockets),
		Runs: uint32(i.Runs), Interactions: uint32(i.Interactions), Stopping: i.Stopping, Notices: slices.Clone(i.Notices),
	}
}

func (s *service) runtimes() []*controlv1.RuntimeStatus {
	if s.opt.Runtimes == nil {
		return nil
	}
	var list []*controlv1.RuntimeStatus
	for _, i := range s.opt.Runtimes.Instances() {
		list = append(list, runtimeStatus(i.Snapshot()))
	}
	return list
}

// runtimeStatus tells the reason of the plugin, or, when it is ready, what its native runtime lacks.
func runtimeStatus(x runtimes.Snapshot) *controlv1.RuntimeStatus {
	reason := x.Reason
	if x.State == runtimes.Ready {
		reason = x.Status.Reason
	}
	if x.State == runtimes.Disabled {
		reason = ""
	}
	return &controlv1.RuntimeStatus{
		Id: x.ID, Name: x.Name, State: string(x.State), Reason: reason, Message: sentence(x, reason), Detail: x.Detail,
		Condition: condition(x.Status.Condition), Generation: x.Generation, Pid: int64(x.PID), Since: stamp(x.Since),
		RetryAt: stamp(x.RetryAt), Restarts: x.Restarts, PluginVersion: x.PluginVersion, NativeVersion: x.Status.NativeVersion,
		Executable: filepath.Clean(x.Executable), Checksum: x.Checksum, Environment: x.EnvironmentSet,
		KeptRunning: x.Status.KeptRunning, ModelId: x.Status.ModelID, Enabled: x.State != runtimes.Disabled,
	}
}

// sentence is the fixed one of a code: the plugin's own, or the registry's. For a code of the registry a plugin may have a
// sentence under its own name, such as codex.runtime_missing: it says what to run on this computer, which no phone needs.
func sentence(x runtimes.Snapshot, code string) string {
	if code == "" {
		return ""
	}
	if x.Description != nil {
		own := code
		if codes.Known(code) {
			own = x.Description.RuntimeID + "." + code
		}
		for _, p := range x.Description.Phrases {
			if p.Code == own {
				return codes.Fill(p.Text, nil)
			}
		}
	}
	return codes.Fill(codes.Lookup(code).Message, nil)
}

func condition(c runtime.Condition) string {
	switch c {
	case runtime.ConditionStarting:
		return "starting"
	case runtime.ConditionReady:
		return "ready"
	case runtime.ConditionDegraded:
		return "degraded"
	}
	return "unavailable"
}

func phone(p Phone) *controlv1.Phone {
	return &controlv1.Phone{
		Id: p.ID, Label: p.Label, CreatedAt: stamp(p.CreatedAt), FirstUsed: stamp(p.FirstUsed), LastUsed: stamp(p.LastUsed),
		RevokedAt: stamp(p.RevokedAt), Sockets: uint32(p.Sockets),
	}
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
