package inside

import (
	"syscall"
	"time"
)

// A Setup is everything that the first process inside needs to know.
type Setup struct {
	Version int
	Reduced bool   // no namespaces: supervise, Landlock, seccomp
	Private string // reduced: the command's private folder
	Root    Root
	Mounts  []Mount  // in the order of their targets, parents first
	Net     *Network // nil for none
	Path    string   // of the program
	Args    []string
	Env     []string
	Dir     string
	Limits  Limits
	PIDMax  bool     // the kernel counts the processes of a namespace by its pid_max
	Canary  []string // paths of the host that must not be there
	// Filter is the filter for system calls.
	Filter []syscall.SockFilter
	// Fail is the step that fails after all it does, for tests of what is left then.
	Fail string
}

// Limits are those that are kept inside.
type Limits struct {
	CPU                       time.Duration
	Memory, Scratch, FileSize int64 // bytes
	Processes, Files          int
}

// A Root is what lies under all mounts.
type Root struct {
	Host  bool // the host's root folder with all that is mounted in it, else an empty one
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
	ShowDir     = "dir"     // a folder to mount things in; nothing is mounted
	ShowDev     = "dev"     // the folder of devices, with its links
)

// The private folders; one memory serves them all.
const (
	ScratchTmp  = "tmp"
	ScratchHome = "home"
)

// A Mount is one thing that the command sees.
type Mount struct {
	Show   string
	Target string // absolute, canonical
	Source string
	Write  bool
	Data   string
	// Files are what a folder of memory holds; a Name that ends in a slash is a folder.
	Files []File
}

// A File is one file of a Mount.
type File struct {
	Name       string // slash-separated, below the mount's Target
	Data       []byte
	Executable bool
}

// A Network is what listens inside, in its network namespace; the listeners
// are handed out.
type Network struct {
	Proxy int   // the port of the HTTP proxy on 127.0.0.1
	Ports []int // the ports of the transparent entrance, on every address
	// Tap lets the beginnings of contacts through, to the last listener.
	Tap []syscall.SockFilter
}

// DNSPort is where the resolver listens inside.
const DNSPort = 53

// PhaseCommand is the step that starts the command.
const PhaseCommand = "command"

// A Report is what the process says: that it waits, once that the listeners are
// coming, or what failed, then how the command ended.
type Report struct {
	Hello   bool // waits for the setup
	Ready   bool
	Started bool
	Phase   string // of what failed
	Cause   string
	Errno   int
	Ended   bool
	Status  int   // as wait(2) has it
	Memory  int64 // bytes
	CPU     int64 // nanoseconds, of the command and all that it waited for
}
