package runtime

// Capabilities computes what r implements. The SDK puts the answer into Description; see the package comment.
func Capabilities(r Runtime) []Capability {
	var list []Capability
	add := func(ok bool, c Capability) {
		if ok {
			list = append(list, c)
		}
	}
	if x, ok := r.(Creator); ok {
		every, branches := x.Creates()
		add(every, CapabilityCreate)
		add(branches, CapabilityBranch)
	}
	if x, ok := r.(Updater); ok {
		title, archived := x.Updates()
		add(title, CapabilityRename)
		add(archived, CapabilityArchive)
	}
	_, ok := r.(Detacher)
	add(ok, CapabilityDetach)
	_, ok = r.(ProjectLister)
	add(ok, CapabilityProjects)
	_, ok = r.(Steerer)
	add(ok, CapabilitySteer)
	if x, ok := r.(Resolver); ok {
		questions, approvals := x.Asks()
		add(questions, CapabilityQuestions)
		add(approvals, CapabilityApprovals)
	}
	_, ok = r.(SettingsReader)
	add(ok, CapabilitySettings)
	_, ok = r.(SettingsKeeper)
	add(ok, CapabilitySetSettings)
	_, ok = r.(SkillLister)
	add(ok, CapabilitySkills)
	_, ok = r.(ActivityObserver)
	add(ok, CapabilityActivity)
	_, ok = r.(AttachmentReader)
	add(ok, CapabilityAttachments)
	_, ok = r.(Reconciler)
	add(ok, CapabilityReconcile)
	_, ok = r.(Drainer)
	add(ok, CapabilityDrain)
	_, ok = r.(Manager)
	add(ok, CapabilityManagement)
	_, ok = r.(FrameCarrier)
	add(ok, CapabilityChannels)
	_, ok = r.(PhoneToolUser)
	add(ok, CapabilityPhoneTools)
	return list
}
