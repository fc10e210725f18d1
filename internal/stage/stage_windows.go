package stage

import (
	"errors"
	"os"
	"os/exec"
)

// A Stage is one terminal with a command on it, which another program may take for a while. Windows has none.
type Stage struct{}

// Start always fails.
func Start(*exec.Cmd, *os.File, *os.File) (*Stage, error) {
	return nil, errors.New("a terminal cannot be shared on Windows; run pollux review in a second one")
}

// Called never receives a value.
func (s *Stage) Called() <-chan struct{} { return nil }

// Close is never called.
func (s *Stage) Close() {}

// Take is never called.
func (s *Stage) Take(func() error) error { return nil }
