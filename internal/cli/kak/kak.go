// Package kak holds the command that Kakoune's plugin starts, to tell its events and to be served.
package kak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/editor/kakoune"
)

// Over serves one editor over a pair of pipes until it ends, or ctx does (serve.Over).
type Over func(ctx context.Context, con *console.Console, in io.Reader, out io.Writer) error

// Command makes pollux kakoune, which Kakoune's plugin starts.
func Command(con *console.Console, over Over) *cobra.Command {
	return &cobra.Command{
		Use:    "kakoune EVENT [ARG …]",
		Short:  "Tell an event of Kakoune's (its plugin starts this by itself)",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "serve":
				return serveKakoune(cmd.Context(), con, over, args[1:])
			case "quit":
				return leaveKakoune(cmd.Context(), con, over, args[1:])
			}
			fmt.Fprint(con.Out, tellKakoune(cmd.Context(), args[0], args[1:]))
			return nil
		},
	}
}

// tellKakoune tells an event, and returns what Kakoune is to do. Where the pollux that listened has ended, another one is to start; it
// hears what the user has rejected meanwhile.
func tellKakoune(ctx context.Context, name string, args []string) string {
	e, socket := kakoune.FromKakoune(name, args)
	script, err := kakoune.Tell(ctx, socket, e)
	if err == nil {
		return script
	}
	again := "pollux-start\n"
	if socket == "" {
		again = "" // it is about to listen, or the user has stopped it
	}
	switch name {
	case "stop":
		return ""
	case "context":
		return again
	case "edited":
		return "set-option buffer pollux_told ''\n" + again
	case "reject":
		if len(args) > 2 && kakoune.Reject(os.Getenv("kak_opt_pollux_dir"), args[0]) == nil {
			return again + kakoune.Close(args[1], args[2])
		}
	}
	return again + "fail 'pollux does not run just now; :pollux-start starts it'\n"
}

// serveKakoune serves one Kakoune until it ends: its session, the PID of its server, the client that started this, and the program that
// speaks the editor's protocol where that is not this one.
func serveKakoune(ctx context.Context, con *console.Console, over Over, args []string) error {
	start, err := startOf(con, args)
	if err != nil {
		return err
	}
	ctx, stop := console.Interrupted(ctx)
	defer stop()
	return kakoune.Run(ctx, start, server(ctx, con, over, args))
}

// leaveKakoune tells the pollux that serves a Kakoune that it is left; its arguments are those of serveKakoune. Where that pollux has been killed, what the user
// has typed since is told to one that starts for that alone.
func leaveKakoune(ctx context.Context, con *console.Console, over Over, args []string) error {
	start, err := startOf(con, args)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, leaveWithin)
	defer stop()
	for {
		e, socket := kakoune.FromKakoune("quit", nil)
		if _, err := kakoune.Tell(ctx, socket, e); err == nil {
			return nil
		}
		busy, err := kakoune.Leave(ctx, start, server(ctx, con, over, args))
		if !busy {
			return err
		}
		select { // one is about to listen
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leaveWithin is how long Kakoune's end may wait.
const leaveWithin = 6 * time.Second

// startOf reads the arguments of a Kakoune's server.
func startOf(con *console.Console, args []string) (start kakoune.Start, err error) {
	if len(args) != 3 && len(args) != 4 {
		return start, console.Usage(errors.New("Kakoune's plugin starts this by itself: pollux install kakoune"))
	}
	pid, err := strconv.Atoi(args[1])
	if err != nil {
		return start, console.Usage(err)
	}
	con.TellWhoTyped("an editor")
	return kakoune.Start{Session: args[0], PID: pid, Client: args[2], State: con.Dirs.State, Run: con.Dirs.Run, Log: con.Log}, nil
}

// server is what speaks the editor's protocol: this program, or another one that the arguments name.
func server(ctx context.Context, con *console.Console, over Over, args []string) kakoune.Serve {
	return func(in io.Reader, out io.Writer) error {
		if len(args) == 4 {
			return speak(exec.CommandContext(ctx, args[3], "lsp"), in, out)
		}
		return over(ctx, con, in, out)
	}
}

// speak joins a program's input and output to in and out until it ends.
func speak(other *exec.Cmd, in io.Reader, out io.Writer) error {
	other.Stdout = out
	to, err := other.StdinPipe() // a Stdin would have Wait wait for in
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(to, in)
		to.Close()
	}()
	return other.Wait()
}
