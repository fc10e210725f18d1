// Package guard tells the processes of a person from processes that an agent
// started, so that no model decides about its own changes (SPEC §11.1).
package guard

import (
	"debug/buildinfo"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/proc"
)

// maxClimb bounds how many ancestors of a process are looked at. No person's terminal lies so deep: a process with more counts as below an
// agent, whose shell can start as many as it likes, one below the other.
const maxClimb = 256

// A Verdict says whether a process counts as a person's.
type Verdict int

const (
	// Person: nothing speaks against it.
	Person Verdict = iota
	// Below: it is an agent's own process, or one below it.
	Below
	// Marked: its environment, or the environment of an ancestor, carries an agent's mark; or it is branded.
	Marked
	// Unseen: the system does not say which process it is.
	Unseen
)

// Look judges a process, which may be this one. agents are the processes of known agents; other agents are recognised by their marks
// in the environment. A published CLI that has ever connected is recognised by its brand (proc.Brand). A program without a brand that has
// left its marks, its parents and its session behind is not recognised.
func Look(pid int, agents []proc.Info) Verdict {
	line, whole := lineage(pid)
	switch {
	case len(line) == 0:
		return Unseen
	case !whole:
		return Below
	}
	for _, p := range line {
		if slices.ContainsFunc(agents, func(a proc.Info) bool { return same(a, p) }) {
			return Below
		}
	}
	if proc.Branded(pid) {
		return Marked
	}
	for _, p := range line {
		if env, err := proc.Environ(p.PID); err == nil && Carries(env) {
			return Marked // a shell may remove a mark for its children, but still has it itself
		}
	}
	return Person
}

// Line returns a process, its ancestors, and the leaders of their sessions with their ancestors; none when nothing is known of it.
func Line(pid int) []proc.Info {
	line, _ := lineage(pid)
	return line
}

// Descends says whether one of the agents started the process, directly or not. It is false for an agent itself.
func Descends(pid int, agents []proc.Info) bool {
	isAgent := func(p proc.Info) bool {
		return slices.ContainsFunc(agents, func(a proc.Info) bool { return same(a, p) })
	}
	line, whole := lineage(pid)
	return len(line) > 0 && !isAgent(line[0]) && (!whole || slices.ContainsFunc(line[1:], isAgent))
}

// Same says whether each of these processes runs this very program: then pollux itself plays the agent.
func Same(agents []proc.Info) bool {
	return !slices.ContainsFunc(agents, func(p proc.Info) bool { return !ours(p.PID) })
}

// same says whether two descriptions are of one process. The number is not enough: the system uses it again.
func same(a, b proc.Info) bool {
	return a.PID == b.PID && (a.Start == 0 || b.Start == 0 || a.Start == b.Start)
}

// lineage returns the process, its ancestors, and the leaders of all their sessions with their ancestors. A child that was cut off from
// its parents still has its session, and so has one whose parent was cut off. The result is empty when nothing is known of the process;
// whole is false when there are more than are looked at.
func lineage(pid int) (line []proc.Info, whole bool) {
	line, whole = climb(pid)
	for n := 0; whole && n < len(line); n++ { // line grows
		leader, ok := proc.Leader(line[n].PID)
		if !ok {
			continue
		}
		for p := range upwards(leader) {
			if slices.ContainsFunc(line, func(known proc.Info) bool { return known.PID == p.PID }) {
				break // and so are the ancestors known
			}
			line = append(line, p)
		}
		whole = len(line) < maxClimb
	}
	return line, whole
}

// climb returns a process and its ancestors, as far as the system tells.
func climb(pid int) (line []proc.Info, whole bool) {
	line = slices.Collect(upwards(pid))
	return line, len(line) < maxClimb
}

// upwards is climb, one process at a time: each costs a question to the system.
func upwards(pid int) iter.Seq[proc.Info] {
	return func(yield func(proc.Info) bool) {
		last := proc.Info{}
		for n := 0; pid >= 1 && n < maxClimb; n++ {
			p, ok := proc.Lookup(pid)
			// A process that started later than its child is not its parent: it got the number of one that has ended.
			if !ok || n > 0 && p.Start != 0 && last.Start != 0 && p.Start > last.Start || !yield(p) {
				return
			}
			last, pid = p, p.Parent
		}
	}
}

