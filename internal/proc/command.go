package proc

import "errors"

// Command returns a process's command line as ps shows it, its words joined by blanks. ok is false if the process
// does not exist or the system hides it. On Windows it is only the program's name for another user's process.
func Command(pid int) (command string, ok bool) {
	if pid <= 0 {
		return "", false
	}
	return commandLine(pid)
}

// Words returns the words of a process's command line, the program first. A program that has set a title of its
// own has one word.
func Words(pid int) (words []string, ok bool) {
	if pid <= 0 {
		return nil, false
	}
	return wordsOf(pid)
}

// errHidden: the system hides the process's environment.
var errHidden = errors.New("the system does not show it")

// Environ returns the environment that a process of this user was started with, as NAME=value. The error says why the
// system hides it: another user's process, one of macOS's own programs, a process that has ended.
func Environ(pid int) ([]string, error) {
	if pid <= 0 {
		return nil, errHidden
	}
	return environ(pid)
}

// Hides says whether a process of this user keeps its environment from its own user, as a program can on Linux (PR_SET_DUMPABLE).
func Hides(pid int) bool { return pid > 0 && hides(pid) }

// Dir returns the current working folder of a process of this user, absolute. The error says why the system hides it.
func Dir(pid int) (string, error) {
	if pid <= 0 {
		return "", errHidden
	}
	return workingDir(pid)
}
