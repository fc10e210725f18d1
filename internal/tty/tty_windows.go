package tty

import (
	"errors"
	"os"
	"os/exec"
)

// A Shared is one terminal with a command on it, which another program may take for a while. Windows has none.
type Shared struct{}

// Start always fails.
func Start(*exec.Cmd, *os.File, *os.File) (*Shared, error) {
	return nil, errors.New("a terminal cannot be shared on Windows; run pollux review in a second one")
}

// Called never receives a value.
func (s *Shared) Called() <-chan struct{} { return nil }

// Close is never called.
func (s *Shared) Close() {}

// Take is never called.
func (s *Shared) Lend(func() error) error { return nil }
