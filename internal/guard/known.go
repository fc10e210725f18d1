package guard

import (
	"slices"
	"strings"
)

// programs are what the agents' programs are called, and the packages that they come in.
var programs = []string{"gemini", "gemini-cli", "qwen", "qwen-code", "claude", "claude-code", "opencode", "opencode-ai", "copilot", "codex"}

// IsCLI says whether a process runs an agent's own program, by its command line: no editor, terminal or ssh that an agent may come through.
func IsCLI(pid int) bool { return isCLI(commandOf(pid)) }

func isCLI(words []string) bool {
	if len(words) == 0 {
		return false
	}
	named := func(part string) bool {
		return slices.Contains(programs, strings.TrimPrefix(strings.TrimSuffix(part, ".js"), "@"))
	}
	switch program := base(words[0]); program {
	case "node", "nodejs", "bun", "deno":
		script := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") }) + 1
		return script > 0 && slices.ContainsFunc(strings.FieldsFunc(words[script], func(r rune) bool { return r == '/' || r == '\\' }), named)
	default:
		return named(program)
	}
}
