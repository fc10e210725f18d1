package proc

// Leader is the leader of the session that a process belongs to, which a child keeps when its parents end; ok is false
// where there are no sessions, or the leader has ended.
func Leader(pid int) (leader int, ok bool) {
	if pid <= 0 {
		return 0, false
	}
	leader, ok = leaderOf(pid)
	return leader, ok && leader >= 1 && Alive(leader)
}

// Program is a path by which the file that a process runs can be opened; ok is false where the system does not say.
func Program(pid int) (path string, ok bool) {
	if pid <= 0 {
		return "", false
	}
	return programOf(pid)
}
