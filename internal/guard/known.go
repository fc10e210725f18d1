package guard

import (
	"slices"
	"strings"
)

// programs are what the agents' programs are called.
var programs = []string{"gemini", "gemini-cli", "qwen", "qwen-code", "claude", "claude-code", "opencode", "opencode-ai", "copilot", "codex"}

// packages are the folders that they are installed in, for those whose script has another name.
var packages = []string{"@google/gemini-cli", "@qwen-code/qwen-code", "@anthropic-ai/claude-code", "node_modules/opencode-ai", "@github/copilot", "@openai/codex"}

// IsCLI says whether a process runs an agent's own program, by its command line: no editor, terminal or ssh that an agent may come through.
func IsCLI(pid int) bool { return isCLI(commandOf(pid)) }

func isCLI(words []string) bool {
	if len(words) == 0 {
		return false
	}
	switch program := base(words[0]); program {
	case "node", "nodejs", "bun", "deno":
		script := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") }) + 1
		return script > 0 && isScript(strings.ReplaceAll(words[script], `\`, "/"))
	default:
		return slices.Contains(programs, program)
	}
}

// isScript says whether a script is an agent's. A folder that is merely called so may be a user's, or a project, with an editor's server in it.
func isScript(path string) bool {
	if slices.Contains(programs, strings.TrimSuffix(base(path), ".js")) {
		return true
	}
	if i := strings.LastIndex(path, "/node_modules/"); i > 0 { // a package that another has brought along is itself alone
		path = path[i:]
	}
	return slices.ContainsFunc(packages, func(p string) bool { return strings.Contains(path, "/"+p+"/") })
}