// Behind returns the processes of the agent behind a connection, the agent last. The first is the connected process itself. When that is a
// go-between of pollux's (pollux relay, pollux mcp), its ancestors follow, up to the agent that started it. Below a published CLI, they
// follow up to that one: whatever stands between, the CLI has started it. It returns nil when the agent is not known: the go-between was cut
// off from it, and every process lies below the one that takes such children.
func Behind(pid int) []proc.Info {
	line, done := []proc.Info(nil), false
	found := 0 // how many processes of the line are the agent's in any case
	for p := range upwards(pid) {
		words := commandOf(p.PID)
		init := isInit(p.PID, words)
		switch {
		case isCLI(words):
			return append(line, p)
		case done:
		case goesBetween(p.PID, words), len(line) > 0 && isBatch(words):
			found = len(line) + 1
		case len(line) > 0 && isShell(words): // a person typed the go-between's command
			done = true
		case len(line) > 0 && init:
			return nil
		default:
			found, done = len(line)+1, true
		}
		line = append(line, p)
		if init && done {
			break
		}
	}
	if !done {
		return nil
	}
	return line[:found]
}

// isInit says whether a process takes in the children of processes that have ended.
func isInit(pid int, words []string) bool {
	return pid == 1 || len(words) > 0 && slices.Contains([]string{"systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit"}, base(words[0]))
}

// commandOf returns a process's command line in words.
func commandOf(pid int) []string {
	words, _ := proc.Words(pid)
	if len(words) == 1 { // a title, which holds them all
		return strings.Fields(words[0])
	}
	return words
}

// goesBetween says whether a process is a pollux command that an agent starts to talk to the companion.
func goesBetween(pid int, words []string) bool {
	if len(words) == 0 {
		return false
	}
	command, rest := commandIn(words[1:])
	switch command {
	case "relay", "mcp":
	case "extensions", "extension", "ext":
		if sub, _ := commandIn(rest); sub != "serve" {
			return false
		}
	default:
		return false
	}
	return strings.HasPrefix(base(words[0]), "pollux") || IsPollux(pid)
}

// commandIn returns pollux's command, its first argument that is no flag, and the arguments behind it.
func commandIn(args []string) (command string, rest []string) {
	for n := 0; n < len(args) && args[n] != "--"; n++ {
		switch {
		case args[n] == "--log-level":
			n++ // its value
		case !strings.HasPrefix(args[n], "-"):
			return args[n], args[n+1:]
		}
	}
	return "", nil
}

// isBatch says whether a command line is a shell that runs a command or a script, and no person types into.
func isBatch(words []string) bool {
	args, ok := shellArgs(words)
	for n := 0; ok && n < len(args); n++ {
		switch word := args[n]; {
		case slices.Contains(valued, word):
			n++
		case !strings.HasPrefix(word, "-"), !strings.HasPrefix(word, "--") && strings.Contains(word, "c"):
			return true // a script, or -c
		}
	}
	return false
}

// valued are the shells' flags that another word belongs to, and that run nothing by themselves.
var valued = []string{"--init-file", "--rcfile", "--init-command", "-o", "+o", "-O", "+O", "--config", "--env-config", "--plugin-config", "--rc", "-rc"}

func isShell(words []string) bool {
	_, ok := shellArgs(words)
	return ok
}

// shells are what programs are called that people type commands into.
var shells = []string{
	"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "busybox", "csh", "tcsh", "nu", "xonsh", "elvish", "cmd", "powershell", "pwsh",
}

// shellArgs returns the arguments of a shell.
func shellArgs(words []string) (args []string, ok bool) {
	if len(words) > 1 && strings.HasPrefix(base(words[0]), "python") && base(words[1]) == "xonsh" {
		return words[2:], true
	}
	if len(words) == 0 || !slices.Contains(shells, base(words[0])) {
		return nil, false
	}
	return words[1:], true
}

// base returns a program's name without its folder, the dash of a login shell, and the extension.
func base(program string) string {
	program = strings.TrimPrefix(program[strings.LastIndexAny(program, `/\`)+1:], "-")
	return strings.TrimSuffix(strings.ToLower(program), ".exe")
}

// IsPollux says whether a process runs some build of pollux, under any name, which may have been replaced or removed since.
func IsPollux(pid int) bool {
	program, known := proc.Program(pid)
	if !known {
		return false
	}
	info, err := buildinfo.ReadFile(program)
	self, ok := debug.ReadBuildInfo()
	return err == nil && ok && info.Main.Path == self.Main.Path
}

// ours says whether a process runs this very program, under any name.
func ours(pid int) bool {
	self, err := os.Executable()
	theirs, known := proc.Program(pid)
	if err != nil || !known {
		return false
	}
	mine, err := os.Stat(self)
	if err != nil {
		return false
	}
	other, err := os.Stat(theirs)
	return err == nil && os.SameFile(mine, other)
}
