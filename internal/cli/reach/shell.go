package reach

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pollux-companion/pollux/internal/proc"
)

// shellNames are the families of shells that env supports.
func shellNames() []string { return []string{"sh", "fish", "powershell", "cmd"} }

// ShellHere guesses the shell that runs pollux, from the parent process, else from SHELL.
func ShellHere() string {
	info, _ := proc.Lookup(os.Getppid())
	for _, name := range []string{info.Name, filepath.Base(os.Getenv("SHELL"))} {
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
		switch strings.TrimPrefix(name, "-") { // a login shell has a dash in front
		case "sh", "bash", "zsh", "dash", "ksh", "ash":
			return "sh"
		case "fish":
			return "fish"
		case "pwsh", "powershell":
			return "powershell"
		case "cmd":
			return "cmd"
		}
	}
	return cmp.Or(map[string]string{"windows": "powershell"}[runtime.GOOS], "sh")
}

// EvalHint returns the command that sets the variables in a shell.
func EvalHint(shell string) string {
	switch shell {
	case "fish":
		return "pollux env --shell fish | source"
	case "powershell":
		return "pollux env --shell powershell | Out-String | iex"
	case "cmd":
		return `pollux env --shell cmd > %TEMP%\p.bat && %TEMP%\p.bat`
	}
	return `eval "$(pollux env)"`
}

// assigner returns a function that writes a shell's assignment of an exported variable, quoted so that the value is
// always read literally.
func assigner(shell string) (func(name, value string) (string, error), error) {
	switch shell {
	case "sh":
		return func(n, v string) (string, error) {
			return "export " + n + "='" + strings.ReplaceAll(v, "'", `'\''`) + "'", nil
		}, nil
	case "fish":
		quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
		return func(n, v string) (string, error) { return "set -gx " + n + " '" + quote.Replace(v) + "'", nil }, nil
	case "powershell":
		// PowerShell treats typographic quotes as quotes.
		quote := strings.NewReplacer("'", "''", "‘", "‘‘", "’", "’’", "‚", "‚‚", "‛", "‛‛")
		return func(n, v string) (string, error) { return "$env:" + n + " = '" + quote.Replace(v) + "'", nil }, nil
	case "cmd":
		return assignCmd, nil
	}
	return nil, fmt.Errorf("pollux does not know the shell %q; use one of %s", shell, strings.Join(shellNames(), ", "))
}

// assignCmd writes a line of a batch file, which doubles percent signs.
func assignCmd(name, value string) (string, error) {
	if strings.ContainsAny(value, "\r\n\"") {
		return "", fmt.Errorf("the value of %s holds a quote or a line end, which cmd cannot take; use --shell powershell", name)
	}
	return `@set "` + name + "=" + strings.ReplaceAll(value, "%", "%%") + `"`, nil
}
