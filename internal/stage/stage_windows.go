package stage

import (
	"errors"
	"os"
	"os/exec"
)

// A Stage is one terminal with a command on it, which another program may take for a while. There is none on Windows.
type Stage struct{}

// Start fails.
func Start(*exec.Cmd, *os.File, *os.File) (*Stage, error) {
	return nil, errors.New("a terminal cannot be shared on Windows; run pollux review in a second one")
}

// Called never gets a value.
func (s *Stage) Called() <-chan struct{} { return nil }

// Close is never called.
func (s *Stage) Close() {}

// Take is never called.
func (s *Stage) Take(func() error) error { return nil }
