package sandbox

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/permission"
)

// A seatbelt is the input of a macOS profile. Paths are absolute, canonical and slash-separated, on every system.
type seatbelt struct {
	read, write []string // each with everything below
	files       []string // single files to read
	secrets     []string // neither read nor written, with everything below
	given       []string // readable folders inside secrets, with everything below
	protected   []string // not written, moved or removed, with everything below
	nested      string   // below it, protected names are not written at any depth; "" for none
	proxy       int      // the one local port that may be contacted; 0 for none
}

// maxLiteral is the longest string that Seatbelt accepts, in bytes.
const maxLiteral = 1024

// systemReads are what programs need to start on macOS.
func systemReads() []string {
	return []string{"/usr", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Preferences/Logging",
		"/opt/homebrew", "/private/etc/ssl", "/private/var/db/dyld", "/private/var/db/timezone", "/Applications/Xcode.app/Contents/Developer"}
}

func systemFiles() []string {
	return []string{"/private/etc/localtime", "/private/etc/passwd", "/private/etc/group", "/private/etc/hosts", "/private/etc/protocols", "/private/etc/services", "/private/etc/shells",
		"/dev/random", "/dev/urandom", "/dev/zero", "/dev/null", "/dev/dtracehelper", "/dev/autofs_nowait"}
}

// profile returns the rules, and the values of their parameters as NAME=VALUE. Paths appear only as parameters, never
// in the text, where a quote could end a string. Later rules win, so denials come last.
func (b seatbelt) profile() (text string, parameters []string, err error) {
	var w strings.Builder
	param := func(value string) string {
		name := "P" + strconv.Itoa(len(parameters))
		parameters = append(parameters, name+"="+value)
		return `(param "` + name + `")`
	}
	rule := func(action, kind string, paths []string) {
		for _, p := range paths {
			fmt.Fprintf(&w, "(%s (%s %s))\n", action, kind, param(p))
		}
	}
	for _, p := range slices.Concat(b.read, b.write, b.files, b.secrets, b.given, b.protected, []string{cmp.Or(b.nested, "/")}) {
		if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) || len(p) > maxLiteral {
			return "", nil, policyError("the path %q cannot stand in a profile", p)
		}
	}
	w.WriteString(`(version 1)
(deny default)
(import "system.sb")
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.logd"))
(allow file-read-metadata (literal "/") (literal "/tmp") (literal "/var") (literal "/etc"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* file-write-data (subpath "/dev/fd"))
`)
	rule("allow file-read*", "subpath", slices.Concat(systemReads(), b.read))
	rule("allow file-read*", "literal", slices.Concat(systemFiles(), b.files))
	rule("allow file-read* file-write*", "subpath", b.write)
	rule("allow file-read-metadata", "literal", ancestors(slices.Concat(systemReads(), systemFiles(), b.read, b.write, b.files)))
	rule("deny file-read* file-write*", "subpath", b.secrets)
	rule("allow file-read*", "subpath", b.given)
	rule("deny file-write*", "subpath", b.protected)
	if b.nested != "" {
		// Packages contain editor settings, so node_modules is exempt. A repository in it is not: git would use it.
		fmt.Fprintf(&w, "(deny file-write* (require-all (subpath %s) (regex #\"/%s(/|$)\")))\n", param(b.nested), anyCase(".git"))
		var names []string
		for _, name := range protectedNames() {
			names = append(names, anyCase(name))
		}
		fmt.Fprintf(&w, "(deny file-write* (require-all (subpath %s) (regex #\"/(%s)(/|$)\") (require-not (regex #\"/node_modules/\"))))\n", param(b.nested), strings.Join(names, "|"))
	}
	// Moving a parent folder would carry the denied path out of reach of its rule.
	rule("deny file-write-unlink", "literal", ancestors(slices.Concat(b.secrets, b.protected)))
	w.WriteString("(deny file-write-setugid)\n")
	if b.proxy != 0 {
		fmt.Fprintf(&w, "(allow network-outbound (remote ip \"localhost:%d\"))\n", b.proxy)
		w.WriteString("(allow mach-lookup (global-name \"com.apple.trustd.agent\"))\n")
	}
	return w.String(), parameters, nil
}

// anyCase returns a regular expression for a protected name in any case: the usual file systems of macOS take .GIT
// for .git.
func anyCase(name string) string {
	var w strings.Builder
	for _, r := range name {
		if upper := strings.ToUpper(string(r)); upper != string(r) {
			w.WriteString("[" + string(r) + upper + "]")
		} else {
			w.WriteString("[" + string(r) + "]") // so that a dot is only a dot
		}
	}
	return w.String()
}

// honoursProxy says whether a version of Node uses the proxy that its environment names. Older versions connect
// directly, which Seatbelt forbids.
func honoursProxy(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil {
		return false
	}
	return major > 22 && major != 23 || major == 22 && minor >= 21
}

// ancestors lists the folders above paths, each once, without the root.
func ancestors(paths []string) []string {
	var all []string
	for _, p := range paths {
		for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// seatbeltFor returns the profile input for a policy. Levels mean the same as on Linux.
func seatbeltFor(p Policy, home, workspace, private string, readOnly, masked []string) seatbelt {
	b := seatbelt{read: slices.Clone(readOnly), write: []string{private}}
	add := func(level permission.Access, dir string) {
		switch {
		case dir == "":
		case p.Write >= level:
			b.write = append(b.write, dir)
		case p.EffectiveRead() >= level:
			b.read = append(b.read, dir)
		}
	}
	add(permission.Workspace, workspace)
	add(permission.Home, home)
	add(permission.Full, "/")
	if p.Write >= permission.Workspace && workspace != "" {
		for _, name := range protectedNames() {
			b.protected = append(b.protected, path.Join(workspace, name))
		}
		b.nested = workspace
	}
	if p.Write >= permission.Home && home != "" {
		for _, name := range protectedHome() {
			b.protected = append(b.protected, path.Join(home, name))
		}
	}
	if p.Write == permission.Full {
		b.protected = append(b.protected, "/System", "/private/var/run", "/Library/LaunchAgents", "/Library/LaunchDaemons")
	}
	b.secrets = slices.Clone(masked)
	if home != "" {
		for _, name := range secretStores() {
			b.secrets = append(b.secrets, path.Join(home, name))
		}
	}
	for _, dir := range readOnly {
		if slices.ContainsFunc(b.secrets, func(secret string) bool { return strings.HasPrefix(dir, secret+"/") }) {
			b.given = append(b.given, dir)
		}
	}
	if p.EffectiveRead() == permission.Full {
		b.secrets = append(b.secrets, "/Library/Keychains", "/private/var/db/dslocal", "/private/etc/master.passwd", "/private/etc/sudoers", "/private/etc/ssh")
	}
	return b
}
