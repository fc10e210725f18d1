//go:build unix

package conform

import (
	"fmt"
	"os"
	"syscall"
)

// private fails when a file's mode gives anyone but the user one of the permissions others.
func private(path string, others os.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&others != 0 {
		return fmt.Errorf("its mode is %04o", info.Mode().Perm())
	}
	return nil
}

// interrupt asks a process to end.
func interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
