package runtime_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openphone-host/openphone/sdk/runtime"
)

// core implements nothing but what every plugin must; embedding the interface is enough to have its methods.
type core struct{ runtime.Runtime }

// full implements every optional group, some of them only in part.
type full struct {
	core
	runtime.Reconciler
	runtime.Drainer
	runtime.Detacher
	runtime.ProjectLister
	runtime.Steerer
	runtime.SettingsKeeper
	runtime.SkillLister
	runtime.ActivityObserver
	runtime.AttachmentReader
	runtime.Manager
	runtime.FrameCarrier
	runtime.PhoneToolUser
}

func (full) Creates() (every, branches bool)   { return false, true }
func (full) Updates() (title, archived bool)   { return true, false }
func (full) Asks() (questions, approvals bool) { return false, true }

func (full) CreateSession(context.Context, *runtime.CreateSessionRequest) (*runtime.CreateSessionResponse, error) {
	return nil, nil
}

func (full) UpdateSession(context.Context, *runtime.UpdateSessionRequest) (*runtime.UpdateSessionResponse, error) {
	return nil, nil
}

func (full) ResolveInteraction(context.Context, *runtime.ResolveInteractionRequest) (*runtime.ResolveInteractionResponse, error) {
	return nil, nil
}

func TestCapabilitiesAreWhatIsImplemented(t *testing.T) {
	if got := runtime.Capabilities(core{}); len(got) != 0 {
		t.Errorf("the core alone is said to have %v", got)
	}
	want := []runtime.Capability{
		runtime.CapabilityBranch, runtime.CapabilityRename, runtime.CapabilityDetach, runtime.CapabilityProjects,
		runtime.CapabilitySteer, runtime.CapabilityApprovals, runtime.CapabilitySettings, runtime.CapabilitySetSettings,
		runtime.CapabilitySkills, runtime.CapabilityActivity, runtime.CapabilityAttachments, runtime.CapabilityReconcile,
		runtime.CapabilityDrain, runtime.CapabilityManagement, runtime.CapabilityChannels, runtime.CapabilityPhoneTools,
	}
	if diff := cmp.Diff(want, runtime.Capabilities(full{})); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
}

func TestZeroValuesAreTheCarefulOnes(t *testing.T) {
	for name, got := range map[string]string{
		"outcome": runtime.Outcome(0).String(), "decision": runtime.Decision(0).String(), "end": runtime.EndReason(0).String(),
		"an unknown condition": runtime.Condition(99).String(),
	} {
		if got != "unspecified" {
			t.Errorf("%s reads %q, want unspecified", name, got)
		}
	}
	if !(runtime.SessionRef{}).IsZero() || (runtime.SessionRef{NativeID: "x"}).IsZero() {
		t.Error("a reference is zero exactly when it names nothing")
	}
	if !(runtime.Payload{}).IsZero() || runtime.JSON([]byte("{}")).IsZero() {
		t.Error("a payload is zero exactly when there is none")
	}
}
