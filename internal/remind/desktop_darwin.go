package remind

import "fmt"

func desktop(text string) []string {
	return []string{"osascript", "-e", fmt.Sprintf("display notification %q with title %q", text, "pollux")}
}
