package sandbox

import (
	_ "embed" // the lists are data
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/paths"
)

// The lists. Each line names its source; see the head of each file.
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

// lines returns the lines of a list, without their sources.
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

// protectedNames stay read-only in a writable workspace, at every depth: with them a command could make the user run
// its code later.
var protectedNames = sync.OnceValue(func() []string { return lines(workspaceList) })

// protectedHome are the same for a home folder: what a shell, desktop, git or editor runs at its next start, and the
// folders of the user's programs.
var protectedHome = sync.OnceValue(func() []string { return lines(startupList) })

// secretStores are hidden at every level: their contents open other doors.
var secretStores = sync.OnceValue(func() []string { return lines(secretsList) })

// A variable is an environment variable that replaces a usual path in a home folder.
type variable struct {
	name  string // of the variable
	below string // a path below its value, or ""
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

// named returns where the paths of a list lie according to the environment variables; all are absolute. It never
// returns a path that is or contains the home folder.
func named(list []string, env func(string) string, home string) []string {
	if env == nil {
		return nil
	}
	var all []string
	for _, v := range variables() {
		for _, dir := range strings.Split(env(v.name), ":") {
			if !path.IsAbs(dir) {
				continue // not set, or "FILE" before a path
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

// systemSecrets are the secrets outside home folders.
func systemSecrets() []string {
	return []string{"/run/user", "/run/secrets", "/run/credentials", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
		"/etc/ssh", "/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/krb5.keytab", "/var/lib/sss/secrets", "/etc/ssl/private", "/etc/pki/tls/private"}
}

// InSecretStore says whether a path lies where no level shows anything. It goes by the names alone, so that the answer
// says nothing about what exists.
func (s *Sandbox) InSecretStore(name string) bool {
	all := slices.Concat(s.o.Masked, systemSecrets(), named(secretStores(), s.env, s.home))
	homes := []string{s.home, "/root"}
	if rest, below := strings.CutPrefix(name, "/home/"); below { // also /home/GROUP/USER
		parts := strings.SplitN(rest, "/", 3)
		homes = append(homes, "/home/"+parts[0])
		if len(parts) > 2 && "/home/"+parts[0] != s.home {
			homes = append(homes, "/home/"+parts[0]+"/"+parts[1])
		}
	}
	for _, home := range homes {
		for _, store := range secretStores() {
			all = append(all, path.Join(home, store))
		}
	}
	return slices.ContainsFunc(all, func(store string) bool { return paths.Within(store, name) })
}
