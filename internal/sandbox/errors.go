package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of errors, for errors.Is. With each of them the command was not run.
var (
	// ErrPolicy: the policy or the command makes no sense on any machine.
	ErrPolicy = errors.New("not a policy that can be enforced")
	// ErrUnsupported: this machine lacks what the policy needs.
	ErrUnsupported = errors.New("not supported on this machine")
	// ErrSetup: the sandbox could not be built.
	ErrSetup = errors.New("the sandbox could not be set up")
	// ErrCommand: the program was not found, or cannot be shown to the sandbox.
	ErrCommand = errors.New("the command cannot be run")
)

func policyError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPolicy, fmt.Sprintf(format, args...))
}

// An UnsupportedError says what a policy needs and the machine lacks.
type UnsupportedError struct {
	Feature string // what is missing
	Cause   string // how that was found out
	Fix     string // what the user can do
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the sandbox needs %s, which this machine does not give (%s); %s", e.Feature, e.Cause, e.Fix)
}

// Is makes it an ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// A SetupError says at which step building the sandbox failed. Nothing of the sandbox is left.
type SetupError struct {
	Phase string // userns, start, record, mounts, network, system, limits, privileges, landlock, seccomp, check, command
	Cause string
	Fix   string // what the user can do; "" if unknown
}

func (e *SetupError) Error() string {
	text := fmt.Sprintf("the sandbox could not be set up, in the step %q: %s", e.Phase, e.Cause)
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Is makes it an ErrSetup, and also an ErrCommand if starting the command failed.
func (e *SetupError) Is(target error) bool {
	return target == ErrSetup || target == ErrCommand && e.Phase == phaseCommand
}

// phaseCommand is the step that starts the command.
const phaseCommand = "command"

// A LimitError says which limit ended a command.
type LimitError struct {
	Kind  string // time, processor, memory, output, traffic, disk or file
	Limit int64  // nanoseconds for time and processor, bytes otherwise
}

func (e *LimitError) Error() string {
	switch e.Kind {
	case limitTime:
		return fmt.Sprintf("it was ended after %v, its limit of time", time.Duration(e.Limit))
	case limitCPU:
		return fmt.Sprintf("it was ended when it had used %v of processor time, its limit", time.Duration(e.Limit))
	case limitFile:
		return fmt.Sprintf("it was ended when it wrote a file larger than %s, its limit", size(e.Limit))
	case limitDisk:
		return fmt.Sprintf("it was ended when it had written more than %s to disks, its limit", size(e.Limit))
	case limitTraffic:
		return fmt.Sprintf("it was ended when it had exchanged more than %s with its hosts, its limit", size(e.Limit))
	case limitMemory:
		return fmt.Sprintf("it was ended when it held more than %s of memory, its limit", size(e.Limit))
	}
	return fmt.Sprintf("it was ended when it had written more than %s of output, its limit", size(e.Limit))
}

const (
	limitTime    = "time"
	limitCPU     = "processor"
	limitMemory  = "memory"
	limitOutput  = "output"
	limitTraffic = "traffic"
	limitFile    = "file"
	limitDisk    = "disk"
)

// size prints a number of bytes for people.
func size(n int64) string {
	for _, unit := range []struct {
		one  int64
		name string
	}{{gib, "GiB"}, {mib, "MiB"}, {kib, "KiB"}} {
		if n >= unit.one {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(unit.one), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
