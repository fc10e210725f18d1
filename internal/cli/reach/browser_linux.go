package reach

import "os"

// opener returns the command that opens a file in the user's browser; ok is false without a display.
func opener() (command []string, ok bool) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil, false
	}
	return []string{"xdg-open"}, true
}
