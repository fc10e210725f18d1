package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// setupVersion guards against a binary that was replaced between the two
// starts; the stage is started by descriptor all the same.
const setupVersion = 1

// maxMessage bounds a message between the two processes, in bytes: the files
// of Copies in base64, and long arguments.
const maxMessage = 64 * mib

// A setup is everything that the first process inside needs to know.
type setup struct {
	Version int
	Reduced bool   // no namespaces: supervise, Landlock, seccomp
	Private string `json:",omitempty"` // reduced: the command's private folder
	Root    root
	Mounts  []mount // in the order of their targets, parents first
	Net     *netSetup
	Path    string // of the program
	Args    []string
	Env     []string
	Dir     string
	Limits  Limits
	Canary  []string // paths of the host that must not be there
	// Fail is the step that fails after all it does, for tests of what is left then.
	Fail string `json:",omitempty"`
}

// A root is what lies under all mounts.
type root struct {
	Host  bool // the host's root folder with all that is mounted in it, else an empty one
	Write bool
}

// What a mount shows at its target.
const (
	showBind    = "bind"    // Source
	showDevice  = "device"  // Source, a device node
	showScratch = "scratch" // the private folder named Source
	showFile    = "file"    // a file that holds Data
	showHeld    = "held"    // Source, a symbolic link itself, mounted over itself
	showLink    = "link"    // a symbolic link to Source; nothing is mounted
	showNothing = "nothing" // an empty folder
	showVoid    = "void"    // an empty file
	showCopy    = "copy"    // Files
	showDir     = "dir"     // a folder to mount things in; nothing is mounted
	showDev     = "dev"     // the folder of devices, with its links
)

// A mount is one thing that the command sees.
type mount struct {
	Show   string
	Target string // absolute, canonical
	Source string `json:",omitempty"`
	Write  bool   `json:",omitempty"`
	Data   string `json:",omitempty"`
	// Files are what a folder of memory holds; a Name that ends in a slash is a folder.
	Files []CopyFile `json:",omitempty"`
}

// A netSetup is what listens inside, in its network namespace; the listeners
// are handed out.
type netSetup struct {
	Proxy int   // the port of the HTTP proxy on 127.0.0.1
	Ports []int // the ports of the transparent entrance, on every address
}

// A report is what the stage says: that it waits, once that the listeners are
// coming, or what failed, then how the command ended.
type report struct {
	Hello   bool   `json:",omitempty"` // waits for the setup
	Ready   bool   `json:",omitempty"`
	Started bool   `json:",omitempty"`
	Phase   string `json:",omitempty"` // of what failed
	Cause   string `json:",omitempty"`
	Errno   int    `json:",omitempty"`
	Ended   bool   `json:",omitempty"`
	Status  uint32 `json:",omitempty"` // as wait(2) has it
	Memory  int64  `json:",omitempty"` // bytes
	CPU     int64  `json:",omitempty"` // nanoseconds, of the command and all that it waited for
}

// writeMessage sends v with its length before it.
func writeMessage(fd int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("a message of %d bytes", len(data))
	}
	data = append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data...)
	for len(data) > 0 {
		n, err := ignoringEINTR(func() (int, error) { return unix.Write(fd, data) })
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// readMessage reads a message whose first byte, or more, was read already.
func readMessage(fd int, first []byte, v any) error {
	head := make([]byte, 4)
	if err := readFull(fd, head[copy(head, first):]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head)
	if n > maxMessage {
		return fmt.Errorf("a message of %d bytes", n)
	}
	data := make([]byte, n)
	if err := readFull(fd, data); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func readFull(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, p) })
		if err != nil {
			return err
		}
		if n == 0 {
			return unix.EPIPE
		}
		p = p[n:]
	}
	return nil
}

func ignoringEINTR[T any](f func() (T, error)) (T, error) {
	for {
		if v, err := f(); !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}
