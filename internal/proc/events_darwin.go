package proc

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

var errNoEvents = errors.New("the system does not tell when a process ends")

// waitEvent waits on a kqueue, in one thread.
func waitEvent(ctx context.Context, pid int, lives func() bool) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return errNoEvents
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	const cancelled = 1
	changes := make([]unix.Kevent_t, 2)
	unix.SetKevent(&changes[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	changes[0].Fflags = unix.NOTE_EXIT
	unix.SetKevent(&changes[1], cancelled, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR)
	switch _, err := unix.Kevent(queue, changes, nil, nil); {
	case errors.Is(err, unix.ESRCH):
		return nil
	case err != nil:
		return errNoEvents
	}
	if !lives() {
		return nil // it ended earlier; the PID may belong to another process
	}
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		trigger := make([]unix.Kevent_t, 1)
		unix.SetKevent(&trigger[0], cancelled, unix.EVFILT_USER, 0)
		trigger[0].Fflags = unix.NOTE_TRIGGER
		_, _ = unix.Kevent(queue, trigger, nil, nil)
	})
	defer func() {
		if !stop() {
			<-told // before closing the queue
		}
	}()
	for {
		events := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(queue, nil, events, nil)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
		case err != nil:
			return errNoEvents
		case events[0].Filter == unix.EVFILT_PROC:
			return nil
		default:
			return ctx.Err()
		}
	}
}
