//go:build !linux

package escapes

import (
	"context"
	"errors"
)

// All is empty: the probes are Linux calls.
func All() []Escape { return nil }

// A Prey is what a host has and a sandbox must protect.
type Prey struct {
	Home, Workspace, ReadOnly string
	Env                       []string
}

// NewFiles fails.
func NewFiles(root string) (*Prey, error) { return NewPrey(root) }

// NewPrey fails.
func NewPrey(string) (*Prey, error) {
	return nil, errors.New("the escapes are those of Linux; there are none for this system yet")
}

// Close does nothing.
func (p *Prey) Close() {}

// Outside is never called.
func (p *Prey) Outside(context.Context, *Escape) (int, error) { return 0, nil }

// Works is never called.
func (p *Prey) Works(*Escape) bool { return false }
