package claude

import "path/filepath"

// managed returns the folders of the settings that an administrator makes for everybody.
func managed(getenv func(string) string) (dirs []string) {
	for _, name := range []string{"ProgramFiles", "ProgramData"} {
		if dir := getenv(name); filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Join(dir, "ClaudeCode"))
		}
	}
	return dirs
}

// openCodeManaged returns the same folder for opencode.
func openCodeManaged(getenv func(string) string) []string {
	if dir := getenv("ProgramData"); filepath.IsAbs(dir) {
		return []string{filepath.Join(dir, "opencode")}
	}
	return nil
}
