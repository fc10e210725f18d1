package discovery

import "golang.org/x/sys/windows"

// errRefused is what dialling a port that nobody listens on gives.
const errRefused = windows.WSAECONNREFUSED
