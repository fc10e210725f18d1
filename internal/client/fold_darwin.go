package client

import "strings"

// foldPath is how the CLI compares folders, where capitals do not count.
func foldPath(path string) string { return strings.ToLower(path) }
