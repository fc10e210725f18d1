package proc

// commandLine is the program's name, out of the snapshot.
func commandLine(pid int) (string, bool) {
	info, ok := lookup(pid)
	return info.Name, ok
}

func environ(int) ([]string, string, bool) { return nil, "", false }
