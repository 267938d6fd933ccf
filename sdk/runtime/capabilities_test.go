package runtime

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// core is the least a plugin is; the embedded interface stands for methods that are never called here.
type core struct{ Runtime }

type (
	steers   struct{ core }
	creates  struct{ every, branches bool }
	updates  struct{ title, archived bool }
	asks     struct{ questions, approvals bool }
	settings struct{ core }
)

func (steers) SteerRun(context.Context, *SteerRunRequest) (*SteerRunResponse, error) { return nil, nil }

func (creates) CreateSession(context.Context, *CreateSessionRequest) (*CreateSessionResponse, error) {
	return nil, nil
}
func (c creates) Creates() (every, branches bool) { return c.every, c.branches }

func (updates) UpdateSession(context.Context, *UpdateSessionRequest) (*UpdateSessionResponse, error) {
	return nil, nil
}
func (u updates) Updates() (title, archived bool) { return u.title, u.archived }

func (asks) ResolveInteraction(context.Context, *ResolveInteractionRequest) (*ResolveInteractionResponse, error) {
	return nil, nil
}
func (a asks) Asks() (questions, approvals bool) { return a.questions, a.approvals }

func (settings) GetSettings(context.Context, *GetSettingsRequest) (*Settings, error) { return nil, nil }

// A capability is what is implemented, never what is claimed.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		r    Runtime
		want []Capability
	}{
		{"the core has none", core{}, nil},
		{"one optional method", steers{}, []Capability{CapabilitySteer}},
		{"reading settings is not changing them", settings{}, []Capability{CapabilitySettings}},
		{"only copies are created", struct {
			core
			creates
		}{creates: creates{branches: true}}, []Capability{CapabilityBranch}},
		{"only titles are changed", struct {
			core
			updates
		}{updates: updates{title: true}}, []Capability{CapabilityRename}},
		{"only approvals are asked", struct {
			core
			asks
		}{asks: asks{approvals: true}}, []Capability{CapabilityApprovals}},
		{"a method without anything behind it", struct {
			core
			asks
		}{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Capabilities(c.r)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, x := range c.want {
				if !Has(got, x) {
					t.Errorf("Has does not find %v", x)
				}
			}
			if Has(got, CapabilityChannels) {
				t.Error("Has finds what nobody implements")
			}
		})
	}
}
