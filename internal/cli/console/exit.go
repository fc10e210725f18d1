package console

import (
	"context"
	"errors"
	"fmt"
)

// The exit codes of SPEC §11.5. A command that pollux runs passes its own code through.
const (
	CodeDone      = 0
	CodeNo        = 1 // the answer is no: for example, nothing is served here
	CodeUsage     = 2
	CodeFailed    = 3
	CodeSandbox   = 125 // the sandbox could not be set up, or this machine cannot enforce the policy
	CodeCancelled = 130
)

// Exit is the exit code of a command that has already printed everything.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

type noError struct{ error }

func (e noError) Unwrap() error { return e.error }

type notRunError struct{ error }

func (e notRunError) Unwrap() error { return e.error }

// Usage marks a mistake in what the user typed.
func Usage(err error) error { return usageError{err} }

// No marks a negative answer, which is not a failure.
func No(err error) error { return noError{err} }

// NotRun marks a command or tool that was not run, because there is no sandbox.
func NotRun(err error) error { return notRunError{err} }

// IsNotRun reports whether an error is from NotRun.
func IsNotRun(err error) bool { return errors.As(err, &notRunError{}) }

// Report prints a command's error, and returns its exit code.
func (c *Console) Report(err error) int {
	if err == nil {
		return CodeDone
	}
	if code := Exit(0); errors.As(err, &code) {
		return int(code)
	}
	says := err.Error()
	if says == context.Canceled.Error() {
		says = "cancelled"
	}
	fmt.Fprintf(c.Err, "%s %s\n", Paint(c.Err, Red, "pollux:"), says)
	switch {
	case errors.As(err, &usageError{}):
		return CodeUsage
	case errors.As(err, &notRunError{}):
		return CodeSandbox
	case errors.As(err, &noError{}):
		return CodeNo
	case errors.Is(err, context.Canceled):
		return CodeCancelled
	}
	return CodeFailed
}
