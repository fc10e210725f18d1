package reach

import "os"

// opener is the command that opens a file in the user's browser; ok is false
// without a display to open it on.
func opener() (command []string, ok bool) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil, false
	}
	return []string{"xdg-open"}, true
}
