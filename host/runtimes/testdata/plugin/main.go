// Package main is a plugin for tests, written on the proto alone so that it can break every rule. What it does is written
// behind the end of its own executable: one binary, many plugins, each with a checksum of its own.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hostv1 "github.com/openphone-host/openphone/proto/openphone/host/v1"
	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
)

// mode says how to behave; see variant in the tests.
type mode struct {
	ID         string   `json:"id"`
	Version    string   `json:"version"`
	Start      string   `json:"start"` // garbage, exit, hang, version: instead of a handshake
	Hang       []string `json:"hang"`  // calls that never answer
	Fail       []string `json:"fail"`  // calls that answer with an error full of secrets
	Needs      []string `json:"needs"` // required host features
	SideBySide bool     `json:"side_by_side"`
	Drain      bool     `json:"drain"` // has CAPABILITY_DRAIN
	Enums      bool     `json:"enums"` // answers enum values nobody knows
	Environ    []string `json:"environ"`
	Schema     string   `json:"schema"`
	Kept       string   `json:"kept"`  // name of a program that may stay
	Empty      bool     `json:"empty"` // answers without content
	Channels   bool     `json:"channels"`
}

func main() {
	if len(os.Args) > 1 { // a child of the plugin
		forever()
	}
	m := read()
	switch m.Start {
	case "garbage":
		fmt.Println("Hello! I am not a plugin. SECRET-STDOUT")
		fmt.Println(strings.Repeat("x", 1<<20))
		forever()
	case "long":
		fmt.Print(strings.Repeat("y", 1<<20))
		forever()
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot start: SECRET-STDERR")
		os.Exit(3)
	case "hang":
		forever()
	case "version":
		fmt.Println("1|99|unix|/nowhere|grpc|")
		forever()
	}
	handshake := plugin.HandshakeConfig{
		ProtocolVersion: 1, MagicCookieKey: "OPENPHONE_PLUGIN", MagicCookieValue: "0b6f0f6e-openphone-runtime-v1",
	}
	go func() { // the end of standard input is the end of the host, where it says so
		var b [1]byte
		for os.Getenv("OPENPHONE_PLUGIN_STDIN") == "1" {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				os.Exit(0)
			}
		}
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  handshake,
		VersionedPlugins: map[int]plugin.PluginSet{1: {"runtime": &server{m: m}}},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(o, grpc.MaxRecvMsgSize(17<<20), grpc.ChainUnaryInterceptor(misbehave(m)))...)
		},
	})
}

// forever never returns, also where nothing else runs.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// read finds the mode behind the end of the executable.
func read() mode {
	m := mode{ID: "test", Version: "1.0.0"}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	tail := b[max(0, len(b)-8192):]
	if k := bytes.LastIndex(tail, []byte("@@mode:")); k >= 0 {
		text, _, _ := bytes.Cut(tail[k+7:], []byte("@@"))
		if err := json.Unmarshal(text, &m); err != nil {
			panic(err)
		}
	}
	return m
}

func misbehave(m mode) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		name := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
		for _, x := range m.Hang {
			if x == name {
				select {}
			}
		}
		for _, x := range m.Fail {
			if x == name {
				return nil, status.Error(grpccodes.Unknown, "SECRET-STATUS /home/somebody")
			}
		}
		return h(ctx, req)
	}
}

type server struct {
	plugin.NetRPCUnsupportedPlugin
	runtimev1.UnimplementedRuntimeServiceServer
	runtimev1.UnimplementedConversationServiceServer
	runtimev1.UnimplementedManagementServiceServer
	runtimev1.UnimplementedChannelServiceServer
	m      mode
	broker *plugin.GRPCBroker
	host   hostv1.HostServiceClient
	config *runtimev1.ConfigureRequest

	mu       sync.Mutex
	seq      uint64
	out      chan []*runtimev1.Event
	prepared map[string]bool
	running  map[string]bool
	draining bool
	deaf     bool
}

func (s *server) GRPCServer(b *plugin.GRPCBroker, g *grpc.Server) error {
	s.broker = b
	s.out = make(chan []*runtimev1.Event, 1024)
	s.prepared, s.running = map[string]bool{}, map[string]bool{}
	runtimev1.RegisterRuntimeServiceServer(g, s)
	runtimev1.RegisterConversationServiceServer(g, s)
	runtimev1.RegisterManagementServiceServer(g, s)
	runtimev1.RegisterChannelServiceServer(g, s)
	return nil
}

func (*server) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("no client")
}

