package client

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// A World is what a CLI sees of its machine. Zero fields mean this process's own values; so does a nil *World, for
// all fields.
type World struct {
	// Environ is the environment as NAME=value; nil means this process's.
	Environ []string
	// Dir is the working folder, absolute.
	Dir string
	// Temp is the result of os.tmpdir() there.
	Temp string
	// PID is the CLI's own process.
	PID int
	// UID is the CLI's user, a pointer because 0 is a valid user; nil means this process's. Unused on Windows.
	UID *int
	// Process looks a process up; nil asks the system.
	Process func(pid int) (Process, bool)
	// Alive reports whether a process exists; nil asks the system.
	Alive func(pid int) bool
	// Container reports whether the CLI believes that it runs in a container; nil looks at the system.
	Container func() bool
	// Windows selects the CLI's Windows rules for PIDs; nil means the platform of this process.
	Windows *bool
}

// A Process is what the CLI learns about a process.
type Process struct {
	Parent  int
	Command string // the whole command line
}

// orHere fills the zero fields.
func (w *World) orHere() *World {
	var full World
	if w != nil {
		full = *w
	}
	if full.Temp == "" {
		full.Temp = tempDir(full.Environ, full.Dir)
	}
	if full.Dir == "" {
		full.Dir, _ = os.Getwd()
	}
	if full.Environ == nil {
		full.Environ = os.Environ()
	}
	if full.PID == 0 {
		full.PID = os.Getpid()
	}
	if full.UID == nil {
		uid := os.Getuid()
		full.UID = &uid
	}
	if full.Process == nil {
		full.Process = systemProcess
	}
	if full.Alive == nil {
		full.Alive = alive
	}
	if full.Container == nil {
		full.Container = discovery.InContainer
	}
	if full.Windows == nil {
		full.Windows = onWindows()
	}
	return &full
}

func systemProcess(pid int) (Process, bool) {
	info, ok := proc.Lookup(pid)
	if !ok {
		return Process{}, false
	}
	command, _ := proc.Command(pid)
	return Process{Parent: info.Parent, Command: command}, true
}

// tempDir returns os.tmpdir() for an environment; nil means this process's.
func tempDir(environ []string, dir string) string {
	if environ == nil {
		return discovery.TempDir()
	}
	temp := discovery.TempDirOf(func(name string) string {
		value, _ := lookup(environ, name)
		return value
	})
	if !filepath.IsAbs(temp) && dir != "" {
		temp = filepath.Join(dir, temp)
	}
	return temp
}

// lookup returns the value of a variable; ok is false when it is not set, because the CLI treats unset and empty
// differently.
func (w *World) lookup(name string) (value string, ok bool) {
	if w == nil || w.Environ == nil {
		return os.LookupEnv(name)
	}
	return lookup(w.Environ, name)
}

func lookup(environ []string, name string) (string, bool) {
	for _, e := range environ {
		if key, value, found := strings.Cut(e, "="); found && sameName(key, name) {
			return value, true
		}
	}
	return "", false
}

// Getenv returns the value of a variable, "" when it is not set.
func (w *World) Getenv(name string) string {
	value, _ := w.lookup(name)
	return value
}

// Folder returns the folder of the discovery files in that world; it need not exist.
func (w *World) Folder() string { return discovery.DirIn(w.orHere().Temp) }

// Host returns the address that the CLI dials for its editor (SPEC T-8).
func (w *World) Host() string {
	w = w.orHere()
	if w.Container() && w.Getenv("SSH_CONNECTION") == "" &&
		w.Getenv("VSCODE_REMOTE_CONTAINERS_SESSION") == "" && w.Getenv("REMOTE_CONTAINERS") == "" {
		return "host.docker.internal"
	}
	return "127.0.0.1"
}

// OfProcess returns the world of a running process of this user: its environment at start, its folder, its place in
// the process tree. What the system hides is taken from this process; lacks names each such part in a sentence. The
// error means that there is no such process.
func OfProcess(pid int) (w *World, lacks []string, err error) {
	if pid <= 0 || !proc.Alive(pid) {
		return nil, nil, fmt.Errorf("there is no process %d", pid)
	}
	env, envErr := proc.Environ(pid)
	dir, dirErr := proc.Dir(pid)
	w, lacks = ofProcess(pid, env, envErr, dir, dirErr)
	return w, lacks, nil
}

func ofProcess(pid int, env []string, envErr error, dir string, dirErr error) (w *World, lacks []string) {
	w = &World{PID: pid}
	if envErr == nil {
		w.Environ = env
		if w.Environ == nil {
			w.Environ = []string{}
		}
	} else {
		lacks = append(lacks, fmt.Sprintf("its environment is hidden (%v): this shell's is used instead", safefile.Cause(envErr)))
	}
	if dirErr == nil {
		w.Dir = dir
	} else {
		lacks = append(lacks, fmt.Sprintf("its folder is hidden (%v): this shell's is used instead", safefile.Cause(dirErr)))
	}
	return w.orHere(), lacks
}

// Complete returns a world with every zero field filled with this process's own.
func Complete(w *World) *World { return w.orHere() }
