package workspace

import (
	_ "embed"
	"strings"
)

//go:embed secrets.txt
var secretList string

// secretPatterns returns the list of secrets as patterns.
func secretPatterns(fold bool) []pattern {
	var list strings.Builder
	for line := range strings.Lines(secretList) {
		pattern, _, _ := strings.Cut(line, " #")
		list.WriteString(strings.TrimSpace(pattern) + "\n")
	}
	return parsePatterns([]byte(list.String()), fold)
}
