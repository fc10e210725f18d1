package proc

import "os"

// WatchPipes returns a function that says whether a program has opened one of these pipes since. On Linux any program of this user can
// do that (/proc/PID/fd), and read or write what is not its own. It returns nil when none is a pipe, and where no program can. The function may be
// called from one goroutine at a time. The files must not be closed.
func WatchPipes(files ...*os.File) (opened func() bool) { return watchPipes(files) }
