package inside

import (
	"syscall"
	"time"
)

// A Setup is everything that the first process inside needs to know.
type Setup struct {
	Version int
	Reduced bool   // without namespaces: reaper, Landlock, seccomp
	Private string // the command's private folder, in the reduced sandbox
	Root    Root
	Mounts  []Mount  // sorted by target, parents first
	Net     *Network // nil: no network
	Path    string   // of the program
	Args    []string
	Env     []string
	Dir     string
	Limits  Limits
	PIDMax  bool     // pid_max limits the processes of one namespace (Linux 6.14)
	Canary  []string // host paths that must not be visible; check tries to open them
	Filter  []syscall.SockFilter
	// Fail names a step that reports failure after it has run. For tests of the cleanup.
	Fail string
}

// Limits are the limits that are enforced inside.
type Limits struct {
	CPU                       time.Duration
	Memory, Scratch, FileSize int64 // bytes
	Processes, Files          int
}

// A Root is the root folder, below all mounts.
type Root struct {
	Host  bool // the host's root folder and everything mounted in it; false: an empty one
	Write bool
}

// What a mount shows at its target.
const (
	ShowBind    = "bind"    // Source
	ShowDevice  = "device"  // Source, a device node
	ShowScratch = "scratch" // the private folder named Source
	ShowFile    = "file"    // a file that holds Data
	ShowHeld    = "held"    // Source, a symbolic link itself, mounted over itself
	ShowLink    = "link"    // a symbolic link to Source; nothing is mounted
	ShowNothing = "nothing" // an empty folder
	ShowVoid    = "void"    // an empty file
	ShowCopy    = "copy"    // Files
	ShowDir     = "dir"     // an empty folder to put mounts in; nothing is mounted
	ShowDev     = "dev"     // the /dev folder with its links
)

// The private folders. They share one tmpfs.
const (
	ScratchTmp  = "tmp"
	ScratchHome = "home"
)

// A Mount is one file or folder that the command sees.
type Mount struct {
	Show   string
	Target string // absolute, canonical
	Source string
	Write  bool
	Data   string
	// Files are the contents of a folder in memory. A Name with a final slash is a folder.
	Files []File
}

// A File is one file of a Mount.
type File struct {
	Name       string // slash-separated, below the mount's Target
	Data       []byte
	Executable bool
}

// A Network describes the listeners in the sandbox's network namespace. The parent gets their descriptors.
type Network struct {
	Proxy int   // the port of the HTTP proxy on 127.0.0.1
	Ports []int // the ports that are forwarded transparently, on every address
	// Tap is the filter of the tap socket: it passes only packets that begin a contact.
	Tap []syscall.SockFilter
}

// DNSPort is where the resolver listens inside.
const DNSPort = 53

// PhaseCommand is the step that starts the command.
const PhaseCommand = "command"

// A Report is a message from the process inside: first Hello, then Ready, when the listeners follow, then Started and
// Ended. Phase and Cause say what failed instead.
type Report struct {
	Hello   bool // it waits for the setup
	Ready   bool
	Started bool
	Phase   string // the step that failed
	Cause   string
	Errno   int
	Ended   bool
	Status  int   // as wait(2) returns it
	Memory  int64 // bytes
	CPU     int64 // nanoseconds, of the command and the children it waited for
}
