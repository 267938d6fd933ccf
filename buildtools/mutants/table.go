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
		name: "consent outlives its expiry", file: "host/consent/consent.go", old: "e.stage != pending, e.deadline != 0 && b.clock.Mono() >= e.deadline", new: "e.stage != pending",
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
}
