//go:build unix && !darwin

package client

// foldPath is how the CLI compares folders.
func foldPath(path string) string { return path }
