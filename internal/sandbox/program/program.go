// Package program finds what a command would run, and what must be visible for it.
//
// It runs nothing: whoever can write to the workspace could have put it there. Links, folders and configuration files
// say where a program lives, and they can never show more than an installation.
package program

// A Search says what to find. Its paths are absolute.
type Search struct {
	Name    string   // as the user would type it
	Dir     string   // where it would be typed; the files of this folder choose versions
	Guarded []string // folders that must never be shown because of a program
	Shown   []string // folders that are shown anyway, canonical
}

// A Program is a command that was found, and what must be visible for it.
type Program struct {
	Path     string            // absolute; links in it are kept, because some programs look at them
	ReadOnly []string          // the files and folders that it needs, canonical
	Links    map[string]string // symbolic links on the way to it: path → target
	PathDirs []string          // folders that must be in PATH
}
