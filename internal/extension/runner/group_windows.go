package runner

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: on Windows only a job object could end a group as a whole.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

// ending returns a program's exit code.
func ending(state *os.ProcessState) (code, signal int) { return state.ExitCode(), 0 }
