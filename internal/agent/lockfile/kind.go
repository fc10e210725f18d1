package lockfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
)

// A Lock is the content of a lock file, whatever its form.
type Lock struct {
	// Port is the companion's; 0 for one that is a command.
	Port int
	// Socket is its private socket or pipe for this agent, as its Scheme says; "" where it comes to the port.
	Socket, Scheme string
	// Since is when the companion started.
	Since time.Time
	// Roots are the workspace's folders, absolute.
	Roots []string
	Token string
	// PID must live as long as the lock counts. 0 stands for none.
	PID int
	// Name is the editor's short name, as "pollux"; DisplayName is for people.
	Name, DisplayName string
	// Stdio is the command of a companion that is spoken to over its standard input and output; nil for one with a port.
	Stdio *Stdio
	// Ours says that pollux wrote it: Sweep removes no others.
	Ours bool
}

// Door is where the lock leads.
func (l *Lock) Door() finding.Door {
	return finding.Door{Port: l.Port, Socket: l.Socket, Token: l.Token}
}

// Stdio is a command with its arguments.
type Stdio struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}

// ErrLock marks a lock file that does not hold what it should.
var ErrLock = errors.New("not a lock file of a companion")

// ErrToken: a companion does not know the token of a lock.
var ErrToken = errors.New("the companion does not know the lock's token")

// A Kind is the form of one agent's lock files, and where they lie.
type Kind struct {
	// Agent is the agent's name for people.
	Agent string
	// Home is the folder that the agent keeps its files in, absolute; it need not exist. HomeVariable moves it.
	Home         func(getenv func(string) string) (string, error)
	HomeVariable string
	// Encode renders a file. Decode reads one; of a form that names the port in the file's name alone it leaves Port 0.
	Encode func(*Lock) ([]byte, error)
	Decode func([]byte) (*Lock, error)
}

// Dir is the folder of the lock files below an agent's home.
func Dir(home string) string { return filepath.Join(home, "ide") }

// Path is the lock file of a port below an agent's home. Port 0 is for a companion that is a command.
func Path(home string, port int) string {
	return filepath.Join(Dir(home), strconv.Itoa(port)+".lock")
}

// Put writes a lock, unless the file says the same already.
func (k Kind) Put(f *File, l *Lock) error {
	data, err := k.Encode(l)
	if err == nil {
		err = f.Put(data)
	}
	if err != nil {
		return fmt.Errorf("%s does not find this companion: %w", k.Agent, err)
	}
	return nil
}

// Sweep removes the locks below home that companions of pollux's left and whose process is gone, and returns their paths.
// A lock of a command stays, and another program's.
func (k Kind) Sweep(home string) (removed []string) {
	return sweep(Dir(home), func(data []byte) (int, bool) {
		l, err := k.Decode(data)
		if err != nil || !l.Ours || l.Stdio != nil {
			return 0, false
		}
		return l.PID, true
	})
}
