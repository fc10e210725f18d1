package sandbox

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/paths"

	"github.com/pollux-companion/pollux/internal/sandbox/inside"
)

// reduce turns a setup into one without namespaces. Folders on disk replace private memory, nothing is mounted, and
// Landlock allows what remains of the mounts. It returns the private folder.
func reduce(set *inside.Setup) (string, error) {
	private, err := os.MkdirTemp("", "pollux-sandbox-")
	if err != nil {
		return "", err
	}
	private = paths.Real(private)
	set.Reduced, set.Private = true, private
	var kept []inside.Mount
	for _, m := range set.Mounts {
		if (m.Show == inside.ShowNothing || m.Show == inside.ShowVoid) && unix.Access(m.Target, unix.R_OK) == nil {
			_ = os.Remove(private) // it is empty
			return "", fmt.Errorf("it cannot hide %q, which the policy would show", m.Target)
		}
		if m.Show == inside.ShowBind && m.Source == m.Target || m.Show == inside.ShowDevice {
			kept = append(kept, m)
		}
	}
	set.Mounts = append(kept, inside.Mount{Show: inside.ShowBind, Source: private, Target: private, Write: true})
	for _, path := range []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/lib", "/lib64", "/bin"} {
		if real := paths.Real(path); exists(real) {
			set.Mounts = append(set.Mounts, inside.Mount{Show: inside.ShowBind, Source: real, Target: real})
		}
	}
	for i, v := range set.Env {
		name, _, _ := strings.Cut(v, "=")
		if name == "HOME" || name == "TMPDIR" {
			set.Env[i] = name + "=" + private
		}
	}
	if set.Dir == "/tmp" {
		set.Dir = private
	}
	return private, nil
}