func (s *server) Describe(context.Context, *runtimev1.DescribeRequest) (*runtimev1.DescribeResponse, error) {
	if s.m.Empty {
		return &runtimev1.DescribeResponse{}, nil
	}
	d := &runtimev1.Description{
		RuntimeId: s.m.ID, Name: "Test", PluginVersion: s.m.Version, SideBySide: s.m.SideBySide,
		RequiredHostFeatures: s.m.Needs, Environment: s.m.Environ,
		Capabilities: []runtimev1.Capability{runtimev1.Capability_CAPABILITY_RECONCILE, runtimev1.Capability_CAPABILITY_MANAGEMENT},
		Methods: []*runtimev1.Method{
			{Name: "test.run", Scope: runtimev1.MethodScope_METHOD_SCOPE_ADMIN},
			{Name: "test.read", Scope: runtimev1.MethodScope_METHOD_SCOPE_READ},
		},
		Phrases: []*runtimev1.Phrase{{Code: "test.sad", Text: "The test is sad."}},
	}
	if s.m.Drain {
		d.Capabilities = append(d.Capabilities, runtimev1.Capability_CAPABILITY_DRAIN)
	}
	if s.m.Channels {
		d.Capabilities = append(d.Capabilities, runtimev1.Capability_CAPABILITY_CHANNELS)
		d.ChannelProtocol = "echo"
	}
	if s.m.Kept != "" {
		d.KeptPrograms = []string{s.m.Kept}
	}
	if s.m.Schema != "" {
		d.ConfigSchema = &runtimev1.Payload{ContentType: "application/schema+json", Data: []byte(s.m.Schema)}
	}
	if s.m.Enums {
		d.Capabilities = append(d.Capabilities, 4711)
		d.SessionLayout = 4711
	}
	return &runtimev1.DescribeResponse{Description: d}, nil
}

func (s *server) Configure(_ context.Context, r *runtimev1.ConfigureRequest) (*runtimev1.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = r
	if s.host == nil { // a broker id works once
		conn, err := s.broker.Dial(r.GetHostBrokerId())
		if err != nil {
			return nil, err
		}
		s.host = hostv1.NewHostServiceClient(conn)
	}
	return &runtimev1.ConfigureResponse{}, nil
}

func (s *server) Health(context.Context, *runtimev1.HealthRequest) (*runtimev1.HealthResponse, error) {
	s.mu.Lock()
	deaf := s.deaf
	s.mu.Unlock()
	if deaf {
		select {}
	}
	st := &runtimev1.Status{Condition: runtimev1.Condition_CONDITION_READY, NativeVersion: s.m.Version}
	if s.m.Enums {
		st.Condition = 4711
		st.Capabilities = []runtimev1.Capability{4711}
	}
	if s.m.Empty {
		st = nil
	}
	return &runtimev1.HealthResponse{Status: st}, nil
}

func (s *server) Watch(_ *runtimev1.WatchRequest, out grpc.ServerStreamingServer[runtimev1.WatchResponse]) error {
	for {
		select {
		case e := <-s.out:
			if e == nil {
				return nil
			}
			if err := out.Send(&runtimev1.WatchResponse{Events: e}); err != nil {
				return err
			}
		case <-out.Context().Done():
			return nil
		}
	}
}

func (s *server) emit(events ...*runtimev1.Event) {
	for _, e := range events {
		if e.Seq == 0 {
			s.seq++
			e.Seq = s.seq
		} else {
			s.seq = e.Seq
		}
	}
	s.out <- events
}

func (s *server) Reconcile(_ context.Context, r *runtimev1.ReconcileRequest) (*runtimev1.ReconcileResponse, error) {
	out := &runtimev1.ReconcileResponse{}
	for _, run := range r.GetRuns() {
		out.Runs = append(out.Runs, &runtimev1.RunState{RunId: run.GetRunId(), Phase: runtimev1.RunPhase_RUN_PHASE_NEVER_SEEN})
	}
	return out, nil
}

func (s *server) Drain(_ context.Context, r *runtimev1.DrainRequest) (*runtimev1.DrainResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = !r.GetReopen()
	out := &runtimev1.DrainResponse{}
	for id := range s.running {
		out.RunIds = append(out.RunIds, id)
	}
	return out, nil
}

func (s *server) Shutdown(context.Context, *runtimev1.ShutdownRequest) (*runtimev1.ShutdownResponse, error) {
	return &runtimev1.ShutdownResponse{}, nil
}

func (s *server) PrepareRun(_ context.Context, r *runtimev1.PrepareRunRequest) (*runtimev1.PrepareRunResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared[r.GetRunId()] = true
	return &runtimev1.PrepareRunResponse{Session: r.GetSession()}, nil
}

// CommitRun runs until test.run tells it to end.
func (s *server) CommitRun(_ context.Context, r *runtimev1.CommitRunRequest) (*runtimev1.CommitRunResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.prepared[r.GetRunId()] {
		return &runtimev1.CommitRunResponse{Outcome: runtimev1.Outcome_OUTCOME_NOT_DISPATCHED, Code: "not_dispatched"}, nil
	}
	delete(s.prepared, r.GetRunId())
	s.running[r.GetRunId()] = true
	s.emit(&runtimev1.Event{RunId: r.GetRunId(), SessionId: "s", Body: &runtimev1.Event_RunStarted{RunStarted: &runtimev1.RunStarted{}}})
	if s.m.Enums {
		return &runtimev1.CommitRunResponse{Outcome: 4711}, nil
	}
	return &runtimev1.CommitRunResponse{Outcome: runtimev1.Outcome_OUTCOME_DISPATCHED}, nil
}

