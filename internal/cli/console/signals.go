package console

import (
	"context"
	"os"
)

// Signals ask pollux to end. Stop ends the catching of them.
type Signals struct {
	End  chan os.Signal
	Pipe chan os.Signal // nobody reads the output any more; never on Windows
}

// Interrupted ends its context when pollux is asked to end. The function that it returns ends the watching.
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
