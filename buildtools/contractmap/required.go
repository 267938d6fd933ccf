package contractmap

import "strings"

// required are the rows the page must have, as "section need": the methods phones call, and what each runtime was found
// to need of the contract.
var required = func() []string {
	var all []string
	for section, needs := range map[string]string{
		"Methods": `connect and health; agents.list; projects.list; sessions.list; sessions.sync; sessions.activity; sessions.create;
			sessions.rename; sessions.reset; sessions.delete; sessions.archive; sessions.archived; chat.history; chat.send; chat.abort;
			chat.steer; chat.promptStatus; questions.list; questions.respond; approvals.list; approvals.resolve; models.list;
			models.select; models.thinking; models.fast; models.permissions; skills.list; clawket.artifacts.open;
			clawket.artifacts.read; clawket.files.list; clawket.files.read; profile.*; bridge.update.start; bridge.update.status`,
		"OpenClaw": `OpenChannel: one stream per phone socket; Open; Frame; Demand; BootstrapHold; Close; Signal gateway_open;
			Signal challenge_forwarded; Signal connect_forwarded; Signal connect_result; Signal gateway_closed; Signal reconnect_required;
			Signal pair_pending and pair_resolved; Signal device_seen; IssueBootstrap; Doctor and DoctorFix; Permissions; ResolvePairing;
			Snapshot and Watch; Admission and ActiveWork; PhoneTools Attach; PhoneTools ToolResult and ToolProgress; PhoneTools ToolRequest;
			PhoneTools ToolCancel; PhoneTools NodeState; AttentionRequest; Order and bytes; Backpressure; Crash; Isolation; Autonomy; Device keys`,
		"Hermes": `Describe; Health; Request; Events; Run registry snapshot; Busy counters; PrepareStop; Stop; Approvals; API key derivation;
			Idempotency; Files and artifacts`,
		"Local": `Describe; Health; Request; Events; Busy; Running; PrepareStop and Stop; Answer before first update`,
	} {
		for _, need := range strings.Split(needs, ";") {
			all = append(all, section+" "+strings.Join(strings.Fields(need), " "))
		}
	}
	return all
}()
