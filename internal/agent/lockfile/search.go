package lockfile

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A World is the part of the machine that an agent looks at when it searches a companion.
type World struct {
	Home   string // as Kind.Home gives it
	Dir    string // its working folder, absolute
	Getenv func(string) string
	Alive  func(pid int) bool
	// Above are the ancestors of the agent's process, the nearest first.
	Above []int
}

// A Candidate is one lock file.
type Candidate struct {
	Path, Name string
	// Lock is nil when the file cannot be used; Problem then says why.
	Lock    *Lock
	Problem string
	// Dead says that the lock's process is gone. Fits says that the folder lies in one of the lock's folders, with links followed.
	Dead, Fits bool
	// Named says that the terminal's variable names its port.
	Named bool
	// Changed is when the file was written.
	Changed time.Time
}

// A Choice is how an agent chooses among lock files, told so that a person can follow it.
type Choice struct {
	Folder string
	// Candidates are in the order in which the agent prefers them.
	Candidates []Candidate
	// Taken is the index of the chosen one, -1 for none; Why names the rule.
	Taken int
	Why   string
	// Says is the agent's own message when it takes none, or when the chosen one does not answer.
	Says string
	// Trouble says why the agent takes none, or cannot use the chosen one; nil when all is well, and when there is simply none.
	Trouble *finding.Finding
}

// Look reads the lock files in a folder as an agent does. The terminal's variable may name a port: that lock comes first, then the
// others, newest first. It deletes nothing.
func (k Kind) Look(folder string, w World, variable string) (all []Candidate) {
	f, err := os.OpenFile(folder, os.O_RDONLY|safefile.NoWait, 0) // it may be a FIFO
	if err != nil {
		return nil
	}
	names, _ := f.Readdirnames(maxFiles)
	_ = f.Close()
	for _, name := range names {
		number, ok := strings.CutSuffix(name, ".lock")
		if ok && number != "" && (k.AnyName || strings.Trim(number, "0123456789") == "") {
			all = append(all, k.look(filepath.Join(folder, name), w, EnvPort(w.Getenv, variable)))
		}
	}
	slices.SortFunc(all, func(a, b Candidate) int {
		switch {
		case a.Named != b.Named && a.Named:
			return -1
		case a.Named != b.Named:
			return 1
		}
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Path, b.Path))
	})
	return all
}

// look reads one file as an agent does.
func (k Kind) look(path string, w World, env int) Candidate {
	c := Candidate{Path: path, Name: filepath.Base(path)}
	port, _ := strconv.Atoi(strings.TrimSuffix(c.Name, ".lock"))
	c.Named = env != 0 && port == env
	data, info, err := safefile.ReadRegular(path, maxSize)
	if err != nil {
		c.Problem = "it cannot be read: " + err.Error()
		return c
	}
	c.Changed = info.ModTime()
	l, err := k.Decode(data)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	if l.Port == 0 && l.Stdio == nil {
		l.Port = port
	}
	c.Lock, c.Dead = l, l.PID > 0 && !w.Alive(l.PID)
	here := paths.Real(w.Dir)
	c.Fits = slices.ContainsFunc(l.Roots, func(root string) bool {
		return filepath.IsAbs(root) && paths.Within(paths.Real(root), here)
	})
	return c
}

// EnvPort returns the port that a variable of a terminal names; 0 for none.
func EnvPort(getenv func(string) string, variable string) int {
	port, err := strconv.Atoi(getenv(variable))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}
