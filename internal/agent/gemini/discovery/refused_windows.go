package discovery

import "golang.org/x/sys/windows"

// errRefused is the error of dialling a port on which nobody listens.
const errRefused = windows.WSAECONNREFUSED
