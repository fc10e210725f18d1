package sandbox

import (
	_ "embed" // the lists are data
	"path"
	"strings"
	"sync"
)

// The lists, each line with its source; see the head of each file.
var (
	//go:embed lists/workspace.txt
	workspaceList string
	//go:embed lists/startup.txt
	startupList string
	//go:embed lists/secrets.txt
	secretsList string
	//go:embed lists/variables.txt
	variablesList string
)

// lines reads a list without its sources.
func lines(list string) []string {
	var all []string
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " # ")
		if name != "" && !strings.HasPrefix(name, "# ") {
			all = append(all, name)
		}
	}
	return all
}

// protectedNames are what stays read-only in a writable workspace, at every
// depth: through them whoever writes them later runs commands as the user.
var protectedNames = sync.OnceValue(func() []string { return lines(workspaceList) })

// protectedHome are the like of a home folder: what a shell, a desktop, git or
// an editor runs at its next start, and programs that the user calls by name.
var protectedHome = sync.OnceValue(func() []string { return lines(startupList) })

// secretStores are masked at every level: what is in them opens other doors.
var secretStores = sync.OnceValue(func() []string { return lines(secretsList) })

// A variable names, in place of the usual path in a home folder, where
// something lies.
type variable struct {
	name  string // of the variable
	below string // a path below what it holds, or ""
	usual string
}

var variables = sync.OnceValue(func() []variable {
	var all []variable
	for _, line := range lines(variablesList) {
		left, usual, _ := strings.Cut(line, " = ")
		name, below, _ := strings.Cut(left, "/")
		all = append(all, variable{name, below, usual})
	}
	return all
})

// named is where, by the variables, the paths of a list lie; all are absolute.
// What a variable names is never a whole home folder or more.
func named(list []string, env func(string) string, home string) []string {
	if env == nil {
		return nil
	}
	var all []string
	for _, v := range variables() {
		for _, dir := range strings.Split(env(v.name), ":") {
			if !path.IsAbs(dir) {
				continue // not set; or "FILE" before a path
			}
			dir = path.Join(dir, v.below)
			for _, usual := range list {
				below, isBelow := strings.CutPrefix(usual, v.usual+"/")
				at := dir
				switch {
				case isBelow:
					at = path.Join(dir, below)
				case usual != v.usual && !strings.HasPrefix(v.usual, usual+"/"):
					continue
				}
				if at != "/" && (home == "" || at != home && !strings.HasPrefix(home, at+"/")) {
					all = append(all, at)
				}
			}
		}
	}
	return all
}
