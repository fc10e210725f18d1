package source

import "os/exec"

// ownGroup does nothing: git's helpers end with their pipes.
func ownGroup(*exec.Cmd) {}
