package proc

import (
	"context"
	"errors"

	"golang.org/x/sys/windows"
)

var errNoEvents = errors.New("the system does not tell when a process ends")

// waitEvent waits on the process handle, in one thread. The parent's PID is not enough: on Windows a child keeps it
// after the parent has ended.
func waitEvent(ctx context.Context, pid int, lives func() bool) error {
	start := startOf(pid)
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return poll(ctx, func() bool { return !Same(pid, start) }) // another user's process, or it has ended
	}
	defer windows.CloseHandle(process)
	if !lives() || !Same(pid, start) {
		return nil // it ended earlier; the handle may be another process's
	}
	cancelled, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return errNoEvents
	}
	defer windows.CloseHandle(cancelled)
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = windows.SetEvent(cancelled); close(told) })
	defer func() {
		if !stop() {
			<-told // before closing the handle
		}
	}()
	which, err := windows.WaitForMultipleObjects([]windows.Handle{process, cancelled}, false, windows.INFINITE)
	switch {
	case err != nil:
		return errNoEvents
	case which == windows.WAIT_OBJECT_0:
		return nil
	}
	return ctx.Err()
}
