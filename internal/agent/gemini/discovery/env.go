package discovery

import (
	"os"
	"strconv"
)

// A Variable is one environment variable of a terminal.
type Variable struct{ Name, Value string }

// Env returns the variables with which a CLI in a terminal finds this companion and no other. It always returns
// all of them (SPEC D-7). inContainer and getenv describe the terminal: see InContainer.
func Env(f *File, pid int, inContainer bool, getenv func(string) string) ([]Variable, error) {
	workspace, err := WorkspacePath(f.Roots)
	if err != nil {
		return nil, err
	}
	vars := []Variable{
		{"GEMINI_CLI_IDE_SERVER_PORT", strconv.Itoa(f.Port)},
		{"GEMINI_CLI_IDE_WORKSPACE_PATH", workspace},
		{"GEMINI_CLI_IDE_AUTH_TOKEN", f.Token},
		{"GEMINI_CLI_IDE_PID", strconv.Itoa(pid)},
	}
	if inContainer && !knowsContainer(getenv) {
		vars = append(vars, Variable{"REMOTE_CONTAINERS", "1"})
	}
	return vars, nil
}

// knowsContainer says whether a CLI in a container with this environment dials 127.0.0.1
// by itself, instead of the container's host.
func knowsContainer(getenv func(string) string) bool {
	return getenv("SSH_CONNECTION") != "" ||
		getenv("VSCODE_REMOTE_CONTAINERS_SESSION") != "" ||
		getenv("REMOTE_CONTAINERS") != ""
}

// InContainer says whether Gemini CLI, started here, believes that it runs in a container.
func InContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return false
}
