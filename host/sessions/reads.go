package sessions

import (
	"context"
	"path/filepath"
	"time"

	"github.com/openphone-host/openphone/host/obs"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

const (
	maxActivityKeys = 32
	activityLease   = 45 * time.Second
	activityTime    = 1500 * time.Millisecond // a phone gets the evidence at hand

	// readTries and readAgain are how often, and until when, a read is tried when the plugin dies under it. The tries
	// themselves may wait for a plugin that is being started.
	readTries = 3
	readAgain = time.Second
)

// Health tells how the runtime is. It waits, up to the patience of a phone's probe, for one that is coming up, and fails
// with its reason when it cannot serve at all.
func (c *Conversations) Health(ctx context.Context) (*Health, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	age := healthAge
	for {
		woken := c.statusSignal()
		s, err := c.rt.Health(ctx, &age)
		switch {
		case err == nil:
		case c.comingBack(err):
			s = &runtime.Status{Condition: runtime.ConditionStarting}
		default:
			return nil, err
		}
		switch s.Condition {
		case runtime.ConditionReady, runtime.ConditionDegraded:
			return c.health(s), nil
		case runtime.ConditionStarting:
		default:
			return nil, named(s.Reason, codes.RuntimeUnavailable)
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return nil, codes.New(codes.RuntimeUnavailable)
		}
	}
}

// comingBack reports that the plugin is only being started, so that a phone need not be sent away.
func (c *Conversations) comingBack(err error) bool {
	if codes.Of(err) != codes.RuntimeUnavailable {
		return false
	}
	switch c.rt.Status().Reason {
	case "", codes.RuntimeUnavailable, codes.PluginCrashed, codes.Restarting:
		return true
	}
	return false
}

// read calls fn, which changes nothing, and once or twice more when the plugin dies under it or is just being started.
func (c *Conversations) read(ctx context.Context, fn func() error) error {
	begun := time.Now()
	for try := 1; ; try++ {
		woken := c.statusSignal()
		err := fn()
		if try == readTries || time.Since(begun) > readAgain || !c.comingBack(err) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(readAgain)
		select {
		case <-woken:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// readAs is read for a call with a result.
func readAs[T any](ctx context.Context, c *Conversations, fn func() (T, error)) (v T, err error) {
	err = c.read(ctx, func() error {
		var err error
		v, err = fn()
		return err
	})
	return v, err
}

func (c *Conversations) health(s *runtime.Status) *Health {
	h := &Health{Status: *s, Description: c.rt.Description(), DeviceScope: c.opts.ProjectPath == ""}
	if !h.DeviceScope {
		h.ProjectName = filepath.Base(c.opts.ProjectPath)
	}
	if h.Description != nil {
		for _, x := range h.Description.Capabilities {
			if runtime.Has(s.Capabilities, x) {
				h.Capabilities = append(h.Capabilities, x)
			}
		}
	}
	return h
}

// statusSignal gives a channel that is closed at the next change of status.
func (c *Conversations) statusSignal() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.statusChanged
}

// Projects lists the directories conversations can be started in, missing ones included.
func (c *Conversations) Projects(ctx context.Context) ([]Project, error) {
	d := c.rt.Description()
	switch {
	case c.opts.ProjectPath != "", d != nil && !runtime.Has(d.Capabilities, runtime.CapabilityProjects):
		return nil, codes.New(codes.ProjectsUnsupported)
	case !c.can(runtime.CapabilityProjects): // the plugin is down, or what it found can do less for now
		return nil, codes.New(codes.RuntimeUnavailable)
	}
	list, err := readAs(ctx, c, func() ([]runtime.Project, error) { return c.rt.ListProjects(ctx) })
	if err != nil {
		return nil, err
	}
	if c.opts.Projects != nil {
		for _, path := range c.opts.Projects() {
			list = append(list, runtime.Project{Path: path})
		}
	}
	var projects []Project
	seen := map[string]bool{}
	for _, p := range list {
		if !filepath.IsAbs(p.Path) || seen[p.Path] {
			continue
		}
		seen[p.Path] = true
		name := p.Name
		pick2(&name, filepath.Base(p.Path))
		projects = append(projects, Project{ID: projectID(p.Path), Name: name, Path: p.Path, Available: isDirectory(p.Path)})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range projects {
		c.projectNames[p.Path] = p.Name
	}
	return projects, nil
}

// projectPath finds the directory behind an id that Projects gave out.
func (c *Conversations) projectPath(ctx context.Context, id string) (string, error) {
	projects, err := c.Projects(ctx)
	if err != nil {
		return "", err
	}
	for _, p := range projects {
		switch {
		case p.ID != id:
		case !p.Available:
			return "", codes.New(codes.ProjectUnavailable)
		default:
			return p.Path, nil
		}
	}
	return "", codes.New(codes.ProjectUnknown)
}

// Activity tells what up to 32 conversations do. Our own runs the host knows; for the rest the plugin answers with the
// evidence at hand. It is display, never proof of ownership or permission (SYNC-10).
func (c *Conversations) Activity(ctx context.Context, keys []string) ([]runtime.SessionActivity, error) {
	if len(keys) == 0 || len(keys) > maxActivityKeys {
		return nil, codes.New(codes.ParamsInvalid)
	}
	now := time.Now()
	list := make([]runtime.SessionActivity, len(keys))
	var ask runtime.ObserveActivityRequest
	var at []int
	c.mu.Lock()
	for i, key := range keys {
		list[i].EvidenceAt = now
		conv := c.byKey[key]
		switch {
		case conv == nil || c.down:
		case len(conv.runs) > 0:
			list[i].Activity, list[i].Attention = runtime.ActivityRunning, c.attention(conv)
			if list[i].Attention != runtime.AttentionKindUnspecified {
				list[i].Activity = runtime.ActivityWaiting
			}
		case conv.isOwn && conv.rec.NativeID == "":
			list[i].Activity = runtime.ActivityIdle
		default:
			ask.Sessions = append(ask.Sessions, conv.ref())
			at = append(at, i)
			if conv.isOwn {
				list[i].Activity = runtime.ActivityIdle // as far as the host knows; the plugin may know more
			}
		}
	}
	c.mu.Unlock()
	if len(at) == 0 || !c.can(runtime.CapabilityActivity) {
		return list, nil
	}
	ask.Lease = activityLease
	ctx, cancel := context.WithTimeout(ctx, activityTime)
	defer cancel()
	seen, err := c.rt.ObserveActivity(ctx, &ask)
	if err != nil || len(seen) != len(at) {
		c.log.Debug("activity was not observed", obs.KeyError, err)
		return list, nil
	}
	for j, i := range at {
		if seen[j].Activity == runtime.ActivityUnspecified && list[i].Activity == runtime.ActivityIdle {
			continue
		}
		list[i] = seen[j]
		list[i].Ref = runtime.SessionRef{}
		if !seen[j].EvidenceAt.IsZero() && now.Sub(seen[j].EvidenceAt) > activityLease {
			list[i].Activity = runtime.ActivityUnspecified // too old to show
		}
	}
	return list, nil
}

// activityChanged passes on what a conversation does elsewhere. mu is held.
func (c *Conversations) activityChanged(ev *runtime.Event, at time.Time) {
	session, native := ev.ActivityChanged.Ref.SessionID, ev.ActivityChanged.Ref.NativeID
	pick2(&session, ev.SessionID)
	pick2(&native, ev.NativeID)
	conv := c.ofNames(session, native)
	if conv == nil || len(conv.runs) > 0 {
		return // our own runs the host knows better
	}
	a := *ev.ActivityChanged
	a.Ref = runtime.SessionRef{}
	c.publish(Update{Kind: ActivityChanged, SessionKey: conv.key, At: at, Activity: &a})
}

// Skills lists what can be called upon by name; key empty: in a new conversation.
func (c *Conversations) Skills(ctx context.Context, key string) ([]runtime.Skill, error) {
	if !c.can(runtime.CapabilitySkills) {
		return nil, codes.New(codes.MethodUnsupported)
	}
	ref, err := c.refFor(key)
	if err != nil {
		return nil, err
	}
	return readAs(ctx, c, func() ([]runtime.Skill, error) {
		return c.rt.ListSkills(ctx, &runtime.ListSkillsRequest{Session: ref})
	})
}

// refFor names a conversation to the plugin; key empty: none.
func (c *Conversations) refFor(key string) (runtime.SessionRef, error) {
	if key == "" {
		return runtime.SessionRef{}, nil
	}
	conv, err := c.find(key)
	if err != nil {
		return runtime.SessionRef{}, err
	}
	return c.refOf(conv), nil
}
