package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
)

func callCommand(kit *tools.Kit) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call CALL",
		Short: "Run one tool by a call as a model writes it",
		Long: `Runs a tool by a call in the form that models use: name(argument="value", …).
The name is a tool's, or EXTENSION.TOOL where several extensions have one of that
name. describe_extension(name="…") and read_doc(name="…") are pollux's own.

It prints the answer that a model would get. The exit code is 0 when the tool
succeeded, 1 when it failed, was refused or does not exist, 2 when CALL is no
call.`,
		Example: `  pollux extensions call 'lintFile(file="src/index.js")'
  pollux extensions call 'code-analyzer.lintFile(file="src/index.js")' --json
  pollux extensions call 'describe_extension(name="lintFile", script=true)'`,
		Args: console.OneArg("CALL"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCall(kit, cmd, args[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead")
	return cmd
}

// callReport is the JSON output of call.
type callReport struct {
	Tool   string `json:"tool"`
	Status string `json:"status"` // ok, error, or denied if you have not agreed
	Text   string `json:"text"`   // for the model
}

func runCall(kit *tools.Kit, cmd *cobra.Command, text string, asJSON bool) error {
	c, err := prompt.ParseCall(text)
	if err != nil {
		return console.Usage(fmt.Errorf(`this is no call: %w; write it like lintFile(file="src/index.js")`, err))
	}
	args, err := json.Marshal(c.Map())
	if err != nil {
		return err
	}
	ctx, stop := console.Interrupted(cmd.Context())
	defer stop()
	d, err := newDispatcher(kit, "", kit.Asker(), true)
	if err != nil {
		return err
	}
	if _, err := d.Refresh(); err != nil {
		return err
	}
	r := d.Call(ctx, c.Name, args)
	if ctx.Err() != nil {
		return context.Canceled
	}
	report := callReport{Tool: c.Name, Status: r.Status(), Text: r.Text}
	switch {
	case asJSON:
		if err := kit.PrintJSON(report); err != nil {
			return err
		}
	case r.Failed:
		return console.No(errors.New(prompt.Visible(r.Text)))
	default:
		printText(kit, r.Text)
	}
	if r.Failed {
		return console.Exit(console.CodeNo)
	}
	return nil
}

// printText prints a text that ends with a line break, without terminal control characters.
func printText(kit *tools.Kit, text string) {
	if console.Terminal(kit.Out) != nil {
		text = terminalText(text)
	}
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	fmt.Fprint(kit.Out, text)
}

func respondCommand(kit *tools.Kit) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "respond",
		Short: "Run the calls in a model's text on standard input, and print the answers",
		Long: `Reads a model's text, runs the calls in its <tool_code> blocks, reads the
documents that its <read_doc> blocks name, and prints what goes back to the
model, in the same order. A block is acted on as soon as it is complete, so the
text may come while the model still writes. Blocks in code, in quotations and in
results are not run; the answer says so.

A tool that you did not agree to before is asked about in your editor, if one is
connected, and refused otherwise. The exit code is 0 also when a tool failed: the
model is told. A text without such blocks gives no output.`,
		Example: `  my-model <prompt.txt | tee answer.txt | pollux extensions respond >results.txt
  pollux extensions respond --json <answer.txt`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return respond(kit, cmd, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with every block and its answer instead")
	return cmd
}

// respondReport is the JSON output of respond.
type respondReport struct {
	Blocks []blockReport `json:"blocks"`
	// Reply is the answer to the model; "" if it asked for nothing.
	Reply string `json:"reply"`
}

// blockReport is one block of a model's text. Start and End are byte offsets in the text.
type blockReport struct {
	Kind   string `json:"kind"`
	Start  int    `json:"start"`
	End    int    `json:"end"`
	Name   string `json:"name,omitempty"`
	Status string `json:"status"` // ok, error, denied or ignored
	Text   string `json:"text"`
}

func respond(kit *tools.Kit, cmd *cobra.Command, asJSON bool) error {
	ctx, stop := console.Interrupted(cmd.Context())
	defer stop()
	d, err := newDispatcher(kit, "a model", kit.Asker(), true)
	if err != nil {
		return err
	}
	if _, err := d.Refresh(); err != nil {
		return err
	}
	report, replies := respondReport{Blocks: []blockReport{}}, strings.Builder{}
	do := func(blocks []prompt.Block) error {
		for _, b := range blocks {
			o := d.Respond(ctx, b)
			if ctx.Err() != nil {
				return context.Canceled
			}
			if asJSON {
				report.Blocks = append(report.Blocks, blockReport{string(b.Kind), b.Start, b.End, o.Name, o.Status, o.Text})
				replies.WriteString(o.Reply)
			} else {
				if _, err := fmt.Fprint(kit.Out, o.Reply); err != nil {
					return err
				}
			}
		}
		return nil
	}
	s := prompt.NewScanner()
	if err := feed(ctx, kit.In, func(piece string) error { return do(s.Feed(piece)) }); err != nil {
		return err
	}
	if err := do(s.Close()); err != nil {
		return err
	}
	if asJSON {
		report.Reply = replies.String()
		return kit.PrintJSON(report)
	}
	return nil
}

// feed passes input to f as it arrives, until it ends or ctx does; a pending read then ends with the process.
func feed(ctx context.Context, in io.Reader, f func(string) error) error {
	type piece struct {
		text string
		err  error
	}
	pieces := make(chan piece)
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := in.Read(buf)
			select {
			case pieces <- piece{string(buf[:n]), err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Canceled
		case p := <-pieces:
			if err := f(p.text); err != nil {
				return err
			}
			if errors.Is(p.err, io.EOF) {
				return nil
			}
			if p.err != nil {
				return fmt.Errorf("reading the model's text: %w", p.err)
			}
		}
	}
}

// Commands returns this package's commands of pollux extensions.
func Commands(kit *tools.Kit) []*cobra.Command {
	return []*cobra.Command{
		promptCommand(kit), readCommand(kit), callCommand(kit), respondCommand(kit),
		serveCommand(kit), bridgeCommand(kit),
	}
}
