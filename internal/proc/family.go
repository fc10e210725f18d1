package proc

// Leader returns the leader of a process's session, which a child keeps when its parents end. ok is false if the
// system has no sessions, or the leader has ended.
func Leader(pid int) (leader int, ok bool) {
	if pid <= 0 {
		return 0, false
	}
	leader, ok = leaderOf(pid)
	return leader, ok && leader >= 1 && Alive(leader)
}

// Program returns a path for opening the file that a process runs; ok is false if the system hides it.
func Program(pid int) (path string, ok bool) {
	if pid <= 0 {
		return "", false
	}
	return programOf(pid)
}

// ownDescriptors is what a companion needs besides its peers' connections: listeners, locks, logs, the journal, files that it reads.
const ownDescriptors = 24

// Connections returns how many connections all peers of this process may have at one time, by the files that it may have open.
// The runtime has raised that number as far as the system lets it.
func Connections() int { return max(8, descriptors()-ownDescriptors) }
