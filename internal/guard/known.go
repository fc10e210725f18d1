package guard

import (
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/proc"
)

// programs are what the agents' programs are called.
var programs = []string{"gemini", "gemini-cli", "qwen", "qwen-code", "claude", "claude-code", "opencode", "opencode-ai", "copilot", "codex"}

// packages are the folders that they are installed in, for those whose script has another name.
var packages = []string{"@google/gemini-cli", "@qwen-code/qwen-code", "@anthropic-ai/claude-code", "node_modules/opencode-ai", "@github/copilot", "@openai/codex"}

// IsCLI says whether a process runs an agent's own program, by its command line: no editor, terminal or ssh that an agent may come through.
func IsCLI(pid int) bool { return isCLI(commandOf(pid)) }

// Kin returns the processes of this user that run the same program of an agent's as a process does, where that is no script: its daemon
// may run the model's shell (Codex). It returns none where the system has no brand.
func Kin(pid int) (kin []int) {
	name := native(commandOf(pid))
	if name == "" {
		return nil
	}
	for _, other := range proc.OfUser() {
		if other != pid && native(commandOf(other)) == name {
			kin = append(kin, other)
		}
	}
	return kin
}

// native returns the name of an agent's program; "" for a script and for other programs.
func native(words []string) string {
	if len(words) == 0 || !slices.Contains(programs, base(words[0])) {
		return ""
	}
	return base(words[0])
}

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
