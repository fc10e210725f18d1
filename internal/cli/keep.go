package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/companion"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
)

// doorDescriptor is where a keeper finds its listening socket: the first after the three that every process has.
const doorDescriptor = 3

// keepOrder is what a keeper is told on its standard input, as one line; the end of the input lets it begin.
type keepOrder struct {
	companion.Keeping
	Door bool `json:"door"` // it has a listening socket
}

// startKeeper starts this program once more, in a session of its own, so that whatever the editor does to its children does
// not concern it.
func (a *app) startKeeper(k companion.Keeping, door *os.File) (begin func(), err error) {
	if door != nil {
		defer door.Close()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, order, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd := exec.CommandContext(context.Background(), self, "keep") // it outlives this one
	cmd.Args[0] = os.Args[0]
	cmd.Dir, cmd.Stdin = a.dirs.State, in
	if door != nil {
		cmd.ExtraFiles = []*os.File{door}
	}
	detach(cmd)
	if err = cmd.Start(); err == nil {
		go func() { _ = cmd.Wait() }() // for a companion that goes on
		err = json.NewEncoder(order).Encode(keepOrder{k, door != nil})
	}
	if err != nil {
		order.Close()
		return nil, err
	}
	return func() { order.Close() }, nil
}

func (a *app) keepCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "keep",
		Short:  "Hold the door of connected CLIs until an editor comes back (pollux starts this by itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.keeper(cmd.Context()) },
	}
}

// keeper keeps, until somebody takes over, nobody needs it any more, or a signal comes.
func (a *app) keeper(ctx context.Context) error {
	a.tellWhoTyped("an editor's pollux")
	var order keepOrder
	in := bufio.NewReader(a.stdin)
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &order)
	}
	if err != nil {
		return usageError{fmt.Errorf("pollux starts this by itself, when an editor ends: %w", err)}
	}
	sigs := catchSignals()
	defer sigs.stop()
	_, _ = io.Copy(io.Discard, in) // the companion before has ended
	var door *os.File
	if order.Door {
		door = os.NewFile(doorDescriptor, "door")
	}
	c, err := companion.Start(ctx, companion.Options{
		Dirs: a.dirs, Settings: a.settings, Roots: order.Roots, IDE: order.IDE, Version: version(), Log: a.log,
		Keeping: &order.Keeping, Door: door,
	})
	if err != nil {
		a.log.Error("nobody keeps the door of the CLIs that are connected", "err", err)
		return err
	}
	select {
	case <-sigs.end:
	case err = <-c.Failed():
		a.log.Info("the keeper ends", "because", err)
	}
	return ended(c.Leave(ctx), err)
}

// ended is the error of a companion that has stopped, because of an error or its own wish.
func ended(stopping, because error) error {
	for _, fine := range []error{companion.ErrKept, companion.ErrHandedOn, companion.ErrStopped} {
		if errors.Is(because, fine) {
			return stopping
		}
	}
	if because != nil {
		return because
	}
	return stopping
}

func (a *app) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop [DIR]",
		Short: "End the keepers, and pollux serve, of a folder",
		Long: `Ends what serves the current folder (or DIR) without an editor: the keepers that
hold the connection of CLIs whose editor was closed, and pollux serve. What is
still open is rejected, and the CLIs go on in their terminals alone. A companion
of an editor that runs is left alone.`,
		Example: `  pollux stop            in the folder of the project
  pollux stop ~/app`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.stop(cmd.Context(), dirOf(args)) },
	}
}

// keeperWithin is how long stop looks for a keeper that is just starting, after its editor's end.
const keeperWithin = 1500 * time.Millisecond

// stop ends the companions of a folder that have no editor.
func (a *app) stop(ctx context.Context, dir string) error {
	folder, err := here(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var stopped, silent []int
	var errs []error
	for limit := time.Now().Add(keeperWithin); ; time.Sleep(50 * time.Millisecond) {
		stopped, silent, errs = a.stopAll(ctx, folder)
		if len(stopped)+len(silent)+len(errs) > 0 || time.Now().After(limit) {
			break
		}
	}
	switch {
	case len(stopped) > 0:
		return nil
	case len(errs) > 0:
		return errors.Join(errs...)
	case len(silent) > 0:
		return control.SilentError(silent)
	}
	return noError{fmt.Errorf("nothing serves %q that could be stopped; pollux status lists what runs", folder)}
}

// stopAll asks the companions of a folder to end, and returns the processes that do, those that do not answer, and why others stay.
func (a *app) stopAll(ctx context.Context, folder string) (stopped, silent []int, errs []error) {
	clients, silent := control.ListAll(ctx, a.dirs.Run)
	for _, c := range clients {
		if slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, folder) }) {
			if err := c.Stop(ctx); err != nil {
				errs = append(errs, fmt.Errorf("process %d: %w", c.Status.PID, err))
			} else {
				stopped = append(stopped, c.Status.PID)
				fmt.Fprintf(a.stdout, "Process %d ends.\n", c.Status.PID)
			}
		}
		c.Close()
	}
	return stopped, silent, errs
}
