package store

import "os"

// systemSettings is where the machine's administrator sets the CLI's rules.
func systemSettings() string {
	if p := os.Getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH"); p != "" {
		return p
	}
	return "/etc/gemini-cli/settings.json"
}
