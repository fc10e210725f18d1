//go:build unix

package cli

// defaultShell is what people have where nothing says otherwise.
const defaultShell = "sh"
