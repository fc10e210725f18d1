package proc

// Command is the command line of a process as ps shows it, its words joined by
// blanks. ok is false when the process does not exist or the system does not
// say; on Windows it is the program's name alone.
func Command(pid int) (command string, ok bool) {
	if pid <= 0 {
		return "", false
	}
	return commandLine(pid)
}

// Environ is the environment that a process of this user's was started with,
// and Dir its working folder. ok is false where the system does not tell:
// everywhere but on Linux.
func Environ(pid int) (env []string, dir string, ok bool) {
	if pid <= 0 {
		return nil, "", false
	}
	return environ(pid)
}
