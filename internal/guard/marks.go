package guard

import (
	"slices"
	"strings"
)

// A Mark is what an agent writes into the environment of its model's shell.
type Mark struct {
	Name string
	// Value is the only one that counts; "" stands for any that is not empty.
	Value string
	// Agent is who sets it.
	Agent string
}

// Marks lists those of every agent that is known.
func Marks() []Mark {
	return []Mark{
		{"GEMINI_CLI", "", "Gemini CLI"},
		{"QWEN_CODE", "", "Qwen Code"},
		{"CLAUDECODE", "", "Claude Code"},
		{"AI_AGENT", "", "Claude Code and others"},
		{"OPENCODE", "", "opencode"},
		{"AGENT", "1", "opencode"}, // with other values people use it for other things
		{"COPILOT_CLI", "", "GitHub Copilot CLI"},
		{"CODEX_THREAD_ID", "", "Codex"},
		{"CODEX_TOOL_CALL_ID", "", "Codex"},
	}
}

// Carries says whether an environment (NAME=value each) carries an agent's mark.
func Carries(env []string) bool {
	marks := Marks()
	return slices.ContainsFunc(env, func(line string) bool {
		name, value, _ := strings.Cut(line, "=")
		return slices.ContainsFunc(marks, func(m Mark) bool {
			return m.Name == name && value != "" && (m.Value == "" || m.Value == value)
		})
	})
}
