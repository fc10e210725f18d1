package runner

import (
	"os"
	"os/exec"
)

// ownGroup: Windows has no groups that end as one without a job object.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

// ending is the exit code of a program.
func ending(state *os.ProcessState) (code, signal int) { return state.ExitCode(), 0 }
