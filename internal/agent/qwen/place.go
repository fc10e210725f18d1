package qwen

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// maxLock bounds a lock file that is read, in bytes.
const maxLock = 256 << 10

// Dir is the folder of the lock files below home.
func Dir(home string) string { return filepath.Join(home, "ide") }

// A Place is the lock file of one companion, from Put to Remove. Its methods are for one goroutine at a time.
type Place struct{ file *lockfile.File }

// NewPlace names the lock file of a port below home, without touching the disk. Port 0 is for a companion that is a command.
func NewPlace(home string, port int) *Place {
	return &Place{lockfile.New(filepath.Join(Dir(home), strconv.Itoa(port)+".lock"))}
}

// Path is the file's absolute path.
func (p *Place) Path() string { return p.file.Path() }

// Put writes the lock atomically, with mode 0600. A file that holds the same already is not touched: of several locks that
// fit Qwen Code takes the one that was changed last (SPEC Q-4).
func (p *Place) Put(l *Lock) error {
	data, err := l.encode()
	if err != nil {
		return err
	}
	if err := p.file.Put(data); err != nil {
		return fmt.Errorf("Qwen Code does not find this companion: %w", err)
	}
	return nil
}

// Remove deletes the file if it is still what Put wrote. It may be called at any time, and again.
func (p *Place) Remove() error { return p.file.Remove() }

// Sweep removes the locks below home that companions of pollux's left and whose process is gone, and returns their paths.
// The relay's lock and another program's stay (SPEC Q-3).
func Sweep(home string) (removed []string) {
	return lockfile.Sweep(Dir(home), func(data []byte) (int, bool) {
		l, err := Parse(data)
		if err != nil || !l.Ours || l.Port == 0 {
			return 0, false
		}
		return l.PID, true
	})
}
