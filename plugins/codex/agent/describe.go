package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/openphone-host/openphone/protocol/codes"
	"github.com/openphone-host/openphone/sdk/runtime"
	"github.com/openphone-host/openphone/sdk/serve"
)

// version of this plugin.
const version = "1.0.0"

// Codes of this runtime and their sentences. The first three are all a phone is ever told about a failed turn.
const (
	codeAuth   = "codex.auth_failed"
	codeModel  = "codex.model_unavailable"
	codeTurn   = "codex.turn_failed"
	codeConfig = "codex.config_invalid"
	codeSecret = "codex.secret_refused"
	codeAsk    = "codex.question_refused"
)

var phrases = []runtime.Phrase{
	{Code: codeAuth, Text: "Model authentication failed. Sign in again on your computer."},
	{Code: codeModel, Text: "This model is unavailable in the current Codex runtime. Choose another model or update Codex on your computer."},
	{Code: codeTurn, Text: "The agent couldn't complete this reply. Please try again."},
	{Code: codeConfig, Text: "Codex cannot load its configuration. Correct it on your computer."},
	{Code: codeSecret, Text: "The agent asked for a secret, which is never typed on a phone. The reply was stopped."},
	// What to run on this computer, for its own terminal.
	{Code: "codex." + codes.RuntimeMissing, Text: "Codex was not found on this computer. Install it: npm install -g @openai/codex"},
	{Code: "codex." + codes.RuntimeTooOld, Text: "Codex on this computer is too old. Update it: npm install -g @openai/codex"},
	{Code: "codex." + codes.RuntimeLoginRequired, Text: "Codex is not signed in. Run: codex login"},
	{Code: codeAsk, Text: "The agent asked something that cannot be shown here. The request was refused."},
}

// Bounds of a prompt.
const (
	maxTextUnits   = 128000
	maxImages      = 6
	maxImageBytes  = 5 << 20 // of all images together; the server repeats them in base64 twice
	maxConcurrent  = 32      // interactions open at once; more are refused
	maxQuestions   = 10      // fields of a question
	maxChoices     = 20      // options of a field
	maxSubject     = 128000  // characters of an approval; what is longer is refused, not shown in part
	maxOutput      = 32000   // characters of a tool's output
	maxPlainReason = 2000    // characters of a reason or heading
)

// imageTypes are the images a prompt may hold.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// environment is all of the host's environment that reaches the plugin and Codex.
var environment = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*", "SSH_AUTH_SOCK",
	"CODEX_*", "OPENAI_*", "RUST_LOG", serve.EnvKillFile,
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA",
	"LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "TEMP", "TMP", "USERNAME",
}

// keepEnv reports that a NAME=value pair is one of environment and not for the plugin alone.
func keepEnv(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return name != serve.EnvKillFile && slices.ContainsFunc(environment, func(e string) bool {
		if p, ok := strings.CutSuffix(e, "*"); ok {
			return strings.HasPrefix(name, p)
		}
		return name == e
	})
}

// Describe implements runtime.Runtime.
func (a *Agent) Describe(context.Context) (*runtime.Description, error) {
	return &runtime.Description{
		RuntimeID: "codex", Name: "Codex", PluginVersion: version,
		ConfigSchema: runtime.JSON([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
			`"properties":{"command":{"type":"string","maxLength":4096,` +
			`"description":"Codex executable: a path, or a name looked for as usual. Default: codex."}},` +
			`"additionalProperties":false}`)),
		Environment:   environment,
		SessionLayout: runtime.SessionLayoutMany,
		Limits: &runtime.Limits{
			TextUnits: maxTextUnits, Attachments: maxImages, AttachmentBytes: maxImageBytes,
		},
		Methods: profileMethods(),
		Phrases: phrases,
		// Two app servers can live beside each other; each thread has one writer, by Codex' own lock.
		SideBySide: true,
	}, nil
}

// capabilities is what can be done on this computer: projects only when the instance has the whole of it.
func capabilities(r runtime.Runtime, oneProject bool) []runtime.Capability {
	list := runtime.Capabilities(r)
	if oneProject {
		list = slices.DeleteFunc(list, func(c runtime.Capability) bool { return c == runtime.CapabilityProjects })
	}
	return list
}
