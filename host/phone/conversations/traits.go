package conversations

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/openphone-host/openphone/protocol/clawket"
)

// traits is everything in which the backends differ on the wire. A backend that the shipped apps do not know gets
// ownTraits: whatever its capabilities allow, in the form that says most.
type traits struct {
	without map[string]bool // methods this backend does not serve

	// Events.
	snapshot        bool // text as a snapshot of the whole run instead of deltas
	turns           bool // turn identity on runs and messages
	terminalMessage bool // a failed run ends with a notice of its own; otherwise an error event comes before its end
	systemEvents    bool // compaction and system_event
	activityPush    bool // session_activity_update, on direct sockets that asked

	// Handshake.
	activity      bool // sessions.activity
	pageIndex     bool
	alwaysVision  bool // images are always accepted
	alwaysProject bool // projects are always listed
	noProjects    bool // projects are never mentioned
	profile       bool // profile.*
	modelFields   bool // modelReady, model, project
	desktop       bool
	protocol      int
	sessionFlags  bool // fastMode, sessionPermissions, sessionArchive
	informal      map[string]any

	// Catalog.
	continues  bool // canContinue on native rows
	reasons    bool // continuationBlockedReason
	archivable bool

	// Prompts.
	textUnits      int
	images         int
	imageBase64    int // all images together, in base64 characters; 0: only the frame bounds them
	noThinking     bool
	noSkill        bool
	keyNotBlank    bool
	titleUnits     int
	titleRefused   bool // a title that is too long is refused, not cut
	fingerprint    func(c *call) (string, error)
	abortCompleted bool // chat.abort needs a run and answers completed
	statusFails    bool // chat.promptStatus of an unknown conversation is an error

	// History.
	pageSize      int
	decimalCursor bool
	plainToolIDs  bool // tool rows are named by the call id alone
	inlineImages  bool // readers without artifacts get images inline
	usage         bool
	boxedInput    bool // long tool input becomes {preview}

	// Interactions.
	forms         bool // every question is a form
	bareApprovals bool
	oneAnswer     bool // several answers to one field are never possible

	// Models.
	thinkingPerPrompt bool // the level travels with each prompt
	modelOrder        bool // sortOrder and resolvedModel
	contextAndCost    bool
	anyProvider       bool // models.select ignores the provider
	sameProvider      bool // models.select cannot change the provider
}

func without(methods ...string) map[string]bool {
	m := map[string]bool{}
	for _, x := range methods {
		m[x] = true
	}
	return m
}

var ownTraits = traits{
	turns: true, terminalMessage: true, systemEvents: true, activityPush: true,
	activity: true, pageIndex: true, modelFields: true, sessionFlags: true,
	continues: true, reasons: true, archivable: true,
	textUnits: 128000, images: 8, titleUnits: 200, fingerprint: fingerprintWhole,
	pageSize: 40, usage: true, contextAndCost: true, modelOrder: true,
}

var knownTraits = map[string]traits{
	"codex": {
		snapshot: true, turns: true, terminalMessage: true, activityPush: true,
		activity: true, pageIndex: true, alwaysVision: true, profile: true, modelFields: true, desktop: true, sessionFlags: true,
		continues: true, archivable: true,
		textUnits: 128000, images: 6, titleUnits: 200, fingerprint: fingerprintWhole,
		statusFails: true,
		pageSize:    40, forms: true, oneAnswer: true, sameProvider: true,
	},
	"claude-code": {
		without: without(clawket.MethodSessionsArchive, clawket.MethodSessionsArchived, clawket.MethodChatSteer,
			clawket.MethodModelsThinking, clawket.MethodModelsFast, clawket.MethodModelsPermission, clawket.MethodSkillsList),
		activity: true, alwaysVision: true, alwaysProject: true,
		informal:  map[string]any{"steer": false, "thinkingLevels": false, "skills": false, "sessionBranch": true},
		continues: true, reasons: true,
		textUnits: 200000, images: 4, imageBase64: 5 << 20, noThinking: true, noSkill: true, keyNotBlank: true, titleUnits: 300, titleRefused: true,
		fingerprint: fingerprintContent, abortCompleted: true,
		pageSize: 100, decimalCursor: true, forms: true, bareApprovals: true, modelOrder: true, anyProvider: true,
	},
	"pi": {
		without: without(clawket.MethodProjectsList, clawket.MethodSessionsActivity, clawket.MethodSessionsArchive,
			clawket.MethodSessionsArchived, clawket.MethodApprovalsList, clawket.MethodApprovalsResolve,
			clawket.MethodModelsThinking, clawket.MethodModelsFast, clawket.MethodModelsPermission),
		systemEvents: true, noProjects: true, modelFields: true, protocol: 1,
		textUnits: 128000, images: 8, titleUnits: 200, fingerprint: fingerprintWhole,
		pageSize: 40, decimalCursor: true, plainToolIDs: true, inlineImages: true, usage: true, boxedInput: true,
		thinkingPerPrompt: true, contextAndCost: true,
	},
}

func traitsOf(backend string) traits {
	if t, ok := knownTraits[backend]; ok {
		return t
	}
	return ownTraits
}

// NativeKey gives the formula for the key of a native conversation of a backend; see sessions.Options.
func NativeKey(backend string) func(nativeID string) string {
	switch backend {
	case "codex":
		return func(id string) string { return "native:" + id }
	case "pi":
		return func(id string) string { return "native-" + hash(id)[:24] }
	}
	return func(id string) string { return "native:" + hash(id)[:32] }
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
