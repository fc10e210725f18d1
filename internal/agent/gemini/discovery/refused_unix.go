//go:build unix

package discovery

import "syscall"

// errRefused is what dialling a port that nobody listens on gives.
const errRefused = syscall.ECONNREFUSED
