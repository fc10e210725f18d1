package escapes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/permission"
)

const mib = 1 << 20

// plays are the escapes that take more than one process.
func plays() []Escape {
	var all []Escape
	add := func(kind Kind, name string, p Play) {
		all = append(all, Escape{Name: name, Kind: kind, Outside: forNobody, Play: &p})
	}
	shell := func(script string) []string { return []string{"sh", "-c", script} }
	writes := permission.Permissions{Write: permission.Workspace}
	reads := permission.Permissions{Read: permission.Workspace}

	add(limits, "run for ever", Play{Args: shell("sleep 1000"), Seconds: 1, Limit: "time"})
	add(limits, "leave a process behind that runs for ever", Play{Args: shell("setsid sleep 1000 & sleep 1000"), Seconds: 1, Limit: "time"})
	add(limits, "write without end", Play{Args: shell("yes"), Output: mib, Limit: "output"})
	add(limits, "hold more memory", Play{Args: shell("x=$(yes | head -c 300000000); sleep 1000; :"), Memory: 64 * mib, Seconds: 30, Limit: "memory"})
	add(limits, "hold more memory with many processes", Play{Args: shell("for i in 1 2 3 4 5 6 7 8; do (x=$(yes | head -c 30000000); sleep 1000; :) & done; wait"), Memory: 128 * mib, Seconds: 30, Limit: "memory"})
	add(limits, "fill the disk with many files", Play{Policy: writes, Args: shell(`cd "$WORKSPACE" && i=0; while :; do head -c 4000000 /dev/zero >f$i; i=$((i+1)); done`), Disk: 32 * mib, Seconds: 30, Limit: "disk"})
	add(limits, "fill the disk by one file, again and again", Play{Policy: writes, Args: shell(`cd "$WORKSPACE" && while :; do head -c 4000000 /dev/zero >f; sync f; done`), Disk: 32 * mib, Seconds: 30, Limit: "disk"})

	add(programs, "be taken for Python", Play{Policy: reads, Args: []string{"$WORKSPACE/bin/python3"}, Held: absent("made-outside")})
	add(programs, "be taken for Node", Play{Policy: reads, Args: []string{"$WORKSPACE/bin/node"}, Held: absent("made-outside")})
	add(programs, "be the interpreter of a script", Play{Policy: reads, Args: []string{"$WORKSPACE/bin/script"}, Held: absent("made-outside")})
	add(programs, "be the git in PATH", Play{Policy: writes, Args: shell(`cd "$WORKSPACE" && PATH=$PWD/bin:$PATH git status; :`), Held: absent("made-outside")})

	for name, script := range map[string]string{
		"make a hook of git's":               `mkdir -p .git/hooks && echo x >.git/hooks/pre-commit; mkdir -p sub/.git/hooks && echo x >sub/.git/hooks/pre-commit`,
		"make a repository by its shape":     `mkdir -p bare/objects bare/refs bare/hooks && echo 'ref: refs/heads/x' >bare/HEAD; echo x >bare/hooks/pre-commit`,
		"make tasks of an editor's":          `mkdir -p .vscode .idea .zed && echo x >.vscode/tasks.json`,
		"make what a shell reads":            `echo x >.envrc; echo x >.ENV; mkdir -p a/b && echo x >a/b/.envrc`,
		"make orders for an agent":           `echo x >AGENTS.md; echo x >GEMINI.md; mkdir -p .gemini && echo x >.gemini/settings.json`,
		"make them in an unreadable folder":  `mkdir -p closed/.git/hooks && echo x >closed/.git/hooks/pre-commit; chmod 311 closed`,
		"make them beside many other files":  `mkdir many && cd many && i=0; while [ $i -lt 3000 ]; do : >$i; i=$((i+1)); done; mkdir -p .git/hooks && echo x >.git/hooks/pre-commit`,
		"make them behind a link, and later": `mkdir x && ln -s x y; (sleep 0.2; mkdir -p y/.vscode && echo x >y/.vscode/tasks.json) & sleep 0.1`,
	} {
		add(later, name, Play{Policy: writes, Args: shell(`cd "$WORKSPACE" || exit; ` + script), Held: nothingRunsLater})
	}
	return all
}

// nothingRunsLater looks for protected names that have contents.
func nothingRunsLater(p *Prey) error {
	var found []string
	err := filepath.WalkDir(p.Workspace, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := strings.ToLower(d.Name()); {
		case strings.Contains(name, ".pollux-quarantine-"):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case name == "pre-commit": // in a repository
			dir := filepath.Dir(filepath.Dir(path))
			if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err == nil || strings.EqualFold(filepath.Base(dir), ".git") {
				found = append(found, path)
			}
		case name == "tasks.json", name == ".envrc", name == ".env", name == "agents.md", name == "gemini.md", name == "settings.json":
			found = append(found, path)
		}
		return nil
	})
	if len(found) > 0 {
		return errors.New("left: " + strings.Join(found, ", "))
	}
	return err
}
