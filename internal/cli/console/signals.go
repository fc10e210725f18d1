package console

import (
	"context"
	"os"
)

// Signals receives the signals that ask pollux to end. Stop stops catching them.
type Signals struct {
	End  chan os.Signal
	Pipe chan os.Signal // nobody reads the output any more; never on Windows
}

// Interrupted returns a context that ends when pollux is asked to end, and a function that stops watching.
func Interrupted(ctx context.Context) (context.Context, func()) {
	sigs := CatchSignals()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-sigs.End:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); sigs.Stop() }
}
