package serve

import (
	"context"
	"errors"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	runtimev1 "github.com/openphone-host/openphone/proto/openphone/runtime/v1"
)

// The handshake. None of these values ever changes: an old plugin must recognise a new host and the other way round.
const (
	// CookieKey and CookieValue tell a plugin that a host has started it. They are no secret.
	CookieKey   = "OPENPHONE_PLUGIN"
	CookieValue = "0b6f0f6e-openphone-runtime-v1"
	// ProtocolVersion is the major version of the contract: openphone.runtime.v1.
	ProtocolVersion = 1
	// PluginName is the one name in go-plugin's plugin set.
	PluginName = "runtime"
	// MaxMessage is the gRPC receive limit of both sides: a message of 16 MiB with room for its envelope.
	MaxMessage = 17 << 20
)

// Environment a host sets for a plugin it starts with a runner of its own. go-plugin's default runner sets neither, and
// then the plugin only ends when it is told to.
const (
	// EnvStdin set to 1 promises that standard input is a pipe held by the host: its end is the end of the host.
	EnvStdin = "OPENPHONE_PLUGIN_STDIN"
	// EnvParent is the process id of the host: when that process is gone, so is the plugin.
	EnvParent = "OPENPHONE_PLUGIN_PARENT"
	// EnvLogLevel is the lowest level the plugin logs: debug, info, warn or error. Default info.
	EnvLogLevel = "OPENPHONE_PLUGIN_LOG"
)

// Handshake is go-plugin's form of the constants above.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   CookieKey,
	MagicCookieValue: CookieValue,
}

// VersionedPlugins is what a host hands to go-plugin: every major version it speaks. Dispensing PluginName gives a
// *Client.
func VersionedPlugins() map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: &ClientPlugin{}}}
}

// Client is a plugin as the host sees it: the services over one connection, and the broker on which the host offers
// HostService.
type Client struct {
	Runtime       runtimev1.RuntimeServiceClient
	Conversations runtimev1.ConversationServiceClient
	Management    runtimev1.ManagementServiceClient
	Channels      runtimev1.ChannelServiceClient
	Broker        *plugin.GRPCBroker
	Conn          *grpc.ClientConn
}

// ClientPlugin is the host's half of the go-plugin plugin.
type ClientPlugin struct {
	plugin.NetRPCUnsupportedPlugin
}

var _ plugin.GRPCPlugin = (*ClientPlugin)(nil)

// GRPCServer refuses: a host serves no runtime.
func (*ClientPlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("serve: the host's half cannot be served")
}

// GRPCClient gives a *Client.
func (*ClientPlugin) GRPCClient(_ context.Context, b *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return &Client{
		Runtime:       runtimev1.NewRuntimeServiceClient(c),
		Conversations: runtimev1.NewConversationServiceClient(c),
		Management:    runtimev1.NewManagementServiceClient(c),
		Channels:      runtimev1.NewChannelServiceClient(c),
		Broker:        b,
		Conn:          c,
	}, nil
}
