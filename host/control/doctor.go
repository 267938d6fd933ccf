package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/openphone-host/openphone/host/runtimes"
	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
)

// freshEvidence is how old a runtime's own health may be for a diagnosis.
const freshEvidence = 2 * time.Second

// runtimeChecks looks at every plugin and at the runtime behind it.
func (s *Server) runtimeChecks(ctx context.Context) []Check {
	if s.opt.Runtimes == nil {
		return nil
	}
	var list []Check
	for _, i := range s.opt.Runtimes.Instances() {
		if state, _ := i.State(); state == runtimes.Ready {
			age := freshEvidence
			_, _ = i.Health(ctx, &age) // the answer is in the snapshot
		}
		list = append(list, runtimeCheck(i.Snapshot()))
	}
	if len(list) == 0 {
		list = append(list, Check{Name: "runtimes", Result: Failed, Message: "No plugin was found.", Advice: "Install OpenPhone completely, or name the plugins' directory in the configuration."})
	}
	return list
}

func runtimeCheck(x runtimes.Snapshot) Check {
	c := Check{Name: "runtime." + x.ID, Result: Failed, Message: sentence(x, x.Reason)}
	restart := "openphone runtime restart " + x.ID
	switch x.State {
	case runtimes.Disabled:
		c.Result, c.Message = OK, x.Name+" is disabled."
		c.Advice = "openphone runtime enable " + x.ID
	case runtimes.Refused:
		c.Advice = restart
		if x.Reason == codes.PluginChanged {
			c.Advice = "openphone runtime enable " + x.ID
		}
	case runtimes.Waiting, runtimes.Paused:
		c.Advice = restart
	case runtimes.Starting, runtimes.Draining:
		c.Result, c.Message = Warning, x.Name+" is "+string(x.State)+"."
	case runtimes.Ready:
		return readyCheck(c, x)
	}
	return c
}

// readyCheck looks behind a plugin that is ready, at its native runtime.
func readyCheck(c Check, x runtimes.Snapshot) Check {
	st := x.Status
	version := st.NativeVersion
	if version == "" {
		version = x.PluginVersion
	}
	switch st.Condition {
	case runtime.ConditionReady:
		c.Result, c.Message = OK, strings.TrimSpace(x.Name+" "+version)+" is ready."
		if n := len(x.EnvironmentSet); n > 0 {
			c.Message += fmt.Sprintf(" It is given %d variables: %s.", n, strings.Join(x.EnvironmentSet, ", "))
		}
		return c
	case runtime.ConditionStarting:
		c.Result, c.Message = Warning, x.Name+" is starting."
		return c
	case runtime.ConditionDegraded:
		c.Result = Warning
	}
	if c.Message = sentence(x, st.Reason); c.Message == "" {
		c.Message = x.Name + " cannot be reached."
	}
	return c
}
