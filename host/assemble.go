package host

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/host/phone"
	"github.com/openphone-host/openphone/host/phone/conversations"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/sessions"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// portKey is where the store keeps the port that was chosen once: paired phones know it (see listen).
const portKey = "listen.port"

// listen opens the phone listener. A port of 0 means: the one chosen before, or a free one that is kept from now on. A
// kept port that somebody else has taken is an error, because another one would silently lose every paired phone.
func (h *Host) listen(ctx context.Context) error {
	host, port, err := net.SplitHostPort(h.settings.listen())
	if err != nil {
		return codes.New(codes.ConfigInvalid, "where", "listen").Because(err)
	}
	if port == "0" {
		kept, ok, err := h.store.Meta(ctx, portKey)
		if err != nil {
			return err
		}
		if ok {
			port = kept
		}
	}
	h.listener, err = phone.New(phone.Options{
		Listen: net.JoinHostPort(host, port), Auth: h.pairing, Admission: &h.admission, Log: h.opt.Logs.Logger("phone"), Metrics: h.metrics,
	})
	if err != nil {
		return err
	}
	if _, port, err = net.SplitHostPort(h.listener.Addr().String()); err != nil {
		return codes.New(codes.ListenFailed).Because(err)
	}
	return h.store.SetMeta(ctx, portKey, port)
}

// assemble finds the runtimes and gives each its conversations and its dialect.
func (h *Host) assemble() error {
	var failed error
	dirs := append(slices.Clone(h.opt.PluginDirs), h.settings.pluginDirs()...)
	h.runtimes = runtimes.New(runtimes.Options{
		Dirs: dirs, DataDir: h.opt.Home, Pins: newPins(h.opt.PluginDirs, h.store, h.log), Settings: h.plugin,
		State: h.store, Attention: attention{h}, Log: h.opt.Logs.Logger("runtimes"), Metrics: h.metrics,
		Observer: func(i *runtimes.Instance) runtimes.Observer {
			r, err := h.furnish(i)
			if err != nil {
				failed = errors.Join(failed, err)
				return nil
			}
			return r
		},
	})
	return failed
}

func (h *Host) furnish(i *runtimes.Instance) (*room, error) {
	id := i.ID()
	conv, err := sessions.New(sessions.Options{
		Runtime: i, Store: h.store, Log: h.opt.Logs.Logger("sessions").With(obs.KeyRuntime, id),
		NativeKey: conversations.NativeKey(id), ProjectPath: h.settings.projectPath(id), Projects: h.settings.projects, Autonomy: h.settings.autonomy(id),
		Fault: h.opt.Fault, Metrics: h.metrics,
	})
	if err != nil {
		return nil, err
	}
	r := &room{host: h, instance: i, Conversations: conv}
	r.dialect = conversations.New(conversations.Options{Backend: id, Service: conv, Version: h.opt.Version, Log: h.opt.Logs.Logger("phone").With(obs.KeyRuntime, id)})
	h.listener.Handle(id, r.dialect)
	h.rooms[id] = r
	return r, nil
}

// attention sends what a plugin raises to the conversations of that plugin.
type attention struct{ *Host }

func (a attention) RaiseAttention(ctx context.Context, instance string, r *runtime.RaiseAttentionRequest) error {
	if room := a.rooms[instance]; room != nil {
		return room.RaiseAttention(ctx, instance, r)
	}
	return codes.New(codes.RuntimeUnknown)
}

func (a attention) ClearAttention(ctx context.Context, instance, attentionID string) error {
	if room := a.rooms[instance]; room != nil {
		return room.ClearAttention(ctx, instance, attentionID)
	}
	return codes.New(codes.RuntimeUnknown)
}
