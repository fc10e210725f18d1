// Package qwen is how Qwen Code finds a companion: its lock files, the variable
// of a terminal, its settings, and the removal of locks that dead companions
// left. On the wire Qwen Code speaks as Gemini CLI does.
package qwen

import (
	"cmp"
	"path/filepath"
	"runtime"

	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// Label is the agent's name for people.
const Label = "Qwen Code"

// PortVariable names the companion's port in a terminal that belongs to it (SPEC Q-9).
const PortVariable = "QWEN_CODE_IDE_SERVER_PORT"

// homeVariable moves the folder that Qwen Code keeps its files in.
const homeVariable = "QWEN_HOME"

// Program reads and changes Qwen Code's settings files.
const Program settingsfile.Program = Label

// enabled is the key of IDE mode: with it Qwen Code looks for a companion. Unset means off (SPEC Q-9).
const enabled = "ide.enabled"

// Switches are the keys that pollux setup switches on. The second one keeps Qwen Code from offering a companion of its own.
func Switches() []string { return []string{enabled, "ide.hasSeenNudge"} }

// folder returns the folder of Qwen Code's files, absolute, in the environment that getenv reads. It need not exist.
func folder(getenv func(string) string) (string, error) {
	return settingsfile.Home(getenv, homeVariable, ".qwen")
}

// SettingsPath returns the user's own settings file, absolute. It need not exist.
func SettingsPath(getenv func(string) string) (string, error) {
	home, err := folder(getenv)
	return filepath.Join(home, "settings.json"), err
}

// systemSettings are the settings files for the whole machine.
var systemSettings = map[string]string{
	"darwin":  "/Library/Application Support/QwenCode/settings.json",
	"linux":   "/etc/qwen-code/settings.json",
	"windows": `C:\ProgramData\qwen-code\settings.json`,
}

// system returns the machine's own files: defaults, which every other file outranks, and system, which outranks every
// other. They need not exist. Unlike Gemini CLI, Qwen Code reads them whoever could have written them.
func system(getenv func(string) string) (defaults, system string) {
	if system = getenv("QWEN_CODE_SYSTEM_SETTINGS_PATH"); system == "" {
		system = cmp.Or(systemSettings[runtime.GOOS], systemSettings["linux"])
	}
	if defaults = getenv("QWEN_CODE_SYSTEM_DEFAULTS_PATH"); defaults == "" {
		defaults = filepath.Join(filepath.Dir(system), "system-defaults.json")
	}
	return defaults, system
}
