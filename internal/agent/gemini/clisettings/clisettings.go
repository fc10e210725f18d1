// Package clisettings knows Gemini CLI's own settings: where they are, which of
// them count, which folders the CLI trusts, and which MCP servers it starts
// (SPEC §11.6).
package clisettings

import (
	"cmp"
	"errors"
	"path/filepath"
	"runtime"

	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// Program reads and changes the CLI's settings files.
const Program settingsfile.Program = "Gemini CLI"

// Enabled is the key of IDE mode: with it the CLI looks for a companion. Unset means false.
const Enabled = "ide.enabled"

// Switches are the keys that pollux setup switches on. The second one keeps the CLI from offering a companion of its own.
func Switches() []string { return []string{Enabled, "ide.hasSeenNudge"} }

// PathIn returns the user's settings file, absolute: below GEMINI_CLI_HOME where that is
// set, else below the home folder. It need not exist. getenv returns the variables of the CLI's process.
func PathIn(getenv func(string) string) (string, error) {
	home := getenv("GEMINI_CLI_HOME")
	if home == "" {
		home = getenv(settingsfile.HomeVariable)
	}
	if home == "" {
		return "", errors.New("there is no home folder: " + settingsfile.HomeVariable + " is not set (nor GEMINI_CLI_HOME); set it and try again")
	}
	home, err := filepath.Abs(home)
	return filepath.Join(home, ".gemini", "settings.json"), err
}

// systemSettings are the settings files for the whole machine.
var systemSettings = map[string]string{
	"darwin":  "/Library/Application Support/GeminiCli/settings.json",
	"linux":   "/etc/gemini-cli/settings.json",
	"windows": `C:\ProgramData\gemini-cli\settings.json`,
}

// System returns the machine's own files: defaults, which every other file outranks, and system, which outranks every
// other. Each is "" when it is missing, or when the CLI ignores it because a user other than root could have written it.
func System(getenv func(string) string) (defaults, system string) {
	system = getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
	if system == "" {
		system = cmp.Or(systemSettings[runtime.GOOS], systemSettings["linux"])
	}
	defaults = getenv("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
	if defaults == "" {
		defaults = filepath.Join(filepath.Dir(system), "system-defaults.json")
	}
	if !settingsfile.RootsOwn(defaults) {
		defaults = ""
	}
	if !settingsfile.RootsOwn(system) {
		system = ""
	}
	return defaults, system
}
