package conversations

import (
	"context"
	"strings"

	"github.com/openphone-host/openphone/protocol/clawket"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// health tells what is offered: what the plugin is built for, can do now, and this dialect serves. It fails when the
// runtime cannot serve, so that the app does not show a backend that would refuse everything.
func (d *Dialect) health(ctx context.Context, _ *call) (any, error) {
	h, err := d.svc.Health(ctx)
	if err != nil {
		return nil, err
	}
	if h.Description != nil {
		d.about.Store(h.Description)
	}
	switch h.Status.Condition {
	case runtime.ConditionReady, runtime.ConditionDegraded:
	default:
		if h.Status.Reason != "" {
			return nil, codes.New(h.Status.Reason)
		}
		return nil, codes.New(codes.RuntimeUnavailable)
	}
	t := &d.traits
	has := func(c runtime.Capability) bool { return runtime.Has(h.Capabilities, c) }
	out := &clawket.Health{
		Backend: d.backend, BridgeVersion: d.version, SessionCatalogSync: 1, Artifacts: true, PromptStatus: true,
		Protocol: t.protocol, Capabilities: t.informal,
		SessionCatalogPageIndex: one(t.pageIndex), SessionActivity: one(t.activity),
	}
	vision := t.alwaysVision || takesImages(h.Status.ContentTypes)
	out.Vision = &vision
	if !t.noProjects {
		projects := t.alwaysProject || h.DeviceScope && has(runtime.CapabilityProjects)
		out.Projects = &projects
	}
	if t.profile && has(runtime.CapabilityManagement) {
		out.ProfileVersion = 1
	}
	if t.sessionFlags {
		out.FastMode = has(runtime.CapabilitySetSettings)
		out.SessionPermissions = has(runtime.CapabilitySetSettings)
		out.SessionArchive = has(runtime.CapabilityArchive)
	}
	if t.modelFields {
		ready := h.Status.Condition == runtime.ConditionReady
		out.ModelReady, out.Model, out.Project = &ready, h.Status.ModelID, h.ProjectName
	}
	if t.desktop {
		connected := contains(h.Status.Features, "desktop")
		out.DesktopConnected = &connected
	}
	return out, nil
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func takesImages(types []string) bool {
	for _, x := range types {
		if strings.HasPrefix(x, "image/") {
			return true
		}
	}
	return false
}

// agents describes the one agent. Only a runtime with a main conversation names one; nothing is created by asking.
func (d *Dialect) agents(ctx context.Context, _ *call) (any, error) {
	a := clawket.Agent{AgentID: d.backend, Name: d.backend, IsMain: true, EntryMode: "sessions"}
	about := d.about.Load()
	if about == nil {
		h, err := d.svc.Health(ctx)
		if err != nil {
			return nil, err
		}
		if about = h.Description; about != nil {
			d.about.Store(about)
		}
	}
	if about != nil && about.Name != "" {
		a.Name = about.Name
	}
	if about != nil && (about.SessionLayout == runtime.SessionLayoutMainAndMany || about.SessionLayout == runtime.SessionLayoutSingle) {
		rows, err := d.svc.List(ctx, false)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Kind == runtime.SessionKindMain {
				a.MainSessionKey, a.EntryMode = r.Key, ""
				break
			}
		}
	}
	return []clawket.Agent{a}, nil
}

func (d *Dialect) projects(ctx context.Context, _ *call) (any, error) {
	list, err := d.svc.Projects(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]clawket.Project, 0, len(list))
	for _, p := range list {
		out = append(out, clawket.Project{ID: p.ID, Name: p.Name, Path: p.Path, Available: p.Available})
	}
	return out, nil
}
