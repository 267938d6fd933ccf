package runtimes

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/openphone-host/openphone/sdk/serve"
)

// base names what every program needs to run at all and that says nothing about its user but who it is.
var base = func() []string {
	if runtime.GOOS == "windows" {
		return []string{
			"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "PATH", "TEMP", "TMP", "USERPROFILE", "APPDATA",
			"LOCALAPPDATA", "ProgramData", "ProgramFiles", "USERNAME", "HOMEDRIVE", "HOMEPATH", "NUMBER_OF_PROCESSORS",
		}
	}
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"}
}()

// markers are set inside an agent's own shell; a runtime that inherits one believes to be started by that agent, and the
// host's own settings are nobody else's business. They are withheld even from a plugin that asks for a prefix they match.
var markers = []string{
	"OPENPHONE_HOME", "OPENPHONE_PLUGIN", "OPENPHONE_PLUGIN_*", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT",
	"CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI", "PI_CODING_AGENT",
}

// allowed reports whether name is in the list; an entry NAME_* names every variable that begins with NAME_.
func allowed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasSuffix(prefix, "_") && strings.HasPrefix(name, prefix)
		}
		if runtime.GOOS == "windows" {
			return strings.EqualFold(p, name)
		}
		return p == name
	})
}

// environment composes what a plugin process gets (design §8): a minimum, what its description names, what the user
// adds, and nothing else of the host's own. extra maps names to values; an empty value passes the host's own on.
func environment(host, named []string, extra map[string]string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(name, value string) {
		if !seen[name] && name != "" && !strings.ContainsAny(name, "=\x00") {
			seen[name] = true
			out = append(out, name+"="+value)
		}
	}
	for _, name := range sortedKeys(extra) {
		if v := extra[name]; v != "" {
			add(name, v)
		}
	}
	for _, kv := range host {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue
		}
		_, wanted := extra[name]
		if wanted || allowed(base, name) || (allowed(named, name) && !allowed(markers, name)) {
			add(name, value)
		}
	}
	slices.Sort(out)
	return out
}

// names lists the variables of an environment without their values, for people who want to see what is passed.
func names(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		n, _, _ := strings.Cut(kv, "=")
		out = append(out, n)
	}
	return out
}

// hostSide is what the host itself tells every plugin process.
func hostSide(level string) []string {
	if level == "" {
		level = "info"
	}
	return []string{serve.EnvStdin + "=1", serve.EnvParent + "=" + itoa(os.Getpid()), serve.EnvLogLevel + "=" + level}
}
