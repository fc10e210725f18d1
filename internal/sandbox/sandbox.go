// Package sandbox runs one command with exactly the rights that a policy
// names, enforced by the operating system, or refuses to run it at all.
//
// On Linux the program starts itself again inside namespaces of its own,
// builds a root folder that holds nothing but what the policy allows, gives up
// every privilege, and only then starts the command; see docs/sandbox.md for
// the layers and for what they do not stop. On macOS the policy becomes a
// Seatbelt profile. On Windows every policy is refused.
package sandbox

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
)

// Policy is what a command may read, write and contact; the zero value allows
// nothing. It is the very type that a manifest declares and that a user agrees
// to, so that the two cannot come to mean different things (SPEC E-2, S-1).
type Policy = permission.Permissions

// Limits bound a run. A field that is 0 stands for its default; negative
// values are refused.
type Limits struct {
	// Time is how long the command may take by the clock; 60 s by default.
	Time time.Duration
	// CPU is how much processor time each of its processes may use, rounded up
	// to seconds; by default as much as Time.
	CPU time.Duration
	// Memory is how much all its processes together may hold, in bytes; 1 GiB.
	Memory int64
	// Scratch is how much its private temporary folders hold, in bytes; 256 MiB.
	Scratch int64
	// FileSize is the size of the largest file that it may write, in bytes; 1 GiB.
	FileSize int64
	// Disk is how much it may write to disks in all, in bytes, counted by what
	// its processes and their children made the kernel write; 8 GiB. Linux only.
	Disk int64
	// Output is how much it may write to its standard output and standard
	// error together, in bytes; 10 MiB.
	Output int64
	// Traffic is how much it may exchange with its hosts, either way, in bytes; 1 GiB.
	Traffic int64
	// Processes is how many processes and threads it may have at once; 512,
	// and at least 301, which is the least that Linux lets itself be told.
	Processes int
	// Files is how many files each of its processes may hold open; 1024.
	Files int
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// filled returns l with the defaults in place of zeros.
func (l Limits) filled() Limits {
	l.Time = or(l.Time, time.Minute)
	l.CPU = or(l.CPU, l.Time)
	l.Memory = or(l.Memory, gib)
	l.Scratch = or(l.Scratch, 256*mib)
	l.FileSize = or(l.FileSize, gib)
	l.Disk = or(l.Disk, 8*gib)
	l.Output = or(l.Output, 10*mib)
	l.Traffic = or(l.Traffic, gib)
	l.Processes = max(or(l.Processes, 512), 301)
	l.Files = or(l.Files, 1024)
	return l
}

func or[T comparable](value, instead T) T {
	var zero T
	if value == zero {
		return instead
	}
	return value
}

// A Command is what is to be run. The zero value of every field but Args is useful.
type Command struct {
	// Args is the program and its arguments. A program without a slash is
	// looked up in the PATH of this process.
	Args []string
	// Dir is the working folder, absolute; Workspace where it is empty or may
	// not be read, and a private temporary folder where that is so too.
	Dir string
	// Workspace is the folder that the level "workspace" means, absolute.
	Workspace string
	// Env is added to the few variables that every command gets, each as
	// NAME=VALUE; nothing else of this process's environment is passed on.
	Env []string
	// ReadOnly lists more files and folders, absolute, that the command may
	// read at every level.
	ReadOnly []string
	// Copies are folders that exist inside alone: the command sees what was
	// checked, whatever happens to the originals meanwhile.
	Copies []Copy
	// Stdin is read to its end, or as far as the command reads; nil is empty.
	Stdin io.Reader
	// Stdout and Stderr are written to from one goroutine each; nil collects
	// the output in the Result.
	Stdout, Stderr io.Writer
	Limits         Limits
}

// A Copy is a folder whose files are given, not bound; it is read-only inside.
type Copy struct {
	Dir   string // absolute; it hides what the host has there
	Files []CopyFile
}

// maxCopies bounds what all copies of a command hold together, in bytes.
const maxCopies = 16 * mib

// A CopyFile is one file of a Copy.
type CopyFile struct {
	Name       string // slash-separated, below the Copy's Dir
	Data       []byte
	Executable bool
}

// Assurance is how much of a policy's promise is kept by what a machine has.
type Assurance string

// The assurances, from most to least.
const (
	Full    Assurance = "full"    // every layer
	Reduced Assurance = "reduced" // Landlock and seccomp without namespaces; a few policies only
)

// Options of New; nil is valid.
type Options struct {
	// Home is the user's home folder; by default what os.UserHomeDir says.
	Home  string
	Cache string
	// Records is a private folder in which runs are noted that may write, so
	// that a later one can finish the work of one that was killed; "" for none.
	Records string
	// Masked lists more files and folders that no policy lets be read.
	Masked []string
	// Allow Reduced where Full is not to be had, for policies whose every
	// promise it keeps.
	AllowReduced bool
	// Pool, where it is not nil, has processes ready for runs.
	Pool *Pool
	// Event is told of each refused contact as it happens; it may be called
	// from several goroutines at once.
	Event func(Denial)
	// Dial makes the connections to allowed hosts, in place of pollux's own
	// dialler, and answers for the addresses behind them. For tests.
	Dial func(ctx context.Context, network, hostPort string) (net.Conn, error)
	// Log gets what is of use to somebody who looks for a fault; never
	// arguments, output or contents.
	Log *slog.Logger
}

// A Sandbox runs commands. It has no state of its own; its methods may be
// used from several goroutines.
type Sandbox struct {
	o    Options
	home string // absolute, canonical; "" when there is none
	self string // this program's own file
	tree tree   // what plans are made for
	env  func(string) string
	// groups names the control group in which runs make theirs, "" for none.
	// For tests; nil looks for one.
	groups func() string
}

// New makes a Sandbox.
func New(o *Options) *Sandbox {
	s := &Sandbox{self: self(), env: os.Getenv}
	if o != nil {
		s.o = *o
	}
	home := s.o.Home
	if home == "" {
		home, _ = os.UserHomeDir() // a user without one has nothing to protect there
	}
	if filepath.IsAbs(home) {
		s.home = paths.Real(home)
	}
	if s.o.Log == nil {
		s.o.Log = slog.New(slog.DiscardHandler)
	}
	return s
}

// A Result is how a command ended that was run.
type Result struct {
	// Code is the exit code: the command's own, 128+n when signal n ended it,
	// 137 when a limit did.
	Code int
	// Signal is the number of the signal that ended it, 0 for none.
	Signal int
	// Limit is the limit that ended it, nil for none.
	Limit *LimitError
	// Stdout and Stderr are what the command wrote, where it was not given
	// writers of its own; cut at Limits.Output.
	Stdout, Stderr []byte
	// Denials are the contacts that were refused, each once with a count, at
	// most maxDenials.
	Denials []Denial
	// Quarantined lists what the command made under protected names and was
	// renamed after it, and what of them was put back.
	Quarantined []Quarantine
	// Memory is the most that one process held, in bytes.
	Memory int64
	// Elapsed is the time from the command's start to its end.
	Elapsed time.Duration
	// Assurance is what stood behind the policy.
	Assurance Assurance
}

// A Denial is a contact that the policy does not allow.
type Denial struct {
	Host  string `json:"host"` // as the command named it, printable
	Port  int    `json:"port,omitempty"`
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// A Quarantine is what a command made under a protected name.
type Quarantine struct {
	Path string `json:"path"`
	// Moved is where it lies now; "" when it could not be moved.
	Moved string `json:"moved,omitempty"`
	Err   string `json:"error,omitempty"`
	// Earlier says that another command made it, whose pollux was killed.
	Earlier bool `json:"earlier,omitempty"`
}

// maxDenials bounds the list of a run: a tool can ask for any number of names.
const maxDenials = 100

// Run runs c under p and waits for it. A command that fails is not an error,
// and one that a limit ended has Result.Limit; an error means that it was not
// run, or that ctx ended. When Run returns, nothing of the command is left.
// With an error the result may be nil; if not, its Quarantined counts.
func (s *Sandbox) Run(ctx context.Context, p Policy, c Command) (*Result, error) {
	c.Limits = c.Limits.filled()
	if err := c.check(); err != nil {
		return nil, err
	}
	return s.run(ctx, p, c)
}

// check finds what no platform could run.
func (c Command) check() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return policyError("no command to run")
	}
	for _, path := range append([]string{or(c.Dir, "/"), or(c.Workspace, "/")}, c.ReadOnly...) {
		if !filepath.IsAbs(path) {
			return policyError("the path %q is not absolute", path)
		}
	}
	if l := c.Limits; min(int64(l.Time), int64(l.CPU), l.Memory, l.Scratch, l.FileSize, l.Disk, l.Output, l.Traffic, int64(l.Processes), int64(l.Files)) < 0 {
		return policyError("a limit is negative")
	}
	var size int
	for _, copied := range c.Copies {
		for _, f := range copied.Files {
			size += len(f.Data)
			if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
				return policyError("the file %q does not lie inside its folder", f.Name)
			}
		}
	}
	if size > maxCopies {
		return policyError("the files of the command have %d bytes, %d are allowed", size, maxCopies)
	}
	return nil
}
