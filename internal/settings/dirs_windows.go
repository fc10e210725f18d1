package settings

// usualState is the folder for state, below a home folder.
const usualState = `AppData\Local`

func stateHome() (string, error) {
	if dir, ok := absEnv("LOCALAPPDATA"); ok {
		return dir, nil
	}
	return home(usualState)
}

func runDirs(state string) []string { return []string{pointers(state)} }
