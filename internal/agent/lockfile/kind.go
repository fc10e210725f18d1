package lockfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
)

// A Lock is the content of a lock file, in any agent's form.
type Lock struct {
	// Port is the companion's port; 0 for a companion that is a command.
	Port int
	// Socket is its private socket or pipe for this agent, as its Scheme says; "" when the agent connects to the port.
	Socket, Scheme string
	// Since is when the companion started.
	Since time.Time
	// Roots are the workspace's folders, absolute.
	Roots []string
	Token string
	// PID is the process that must live for the lock to count; 0 for none.
	PID int
	// Name is the editor's short name, as "pollux"; DisplayName is for people.
	Name, DisplayName string
	// Stdio is the command of a companion that speaks over its standard input and output; nil for one with a port.
	Stdio *Stdio
	// Ours says that pollux wrote it. Sweep removes no other locks.
	Ours bool
}

// Door returns the address that the lock leads to.
func (l *Lock) Door() finding.Door {
	return finding.Door{Port: l.Port, Socket: l.Socket, Token: l.Token}
}

// Stdio is a command with its arguments.
type Stdio struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}

// ErrLock: the content is not a usable lock file.
var ErrLock = errors.New("not a lock file of a companion")

// ErrToken: a companion does not know the token of its lock.
var ErrToken = errors.New("the companion does not know the lock's token")

// A Kind describes one agent's lock files: their form and their place.
type Kind struct {
	// Agent is the agent's name for people.
	Agent string
	// Home returns the folder that the agent keeps its files in, absolute; it may not exist. HomeVariable names the variable that moves it.
	Home         func(getenv func(string) string) (string, error)
	HomeVariable string
	// Encode renders a file; Decode reads one. When the form has the port in the file's name alone, Decode leaves Port 0.
	Encode func(*Lock) ([]byte, error)
	Decode func([]byte) (*Lock, error)
	// AnyName says that the agent reads every file named *.lock. Otherwise the names are ports.
	AnyName bool
}

// Dir returns the folder of the lock files below an agent's home.
func Dir(home string) string { return filepath.Join(home, "ide") }

// Path returns the lock file of a port below an agent's home. Port 0 stands for a companion that is a command.
func Path(home string, port int) string {
	return filepath.Join(Dir(home), strconv.Itoa(port)+".lock")
}

// Put writes a lock, unless the file has this content already.
func (k Kind) Put(f *File, l *Lock) error {
	data, err := k.Encode(l)
	if err == nil {
		err = f.put(data)
	}
	if err != nil {
		return fmt.Errorf("%s does not find this companion: %w", k.Agent, err)
	}
	return nil
}

// Sweep removes the locks below home that pollux's companions left and whose process is gone, and returns their paths. It leaves
// a command's lock, and other programs' locks.
func (k Kind) Sweep(home string) (removed []string) {
	return sweep(Dir(home), func(data []byte) (int, bool) {
		l, err := k.Decode(data)
		if err != nil || !l.Ours || l.Stdio != nil {
			return 0, false
		}
		return l.PID, true
	})
}
