package client

import "strings"

// stdioNames are the variables that the CLI passes to a companion on standard input and output.
func stdioNames() []string {
	return []string{
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PROCESSOR_ARCHITECTURE",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PROGRAMFILES",
	}
}

// fileURLPath turns /C:/x into C:\x.
func fileURLPath(path string) string {
	return strings.TrimPrefix(path, `\`)
}
