// Package sandbox runs one command with exactly the permissions of a policy, enforced by the operating system, or
// refuses to run it.
//
// On Linux the program starts itself again in its own namespaces, builds a root folder that holds only what the
// policy allows, gives up every privilege, and then starts the command. docs/sandbox.md describes the layers and what
// they do not stop. On macOS the policy becomes a Seatbelt profile. On Windows every policy is refused.
package sandbox

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox/gate"
)

// Policy is what a command may read, write and contact; the zero value allows nothing. It is the type that a manifest
// declares and a user agrees to, so the two cannot differ in meaning (SPEC E-2, S-1).
type Policy = permission.Permissions

// Limits bound a run. A field that is 0 means its default; negative values are refused.
type Limits struct {
	// Time is how long the command may take by the clock; default 60 s.
	Time time.Duration
	// CPU is how much processor time each of its processes may use, rounded up to seconds; default Time.
	CPU time.Duration
	// Memory is how much all its processes together may hold, in bytes; default 1 GiB.
	Memory int64
	// Scratch is how much its private temporary folders may hold, in bytes; default 256 MiB.
	Scratch int64
	// FileSize is the size of the largest file that it may write, in bytes; default 1 GiB.
	FileSize int64
	// Disk is how much it may write to disks in all, in bytes, as the kernel counts it for its processes and their
	// children; default 8 GiB. Linux only.
	Disk int64
	// Output is how much it may write to standard output and standard error together, in bytes; default 10 MiB.
	Output int64
	// Traffic is how much it may exchange with its hosts, both directions added, in bytes; default 1 GiB.
	Traffic int64
	// Processes is how many processes and threads it may have at once; default 512, minimum 301 (a kernel limit).
	Processes int
	// Files is how many files each of its processes may hold open; default 1024.
	Files int
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// filled returns l with defaults in place of zeros.
func (l Limits) filled() Limits {
	l.Time = cmp.Or(l.Time, time.Minute)
	l.CPU = cmp.Or(l.CPU, l.Time)
	l.Memory = cmp.Or(l.Memory, gib)
	l.Scratch = cmp.Or(l.Scratch, 256*mib)
	l.FileSize = cmp.Or(l.FileSize, gib)
	l.Disk = cmp.Or(l.Disk, 8*gib)
	l.Output = cmp.Or(l.Output, 10*mib)
	l.Traffic = cmp.Or(l.Traffic, gib)
	l.Processes = max(cmp.Or(l.Processes, 512), 301)
	l.Files = cmp.Or(l.Files, 1024)
	return l
}

// A Command is what to run. Only Args is required.
type Command struct {
	// Args is the program and its arguments. A program without a slash is looked up in the PATH of this process.
	Args []string
	// Dir is the working folder, absolute. If it is empty or not readable inside, Workspace is used, then a private
	// temporary folder.
	Dir string
	// Workspace is the folder that the level "workspace" means, absolute.
	Workspace string
	// Env is added to the few variables that every command gets, as NAME=VALUE. Nothing else of this process's
	// environment is passed on.
	Env []string
	// ReadOnly lists more files and folders, absolute, that the command may read at every level.
	ReadOnly []string
	// Copies are folders that exist only inside. The command sees the checked contents, even if the originals change.
	Copies []Copy
	// Stdin is read as far as the command reads; nil is empty.
	Stdin io.Reader
	// Stdout and Stderr are written to from one goroutine each; nil collects the output in the Result.
	Stdout, Stderr io.Writer
	Limits         Limits
}

// A Copy is a folder whose contents are given, not taken from the host; it is read-only inside.
type Copy struct {
	Dir   string // absolute; it hides the host's folder at this path
	Files []CopyFile
}

// maxCopies bounds the size of all copies of a command together, in bytes.
const maxCopies = 16 * mib

// A CopyFile is one file of a Copy.
type CopyFile struct {
	Name       string // slash-separated, below the Copy's Dir
	Data       []byte
	Executable bool
}

// Assurance is how many of the sandbox's layers protect a run.
type Assurance string

// The assurances, from most to least.
const (
	Full    Assurance = "full"    // every layer
	Reduced Assurance = "reduced" // Landlock and seccomp without namespaces; only for a few policies
)

// Options of New; nil is valid.
type Options struct {
	// Home is the user's home folder; default os.UserHomeDir.
	Home  string
	Cache string
	// Records is a private folder with a record of each run that may write. If pollux is killed, its next start
	// finishes that run's quarantine. "" keeps no records.
	Records string
	// Masked lists more files and folders that no policy may read.
	Masked []string
	// AllowReduced allows the assurance Reduced if Full is impossible, for policies that it can keep completely.
	AllowReduced bool
	// Pool has processes ready for runs; nil for none.
	Pool *Pool
	// UseProxy has allowed hosts contacted through the proxy that this process's environment names (HTTPS_PROXY). Then
	// that proxy decides which address a name leads to.
	UseProxy bool
	// Event is told each refused contact as it happens, from several goroutines at once.
	Event func(Denial)
	// Dial replaces pollux's own dialler, and is then responsible for the addresses behind names. For tests.
	Dial func(ctx context.Context, network, hostPort string) (net.Conn, error)
	// Log gets what helps to find a fault; never arguments, output or contents.
	Log *slog.Logger
}

// A Sandbox runs commands. It has no state of its own; its methods may be used from several goroutines.
type Sandbox struct {
	o    Options
	home string // absolute, canonical; "" when there is none
	self string // this program's own file
	tree tree   // the file system that plans are made for
	env  func(string) string
	// groups returns the control group in which runs make theirs, "" for none. For tests; nil looks for one.
	groups func() string
}

// New returns a Sandbox.
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

// A Result says how a command ended.
type Result struct {
	// Code is the exit code: the command's own, 128+n if signal n ended it, 137 if a limit did.
	Code int
	// Signal is the number of the signal that ended it, 0 for none.
	Signal int
	// Limit is the limit that ended it, nil for none.
	Limit *LimitError
	// Stdout and Stderr are what the command wrote, if it had no writers of its own; cut at Limits.Output.
	Stdout, Stderr []byte
	// Denials are the refused contacts, each once with a count; at most gate.MaxDenials.
	Denials []Denial
	// Missed is what the command seems to have missed, if it failed.
	Missed Missed
	// Quarantined lists what the command made under protected names and was renamed afterwards, and which links were
	// put back.
	Quarantined []Quarantine
	// Memory is the most that a single process held, in bytes.
	Memory int64
	// Elapsed is the time from the command's start to its end.
	Elapsed time.Duration
	// Assurance says how many layers enforced the policy.
	Assurance Assurance
}

// A Denial is a contact that the policy does not allow.
type Denial = gate.Denial

// A Quarantine is a file or folder that a command made under a protected name.
type Quarantine struct {
	Path string `json:"path"`
	// Moved is its new path; "" if it could not be moved.
	Moved string `json:"moved,omitempty"`
	Err   string `json:"error,omitempty"`
	// Earlier says that an earlier run made it, whose pollux was killed.
	Earlier bool `json:"earlier,omitempty"`
}

// Run runs c under p and waits for it. An error means that c was not run, or that ctx ended. A command that fails is
// no error; one that a limit ended has Result.Limit. When Run returns, no process of the command is left. With an
// error the result may be nil; if not, read its Quarantined.
func (s *Sandbox) Run(ctx context.Context, p Policy, c Command) (*Result, error) {
	c.Limits = c.Limits.filled()
	if err := c.check(); err != nil {
		return nil, err
	}
	return s.run(ctx, p, c)
}

// check refuses commands that no platform could run.
func (c Command) check() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return policyError("no command to run")
	}
	for _, path := range append([]string{cmp.Or(c.Dir, "/"), cmp.Or(c.Workspace, "/")}, c.ReadOnly...) {
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

// gateOptions are those of a run's gate; key is its proxy's password.
func (s *Sandbox) gateOptions(p Policy, key string) gate.Options {
	o := gate.Options{Hosts: p.Hosts, Key: key, Dial: s.o.Dial, Event: s.o.Event, Log: s.o.Log}
	if s.o.UseProxy {
		o.ProxyOf = http.ProxyFromEnvironment
	}
	return o
}

// meter has kill called when all connections of a run together have carried more than this many bytes.
func meter(g *gate.Gate, bytes int64, kill func(error)) {
	g.Limit(bytes, func() { kill(&LimitError{Kind: limitTraffic, Limit: bytes}) })
}
