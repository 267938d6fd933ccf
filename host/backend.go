package host

import (
	"context"
	"net"
	"os"
	"slices"
	"time"

	"github.com/openphone-host/openphone/host/control"
	"github.com/openphone-host/openphone/host/pairing"
	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/host/store"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// backend is what the control socket asks of the host.
type backend struct{ *Host }

var _ control.Backend = backend{}

// Info implements control.Backend.
func (b backend) Info() control.Info {
	addr := b.listener.Addr()
	info := control.Info{
		Ready: b.ready.Load(), Listen: addr.String(), Reachable: reachable(addr), Version: b.opt.Version,
		StartedAt: b.began, Sockets: b.listener.Sockets(), Stopping: b.admission.Closed(),
	}
	for _, r := range b.rooms {
		runs, open := r.Busy()
		info.Runs += runs
		info.Interactions += open
	}
	if len(b.rooms) == 0 {
		info.Notices = append(info.Notices, "No plugins were found. Put them beside the openphone program or name their directory in config.toml: [plugins] dirs.")
	}
	if b.demo.Load() {
		info.Notices = append(info.Notices, "No agent is ready, so the demo is served. Run openphone doctor to see what is missing.")
	}
	return info
}

// reachable reports that other devices can come in by this address.
func reachable(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && !t.IP.IsLoopback()
}

// Shutdown implements control.Backend.
func (b backend) Shutdown(ctx context.Context, drain time.Duration, force bool) error {
	if force {
		b.forcing.Do(func() { close(b.force) })
		b.ending.Do(func() { close(b.end) })
		return nil
	}
	busy := func() bool {
		for _, r := range b.rooms {
			if runs, _ := r.Busy(); runs > 0 {
				return true
			}
		}
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, max(drain, time.Millisecond))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !b.admission.TryClose(busy) {
		select {
		case <-ctx.Done():
			return codes.New(codes.SessionBusy)
		case <-tick.C:
		}
	}
	b.ending.Do(func() { close(b.end) })
	return nil
}

// SetEnabled implements control.Backend.
func (b backend) SetEnabled(ctx context.Context, id string, enabled bool) error {
	return b.settings.setEnabled(ctx, id, enabled)
}

// Checks implements control.Backend.
func (b backend) Checks(context.Context) []control.Check {
	list := []control.Check{{Name: "store", Result: control.OK, Message: "The data file can be read and written."}}
	if info, err := os.Stat(b.opt.Home); err == nil && info.Mode().Perm()&0o077 != 0 {
		list = append(list, control.Check{
			Name: "data_dir", Result: control.Warning, Message: "Other users of this computer can read the data directory.",
			Advice: "Take their rights away: chmod 700 on the data directory.",
		})
	} else {
		list = append(list, control.Check{Name: "data_dir", Result: control.OK, Message: "Only you can read the data directory."})
	}
	if reachable(b.listener.Addr()) {
		list = append(list, control.Check{Name: "listener", Result: control.OK, Message: "Phones on your network can reach this computer."})
	} else {
		list = append(list, control.Check{
			Name: "listener", Result: control.Warning, Message: "Phones cannot reach this computer: it listens on loopback only.",
			Advice: `In config.toml set [listen] address = "0.0.0.0:0" and start again.`,
		})
	}
	return list
}

// Config implements control.Backend.
func (b backend) Config() (string, []control.Setting) {
	var ids []string
	for _, i := range b.runtimes.Instances() {
		ids = append(ids, i.ID())
	}
	return b.settings.effective(ids)
}

// Reload implements control.Backend.
func (b backend) Reload(ctx context.Context) (applied, restart []string, err error) {
	applied, restart, err = b.settings.file.Reload()
	if err != nil {
		return nil, nil, err
	}
	for _, i := range b.runtimes.Instances() {
		if b.settings.touched(i.ID(), applied) {
			if err := i.Reload(ctx); err != nil {
				b.log.Warn("runtime does not take its new settings", "runtime", i.ID(), "error", err)
			}
		}
	}
	return applied, restart, nil
}

// Receipts implements control.Backend.
func (b backend) Receipts(ctx context.Context, rt, sessionID string) ([]control.Receipt, error) {
	runs, err := b.store.RunsOf(ctx, rt, sessionID)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(runs, func(x, y store.Run) int { return y.AcceptedAt.Compare(x.AcceptedAt) })
	list := make([]control.Receipt, 0, len(runs))
	for _, r := range runs {
		list = append(list, control.Receipt{
			RunID: r.RunID, AcceptedAt: r.AcceptedAt, EndedAt: r.EndedAt, Code: r.EndCode,
			Outcome: outcomeName(runtime.Outcome(r.Outcome)), End: endName(r),
		})
	}
	return list, nil
}

func outcomeName(o runtime.Outcome) string {
	switch o {
	case runtime.OutcomeDispatched:
		return "dispatched"
	case runtime.OutcomeNotDispatched:
		return "not dispatched"
	}
	return "unknown"
}

func endName(r store.Run) string {
	if !r.Ended {
		return "running"
	}
	switch runtime.EndReason(r.EndReason) {
	case runtime.EndReasonCompleted, runtime.EndReasonLimitReached:
		return "completed"
	case runtime.EndReasonCancelled:
		return "cancelled"
	case runtime.EndReasonFailed:
		return "failed"
	}
	return "interrupted"
}

// OfferProject implements control.Backend.
func (b backend) OfferProject(ctx context.Context, path string) error {
	return b.settings.offerProject(ctx, path)
}

// Pair implements control.Backend. reachable asks for a pairing a phone can use; otherwise one for a client on this
// computer is made, and the notice says why no phone can use it.
func (b backend) Pair(ctx context.Context, label string, forPhone bool) (*control.Pairing, error) {
	var names []string
	for _, i := range b.runtimes.Instances() {
		if state, _ := i.State(); state != runtimes.Disabled {
			names = append(names, i.ID())
		}
	}
	host, _ := os.Hostname()
	here := !reachable(b.listener.Addr())
	if here && forPhone {
		return nil, codes.New(codes.PairingNotReachable)
	}
	p, err := b.pairing.Create(ctx, pairing.Request{Label: label, Name: host, Backends: names, Listen: b.listener.Addr(), Here: here})
	if err != nil {
		return nil, err
	}
	out := &control.Pairing{PhoneID: p.Phone.ID}
	if here {
		out.Notice = "No phone can reach this computer yet, because it listens on loopback only. " +
			`To open it to your network set [listen] address = "0.0.0.0:0" in config.toml and start again.`
	}
	for _, o := range p.Offers {
		out.Backends = append(out.Backends, control.PairedBackend{Backend: o.Backend, URL: o.URL, Token: o.Token, QR: o.QR})
	}
	return out, nil
}

// Phones implements control.Backend.
func (b backend) Phones(ctx context.Context) ([]control.Phone, error) {
	list, err := b.pairing.List(ctx)
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	connected := b.listener.Connected()
	out := make([]control.Phone, 0, len(list))
	for _, p := range list {
		out = append(out, shownPhone(p, connected[p.ID]))
	}
	return out, nil
}

// Revoke implements control.Backend.
func (b backend) Revoke(ctx context.Context, idOrLabel string) (control.Phone, error) {
	p, err := b.pairing.Revoke(ctx, idOrLabel)
	if err != nil {
		return control.Phone{}, err
	}
	return shownPhone(p, 0), nil
}

func shownPhone(p store.Phone, sockets int) control.Phone {
	return control.Phone{
		ID: p.ID, Label: p.Label, CreatedAt: p.CreatedAt, FirstUsed: p.FirstUsed, LastUsed: p.LastUsed, RevokedAt: p.RevokedAt,
		Sockets: sockets,
	}
}
