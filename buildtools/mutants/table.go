package main

// table is what is broken, one at a time.
var table = []mutant{
	// Phones: the door.
	{
		name: "Origin unchecked", file: "host/phone/origin.go", old: "return endpoint(u.Host, port) == endpoint(r.Host, port)", new: "return port != \"\"",
		pkg: "host/phone", test: "TestCase2Origin",
	},
	{
		name: "a wrong token is let in", file: "host/phone/peer.go", old: "	if !ok {\n		return false\n	}\n	p.phone = Phone", new: "	if !ok && id != \"\" {\n		return false\n	}\n	p.phone = Phone",
		pkg: "host/phone", test: "TestCase4FirstFrame",
	},
	{
		name: "a request before connect reaches the dialect", file: "host/phone/peer.go", old: "	if q.Method != clawket.MethodConnect {\n		return false\n	}", new: "	if q.Method != clawket.MethodConnect {\n		return true\n	}",
		pkg: "host/phone", test: "TestCase4FirstFrame",
	},
	{
		name: "a seventeenth request is dispatched", file: "host/phone/peer.go", old: "p.waiting >= clawket.MaxRequests", new: "p.waiting > clawket.MaxRequests",
		pkg: "host/phone", test: "TestCase5SeventeenthRequest",
	},
	{
		name: "a silent socket may stay", file: "host/phone/peer.go", old: "if !p.known {\n			p.socket.Close(clawket.ClosePolicy, clawket.ReasonAuthRequired)", new: "if p.known {\n			p.socket.Close(clawket.ClosePolicy, clawket.ReasonAuthRequired)",
		pkg: "host/phone", test: "TestCase4NoFrameForTenSeconds",
	},
	{
		name: "admission closes while a request is dispatched", file: "host/phone/admission.go", old: "a.inFlight > 0 || busy", new: "busy",
		pkg: "host/phone", test: "TestCase32AdmissionClosesOnlyWhenNothingIsDispatched",
	},

	// Policy and consent.
	{
		name: "observe only lets changes through", file: "host/policy/policy.go", old: "level == runtime.AutonomyObserveOnly:\n		return Deny", new: "level == runtime.AutonomyObserveOnly:\n		return Ask",
		pkg: "host/policy", test: "TestDecideTable",
	},
	{
		name: "a call raises its own level", file: "host/policy/policy.go", old: "return min(known(call), session, orAsk(l.Runtime), orAsk(l.User))", new: "return min(known(call), orAsk(l.Runtime), orAsk(l.User))",
		pkg: "host/policy", test: "TestLevel",
	},
	{
		name: "unknown risk counts as low", file: "host/policy/policy.go", old: "case a.Risk == runtime.RiskLow || a.Risk", new: "case a.Risk == runtime.RiskUnspecified || a.Risk == runtime.RiskLow || a.Risk",
		pkg: "host/policy", test: "TestDecideTable",
	},
	{
		name: "a second approval has an effect", file: "host/consent/consent.go", old: "	case e.stage == answering:\n		refused = codes.InteractionAnswered\n", new: "",
		pkg: "host/consent", test: "TestOneAnswer",
	},
	{
		name: "consent outlives its expiry", file: "host/consent/consent.go", old: "e.stage != pending, e.deadline != 0 && now >= e.deadline", new: "e.stage != pending, now < 0",
		pkg: "host/consent", test: "TestExpiry",
	},

	// Receipts at rest.
	{
		name: "a key is taken twice", file: "host/store/runs.go", old: "return codes.New(codes.OperationConflict).Because(err)", new: "return nil",
		pkg: "host/store", test: "TestReceipts",
	},
	{
		name: "a receipt without its conversation", file: "host/store/runs.go", old: "return putSession(ctx, tx, session)", new: "return nil",
		pkg: "host/store", test: "TestReceipts",
	},
	{
		name: "a second end replaces the first", file: "host/store/runs.go", old: "WHERE runtime = ?1 AND run_id = ?2 AND ended = 0`", new: "WHERE runtime = ?1 AND run_id = ?2`",
		pkg: "host/store", test: "TestReceipts",
	},
	{
		name: "a revoked phone is used", file: "host/store/phones.go", old: "		WHERE id = ?1 AND revoked_at = 0`, id, stamp(at))\n	return n == 1, err\n}\n\n// RevokePhone", new: "		WHERE id = ?1`, id, stamp(at))\n	return n == 1, err\n}\n\n// RevokePhone",
		pkg: "host/store", test: "TestPhones",
	},

	// One prompt, at most once.
	{
		name: "dispatch before the receipt", file: "host/sessions/send.go", old: "	r, called, err := c.accept(ctx", new: "	_, _ = c.rt.CommitRun(c.life, &runtime.CommitRunRequest{RunID: runID})\n	r, called, err := c.accept(ctx",
		pkg: "host/sessions", test: "TestReceiptBeforeDispatch",
	},
	{
		name: "an unknown outcome is tried again", file: "host/sessions/commit.go", old: "	c.opts.Fault(killCommitted)\n", new: "	if err != nil || resp.Outcome == runtime.OutcomeUnknown {\n		resp, err = c.rt.CommitRun(c.life, &runtime.CommitRunRequest{RunID: r.id})\n	}\n	c.opts.Fault(killCommitted)\n",
		pkg: "host/sessions", test: "TestInterleavings",
	},
	{
		name: "an error counts as not dispatched", file: "host/sessions/commit.go", old: "if e := codes.As(err); e != nil && e.Outcome == codes.NotDispatched {", new: "if e := codes.As(err); e != nil {",
		pkg: "host/sessions", test: "TestOutcomes",
	},
	{
		name: "the same prompt runs twice", file: "host/ledger/ledger.go", old: "		return Repeat\n", new: "		return Fresh\n",
		pkg: "host/sessions", test: "TestSamePromptAgain",
	},
	{
		name: "another prompt under a used key is the same", file: "host/ledger/ledger.go", old: "existing.Fingerprint == fingerprint && fingerprint != \"\"", new: "fingerprint != \"\"",
		pkg: "host/ledger", test: "TestDecide",
	},
	{
		name: "a run nobody knows is said to be unsent", file: "host/ledger/ledger.go", old: "	return end(runtime.EndReasonUnspecified, codes.Interrupted)", new: "	return end(runtime.EndReasonFailed, codes.RunNotDispatched)",
		pkg: "host/ledger", test: "TestReconciled",
	},
	{
		name: "phones hear of an end that is not on disk", file: "host/sessions/commit.go", old: "err := c.db.EndRun(context.WithoutCancel(c.life), c.id, r.id, int32(e.Reason), e.Code, now); err != nil", new: "err := error(nil); err != nil",
		pkg: "host/sessions", test: "TestEndIsWrittenBeforeItIsTold",
	},
	{
		name: "a trimmed delta", file: "host/sessions/transcript.go", old: "	t.write(c.Text)\n	t.bound()", new: "	t.write(strings.TrimSpace(c.Text))\n	t.bound()",
		pkg: "host/sessions", test: "TestTranscript",
	},
	{
		name: "an older process is listened to", file: "host/sessions/events.go", old: "	if generation < c.generation {\n		c.mu.Unlock()\n		return false", new: "	if generation < 0 {\n		c.mu.Unlock()\n		return false",
		pkg: "host/sessions", test: "TestGenerationFence",
	},
	{
		name: "an incomplete scan removes rows", file: "host/sessions/catalog.go", old: "case s.end.Complete && s.err == nil && len(conv.runs)", new: "case (s.end.Complete || true) && len(conv.runs)",
		pkg: "host/sessions", test: "TestIncompleteScans",
	},
	{
		name: "a larger delta is preferred to pages", file: "host/sessions/snapshot/answer.go", old: "limit := min(maxAnswer, now.size-1)", new: "limit := maxAnswer",
		pkg: "host/sessions/snapshot", test: "TestDeltaIsNeverTheLargerAnswer",
	},
	{
		name: "a file with a second name is delivered", file: "host/sessions/artifact/file.go", old: "err == nil && links != 1", new: "err == nil && links < 1",
		pkg: "host/sessions/artifact", test: "TestDeliverable",
	},

	// Pairings and wire.
	{
		name: "an unused token never dies", file: "host/pairing/pairing.go", old: "unusedLife = 10 * time.Minute", new: "unusedLife = 10 * time.Hour",
		pkg: "host/pairing", test: "TestUnusedTokenIsVoidAfterTenMinutes",
	},
	{
		name: "a sentence that logs a phone out", file: "host/phone/conversations/failure.go", old: "; loggedOut.MatchString(text) {", new: "; false {",
		pkg: "host/phone/conversations", test: "TestNoSentenceLogsAPhoneOut",
	},

	// Plugins.
	{
		name: "a changed executable is started", file: "host/runtimes/own.go", old: "	if pin != sum {", new: "	if pin == sum+\"x\" {",
		pkg: "host/runtimes", test: "TestOneByteChanged",
	},
	{
		name: "the host's environment leaks", file: "host/runtimes/environment.go", old: "if wanted || allowed(base, name)", new: "if wanted || name != \"\" || allowed(base, name)",
		pkg: "host/runtimes", test: "TestEnvironment",
	},
	{
		name: "the breaker never opens", file: "host/runtimes/restart.go", old: "len(r.exits) >= breakerExits", new: "len(r.exits) > 1000*breakerExits",
		pkg: "host/runtimes", test: "TestBreaker",
	},

	// Codex.
	{
		name: "a missing acknowledgement counts as a refusal", file: "plugins/codex/agent/run.go", old: "if err != nil && appserver.Rejected(err) {\n		a.mu.Lock()\n		a.undo", new: "if err != nil {\n		a.mu.Lock()\n		a.undo",
		pkg: "plugins/codex/agent", test: "TestMissingAcknowledgement",
	},
	{
		name: "an imported thread is written without an owner's word", file: "plugins/codex/agent/owner.go", old: "if created && auditedLocks[l.version] {", new: "if auditedLocks[l.version] {",
		pkg: "plugins/codex/agent", test: "TestWhoMayWrite",
	},
}
