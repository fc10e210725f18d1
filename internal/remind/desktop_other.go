//go:build !darwin

package remind

func desktop(text string) []string {
	return []string{"notify-send", "--app-name=pollux", "pollux", text}
}
