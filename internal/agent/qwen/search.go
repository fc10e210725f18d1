package qwen

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A World is what a Qwen Code sees of the machine when it looks for a companion.
type World struct {
	Home   string // as Home gives it
	Dir    string // its working folder, absolute
	Getenv func(string) string
	Alive  func(pid int) bool
}

// A Candidate is one lock file.
type Candidate struct {
	Name string
	// Lock is nil where the file is of no use; Problem then says why.
	Lock    *Lock
	Problem string
	// Dead says that Qwen Code deletes the file: its process is gone.
	Dead bool
	// Fits says that Dir lies in one of the lock's folders, links followed.
	Fits bool
	time time.Time
	env  bool // the port variable names it
}

// A Choice is how Qwen Code chooses among the lock files, told so that a person can follow it.
type Choice struct {
	Folder string
	// Candidates are in the order in which Qwen Code prefers them: the one that the port variable names, then the newest.
	Candidates []Candidate
	// Taken is the index of the one that it takes, -1 for none; Why says by which rule.
	Taken int
	Why   string
}

// maxLocks bounds what a crowded folder costs.
const maxLocks = 10_000

// Choose replays Qwen Code's own search in a world (SPEC ). It deletes nothing.
func Choose(w World) *Choice {
	c := &Choice{Folder: Dir(w.Home), Taken: -1}
	if f, err := os.Open(c.Folder); err == nil {
		names, _ := f.Readdirnames(maxLocks)
		_ = f.Close()
		for _, name := range names {
			if number, ok := strings.CutSuffix(name, ".lock"); ok && number != "" && strings.Trim(number, "0123456789") == "" {
				c.Candidates = append(c.Candidates, w.look(name))
			}
		}
	}
	slices.SortFunc(c.Candidates, func(a, b Candidate) int {
		switch {
		case a.env != b.env && a.env:
			return -1
		case a.env != b.env:
			return 1
		}
		return cmp.Or(b.time.Compare(a.time), strings.Compare(a.Name, b.Name))
	})
	for i, cand := range c.Candidates {
		if cand.Lock == nil || !cand.Fits || cand.Dead && !cand.env {
			continue
		}
		c.Taken, c.Why = i, "the newest whose folders hold this one"
		if cand.env {
			c.Why = PortVariable + " names its port"
		}
		break
	}
	return c
}

// look reads one file as Qwen Code does.
func (w World) look(name string) Candidate {
	port := w.Getenv(PortVariable)
	c := Candidate{Name: name, env: port != "" && name == port+".lock"}
	data, info, err := safefile.ReadRegular(filepath.Join(Dir(w.Home), name), maxLock)
	if err != nil {
		c.Problem = "it cannot be read: " + err.Error()
		return c
	}
	c.time = info.ModTime()
	l, err := Parse(data)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Lock, c.Dead = l, l.PID > 0 && !w.Alive(l.PID)
	here := paths.Real(w.Dir)
	c.Fits = slices.ContainsFunc(l.Roots, func(root string) bool {
		return filepath.IsAbs(root) && paths.Within(paths.Real(root), here)
	})
	return c
}

// EnvPort is the port that the variable of a terminal names, 0 for none. Qwen Code tries it after the locks, without a token.
func EnvPort(getenv func(string) string) int {
	port, err := strconv.Atoi(getenv(PortVariable))
	if err != nil || port < 1 || port > 65535 {
		return 0
	}
	return port
}
