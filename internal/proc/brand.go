package proc

// Brand marks a process and all that it has started, for good: whatever they start from now on is branded too, in a session of its own, with
// another environment, after its parents have ended. Only root can take that away. It says false where the system has no such thing, or
// forbids it, and when the process has ended.
func Brand(p Info) bool { return Same(p.PID, p.Start) && brand(p.PID) }

// Branded says whether a process is one that Brand has marked, or one that such a process has started.
func Branded(pid int) bool { return pid > 0 && branded(pid) }

// OfUser returns all processes of this user; none where the system has no brand.
func OfUser() []int { return ofUser() }
