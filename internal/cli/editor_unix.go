//go:build unix

package cli

// defaultEditor is what edits where no variable names an editor.
const defaultEditor = "vi"
