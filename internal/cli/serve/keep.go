package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/companion"
)

// doorDescriptor is the descriptor of a keeper's listening socket: the first after the three standard ones.
const doorDescriptor = 3

// keepOrder is what a keeper is told on its standard input, as one line. The keeper begins at the end of the input.
type keepOrder struct {
	companion.Keeping
	Door bool `json:"door"` // it has a listening socket
}

// keeperOf starts keepers for a companion.
func keeperOf(con *console.Console) func(companion.Keeping, *os.File) (begin func(), err error) {
	return func(k companion.Keeping, door *os.File) (begin func(), err error) { return startKeeper(con, k, door) }
}

// startKeeper starts this program again in a new session, so that what the editor does to its children does not
// affect it.
func startKeeper(con *console.Console, k companion.Keeping, door *os.File) (begin func(), err error) {
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
	cmd := exec.CommandContext(context.Background(), self, "keep") // it outlives this process
	cmd.Args[0] = os.Args[0]
	cmd.Dir, cmd.Stdin = con.Dirs.State, in
	if door != nil {
		cmd.ExtraFiles = []*os.File{door}
	}
	if err = console.Outlive(cmd); err == nil {
		err = json.NewEncoder(order).Encode(keepOrder{k, door != nil})
	}
	if err != nil {
		order.Close()
		return nil, err
	}
	return func() { order.Close() }, nil
}

// Keep makes pollux keep.
func Keep(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:    "keep",
		Short:  "Hold the door of connected CLIs until an editor comes back (pollux starts this by itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return keepDoor(cmd.Context(), con) },
	}
}

// keepDoor keeps until another companion takes over, nobody needs it any more, or a signal comes.
func keepDoor(ctx context.Context, con *console.Console) error {
	con.TellWhoTyped("an editor's pollux")
	var order keepOrder
	in := bufio.NewReader(con.In)
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &order)
	}
	if err != nil {
		return console.Usage(fmt.Errorf("pollux starts this by itself, when an editor ends: %w", err))
	}
	sigs := console.CatchSignals()
	defer sigs.Stop()
	_, _ = io.Copy(io.Discard, in) // the previous companion has ended
	var door *os.File
	if order.Door {
		door = os.NewFile(doorDescriptor, "door")
	}
	o := base(con)
	o.Roots, o.IDE, o.Keeping, o.Door = order.Roots, order.IDE, &order.Keeping, door
	c, err := companion.Start(ctx, o)
	if err != nil {
		con.Log.Error("nobody keeps the door of the CLIs that are connected", "err", err)
		return err
	}
	select {
	case <-sigs.End:
	case err = <-c.Failed():
		con.Log.Info("the keeper ends", "because", err)
	}
	return ended(c.Leave(ctx), err)
}

// ended returns the error of a companion that has stopped, after an error or on request.
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
