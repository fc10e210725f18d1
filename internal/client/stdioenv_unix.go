//go:build unix

package client

// stdioNames are the variables that the CLI passes to a companion on standard input and output.
func stdioNames() []string { return []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"} }

func fileURLPath(path string) string { return path }
