package runtimes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/semver"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/protomap"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// contractMinor is the minor version of the contract this host speaks.
const contractMinor = 0

// describeFor bounds a start for Describe alone.
const describeFor = startTimeout + classFast

// admit makes a verified copy of an executable and decides whether it may run as id. An executable that was never seen
// is started once, with no environment of the user and no settings, for Describe alone; the answer is kept by checksum.
func (s *Supervisor) admit(ctx context.Context, id, source, sum string) (*executable, error) {
	path, err := s.vault.take(source, sum)
	if errors.Is(err, errChanged) {
		return nil, codes.New(codes.PluginChanged).Because(err)
	}
	if err != nil {
		return nil, codes.New(codes.PluginStartFailed).Because(err)
	}
	exe := &executable{source: source, path: path, sum: sum}
	if d := s.vault.description(sum); d != nil {
		exe.desc = protomap.FromDescription(d)
		return exe, admissible(id, exe.desc)
	}
	ctx, cancel := context.WithTimeout(ctx, describeFor)
	defer cancel()
	began := time.Now()
	g, err := spawn(ctx, *exe, hostSide("warn"), s.socketDir(), s.log.With(obs.KeyRuntime, id, obs.KeyGeneration, 0), nil)
	if err != nil {
		return nil, err
	}
	g.kill()
	g.collect()
	s.log.Debug("plugin described itself", obs.KeyRuntime, id, obs.KeyTook, time.Since(began))
	exe.desc = g.desc
	if err := admissible(id, exe.desc); err != nil {
		return nil, err
	}
	if err := s.vault.rememberDescription(sum, protomap.ToDescription(exe.desc)); err != nil {
		s.log.Warn("a plugin's description could not be kept", obs.KeyRuntime, id, obs.KeyError, err)
	}
	return exe, nil
}

// admissible decides from the description alone.
func admissible(id string, d *runtime.Description) error {
	refuse := func(format string, args ...any) error {
		return codes.New(codes.PluginIncompatible).Because(fmt.Errorf(format, args...))
	}
	if !validID(d.RuntimeID) || d.RuntimeID != id {
		return refuse("the executable is for %q", clip(d.RuntimeID))
	}
	if d.Name == "" || !semver.IsValid("v"+d.PluginVersion) && !semver.IsValid(d.PluginVersion) {
		return refuse("it has no name or no semantic version")
	}
	for _, f := range d.RequiredHostFeatures {
		if !slices.Contains(hostFeatures, f) {
			return refuse("it needs the host feature %q", clip(f))
		}
	}
	return nil
}
