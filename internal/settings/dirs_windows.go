package settings

import "path/filepath"

func stateHome() (string, error) {
	if dir, ok := absEnv("LOCALAPPDATA"); ok {
		return dir, nil
	}
	return home("AppData", "Local")
}

func runDirs(state string) []string { return []string{filepath.Join(state, "run")} }
