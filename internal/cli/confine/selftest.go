package confine

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/sandbox"
	"github.com/pollux-companion/pollux/internal/words"
)

// selfTestJSON is the output of sandbox --self-test --json.
type selfTestJSON struct {
	Held   int             `json:"held"`
	Out    int             `json:"out"`
	Trials []sandbox.Trial `json:"trials"`
}

// selfTest tries every known escape from the sandbox, and leaves nothing behind.
func selfTest(ctx context.Context, con *console.Console, asJSON bool) error {
	ctx, stop := console.Interrupted(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "px")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := os.Executable()
	if err != nil {
		return err
	}
	out := selfTestJSON{Trials: []sandbox.Trial{}}
	err = sandbox.SelfTest(ctx, dir, program, func(t sandbox.Trial) {
		out.Trials = append(out.Trials, t)
		if t.Held {
			out.Held++
		} else {
			out.Out++
		}
		if !asJSON {
			printTrial(con, t)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return refusal(err)
	}
	if asJSON {
		if err := con.PrintJSON(out); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(con.Out, "\n%s tried, %d held, %d got out\n", words.Plural(len(out.Trials), "way"), out.Held, out.Out)
	}
	if out.Out > 0 {
		return console.Exit(console.CodeNo)
	}
	return nil
}

// printTrial prints one row of the table.
func printTrial(con *console.Console, t sandbox.Trial) {
	inside, outside := "held", t.Outside
	if !t.Held {
		inside = console.Paint(con.Out, console.Red, "OUT ")
	}
	if outside == "" {
		outside = "–"
	}
	fmt.Fprintf(con.Out, "%s  %-9s  %-52s  outside: %s\n", inside, t.Kind, t.Name, outside)
	if t.What != "" {
		fmt.Fprintf(con.Out, "      %s\n", strings.ReplaceAll(words.PrintableLines(t.What), "\n", "\n      "))
	}
}
