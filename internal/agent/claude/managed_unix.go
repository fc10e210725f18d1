//go:build unix

package claude

// managed returns the folders of the settings that an administrator makes for everybody: Linux's and macOS'.
func managed(func(string) string) []string {
	return []string{"/etc/claude-code", "/Library/Application Support/ClaudeCode"}
}

// openCodeManaged returns the same folders for opencode.
func openCodeManaged(func(string) string) []string {
	return []string{"/etc/opencode", "/Library/Application Support/opencode"}
}
