package proc

import "errors"

// Command is the command line of a process as ps shows it, its words joined by
// blanks. ok is false when the process does not exist or the system does not
// say; on Windows it is the program's name alone for another user's process.
func Command(pid int) (command string, ok bool) {
	if pid <= 0 {
		return "", false
	}
	return commandLine(pid)
}

// errHidden: the system keeps a process's environment to itself.
var errHidden = errors.New("the system does not show it")

// Environ is the environment that a process of this user's was started with, as
// NAME=value. The error says why the system does not tell: another user's process, one of
// the system's own programs on macOS, one that has ended.
func Environ(pid int) ([]string, error) {
	if pid <= 0 {
		return nil, errHidden
	}
	return environ(pid)
}

// Dir is the working folder that a process of this user's has now, absolute. The error says
// why the system does not tell.
func Dir(pid int) (string, error) {
	if pid <= 0 {
		return "", errHidden
	}
	return workingDir(pid)
}