// OpenChannel reports that it is open and gives every frame back.
func (s *server) OpenChannel(io grpc.BidiStreamingServer[runtimev1.OpenChannelRequest, runtimev1.OpenChannelResponse]) error {
	first, err := io.Recv()
	if err != nil {
		return err
	}
	if first.GetOpen().GetChannelId() == "refuse" {
		st, _ := status.New(grpccodes.FailedPrecondition, "SECRET-STATUS").WithDetails(&runtimev1.ErrorDetail{Code: "channel_refused"})
		return st.Err()
	}
	state := &runtimev1.ChannelState{Stage: runtimev1.ChannelStage_CHANNEL_STAGE_OPEN, DeviceName: first.GetOpen().GetHostVersion()}
	if err := io.Send(&runtimev1.OpenChannelResponse{Kind: &runtimev1.OpenChannelResponse_State{State: state}}); err != nil {
		return err
	}
	for {
		m, err := io.Recv()
		if err != nil {
			return nil
		}
		if err := io.Send(&runtimev1.OpenChannelResponse{Kind: &runtimev1.OpenChannelResponse_Frame{Frame: m.GetFrame()}}); err != nil {
			return err
		}
	}
}

// Call obeys the tests: the parameters are one word and its arguments.
func (s *server) Call(ctx context.Context, r *runtimev1.CallRequest) (*runtimev1.CallResponse, error) {
	word, arg, _ := strings.Cut(strings.Trim(string(r.GetParams().GetData()), `"`), " ")
	reply := func(v any) (*runtimev1.CallResponse, error) {
		b, _ := json.Marshal(v)
		return &runtimev1.CallResponse{Result: &runtimev1.Payload{ContentType: "application/json", Data: b}}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch word {
	case "environ":
		return reply(os.Environ())
	case "config":
		return reply(map[string]any{
			"config": string(s.config.GetConfig().GetData()), "secrets": s.config.GetSecrets(), "project": s.config.GetProjectPath(),
			"secret": s.config.GetInstanceSecret(), "dir": s.config.GetDataDir(), "features": s.config.GetHostFeatures(),
		})
	case "state":
		rev, err := s.host.PutState(ctx, &hostv1.PutStateRequest{Key: &hostv1.StateKey{Name: arg}, Value: []byte("v")})
		if err != nil {
			return nil, err
		}
		return reply(rev.GetRevision())
	case "bigstate":
		_, err := s.host.PutState(ctx, &hostv1.PutStateRequest{Key: &hostv1.StateKey{Name: "big"}, Value: make([]byte, 256<<10+1)})
		return nil, err
	case "tools":
		_, err := s.host.CancelPhoneTool(ctx, &hostv1.CancelPhoneToolRequest{})
		return nil, err
	case "end":
		delete(s.running, arg)
		s.emit(&runtimev1.Event{RunId: arg, SessionId: "s", Body: &runtimev1.Event_RunEnded{RunEnded: &runtimev1.RunEnded{Reason: runtimev1.EndReason_END_REASON_COMPLETED}}})
	case "emit":
		for range 5 {
			s.emit(&runtimev1.Event{Body: &runtimev1.Event_CatalogChanged{CatalogChanged: &runtimev1.CatalogChanged{}}})
		}
	case "gap":
		s.emit(&runtimev1.Event{Seq: s.seq + 10, Body: &runtimev1.Event_CatalogChanged{CatalogChanged: &runtimev1.CatalogChanged{}}})
	case "nobody": // an event with a body of the future
		s.emit(&runtimev1.Event{})
	case "status":
		s.emit(&runtimev1.Event{Body: &runtimev1.Event_StatusChanged{StatusChanged: &runtimev1.Status{Condition: runtimev1.Condition_CONDITION_DEGRADED, Reason: "runtime_login_required"}}})
	case "deaf":
		s.deaf = true
	case "closewatch":
		s.out <- nil
	case "stdout":
		fmt.Print(strings.Repeat("noise on stdout\n", 10000))
	case "stderr":
		fmt.Fprint(os.Stderr, strings.Repeat("noise on stderr\n", 10000))
	case "child", "escape", "keep": // child: in the group · escape: a group of its own · keep: the same, by a name that may stay
		cmd := exec.Command(arg, "child")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: word != "child"}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return reply(cmd.Process.Pid)
	case "sleep":
		d, _ := time.ParseDuration(arg)
		s.mu.Unlock()
		time.Sleep(d)
		s.mu.Lock()
	case "panic":
		go panic("SECRET-PANIC")
		select {}
	case "exit":
		os.Exit(0)
	case "detail":
		st, _ := status.New(grpccodes.FailedPrecondition, "SECRET-STATUS").WithDetails(&runtimev1.ErrorDetail{
			Code: arg, Outcome: runtimev1.Outcome_OUTCOME_NOT_DISPATCHED, Parameters: map[string]string{"limit": strings.Repeat("z", 5000)},
		})
		return nil, st.Err()
	}
	return reply("ok")
}
