//go:build unix

package discovery

import "syscall"

// errRefused is the error of dialling a port on which nobody listens.
const errRefused = syscall.ECONNREFUSED
