package ide

import "os/exec"

// ownGroup does nothing here: what a program has started ends with its pipes.
func ownGroup(*exec.Cmd) {}
