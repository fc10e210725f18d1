package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// diffFlags are the flags of pollux diff.
type diffFlags struct {
	from, as, out string
	write, json   bool
}

// Diff makes pollux diff.
func Diff(con *console.Console) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Ask about a change in the editor, and wait for the answer",
		Long: `Shows a proposal for FILE as a diff in the editor that is connected to this folder
(the page, Neovim, Vim, Emacs, pollux review). You can edit the proposal there.
pollux waits until you accept or reject it. The proposed text comes from standard
input or from another file. FILE need not exist.

Exit codes:
  0    accepted. The final text is on standard output, or where --write or -o
       puts it.
  1    rejected. Nothing is printed or written.
  3    nobody could be asked, or the text could not be written. An accepted text
       is then kept in a file beside FILE, and the message names that file.
  130  you pressed Ctrl-C, which closes the diff.

If several companions serve FILE, it asks the one with the nearest folder, and
of these the newest.`,
		Example: `  sed s/old/new/ a.txt | pollux diff a.txt --write      ask, then change the file
  pollux diff a.txt --from a.new -o merged.txt          the result goes elsewhere
  gofmt main.go | pollux diff main.go > /dev/null && echo yes
  pollux diff "$LOCAL" --from "$REMOTE" --as "$MERGED" -o "$REMOTE"      git difftool`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.write && f.out != "" {
				return console.Usage(errors.New("--write and -o both say where the text goes; use one of them"))
			}
			return askAbout(cmd.Context(), con, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "-", "take the proposed text from this `FILE`; - is standard input")
	flags.BoolVar(&f.write, "write", false, "write the accepted text into FILE, in one step")
	flags.StringVarP(&f.out, "output", "o", "", "write the accepted text into this `FILE` instead")
	flags.StringVar(&f.as, "as", "", "the `FILE` that the change is about, where FILE is a copy of it")
	flags.BoolVar(&f.json, "json", false, "print the outcome as one JSON object, the text in it")
	return cmd
}

// A change is one question to the user.
type change struct {
	path     string // as shown; absolute
	file     string // FILE, absolute
	proposal control.Proposal
}

func askAbout(ctx context.Context, con *console.Console, file string, f diffFlags) error {
	ch, err := changeOf(con, file, f)
	if err != nil {
		return err
	}
	p := ch.proposal
	if p.Old == p.New && !p.IsNew {
		fmt.Fprintf(con.Err, "pollux: %q holds the proposed text already; there is nothing to decide\n", file)
		return accepted(con, ch, f, control.Answer{Accepted: true, Content: p.New})
	}
	c, err := findFor(ctx, con, ch.path)
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := propose(ctx, con, c, ch)
	switch {
	case err != nil:
		return err
	case !answer.Accepted:
		if f.json {
			err = printAnswer(con, ch, answer, false)
		}
		return errors.Join(err, console.Exit(console.CodeNo))
	}
	return accepted(con, ch, f, answer)
}

// changeOf reads both texts, before asking the user.
func changeOf(con *console.Console, file string, f diffFlags) (*change, error) {
	if file == "" {
		return nil, console.Usage(errors.New(`"" is no file; name the file that the change is about`))
	}
	ch := &change{}
	var err error
	if ch.file, err = filepath.Abs(file); err == nil {
		ch.path, err = filepath.Abs(f.as)
	}
	if err != nil {
		return nil, console.Usage(fmt.Errorf("the current folder is gone (%w); go to another one", safefile.Cause(err)))
	}
	if f.as == "" {
		ch.path = ch.file
	}
	target := f.out
	if f.write {
		target = ch.file
	}
	if err = placeFor(target); err != nil {
		return nil, err
	}
	old, exists, err := readTextFile(file)
	if err != nil {
		return nil, err
	}
	proposed, err := proposedText(con, f.from)
	if err != nil {
		return nil, err
	}
	ch.proposal = control.Proposal{Path: ch.path, Old: old, IsNew: !exists, New: proposed}
	return ch, nil
}

func proposedText(con *console.Console, from string) (string, error) {
	if from != "-" {
		content, exists, err := readTextFile(from)
		if err == nil && !exists && from != os.DevNull {
			err = fmt.Errorf("there is no file %q; name the one that holds the proposed text", from)
		}
		return content, err
	}
	if con.In == nil || console.Terminal(con.In) != nil {
		return "", console.Usage(errors.New("the proposed text is missing: pipe it in, or name its file with --from"))
	}
	return readText(con.In, "standard input")
}

// propose asks the user and waits. Ctrl-C withdraws the question.
func propose(ctx context.Context, con *console.Console, c *control.Client, ch *change) (control.Answer, error) {
	ctx, stop := console.Interrupted(ctx)
	defer stop()
	answer, err := c.Propose(ctx, ch.proposal, func() {
		if console.Terminal(con.Err) != nil {
			fmt.Fprintf(con.Err, "%q waits for your decision in %s (Ctrl-C takes it back)\n", filepath.Base(ch.path), c.Status.Editor)
		}
	})
	switch {
	case ctx.Err() != nil:
		return answer, ctx.Err()
	case err != nil:
		return answer, fmt.Errorf("no answer about %q: %w", ch.path, err)
	}
	return answer, nil
}

// accepted writes the final text to its destination.
func accepted(con *console.Console, ch *change, f diffFlags, answer control.Answer) error {
	var err error
	written := true
	switch {
	case f.write:
		err = ch.write(answer.Content)
	case f.out != "":
		err = replaceFile(f.out, answer.Content)
	case !f.json:
		_, err = io.WriteString(con.Out, answer.Content)
		return err
	default:
		written = false
	}
	if err != nil {
		written = false
		err = keepText(con, ch, f, answer.Content, err)
	}
	if f.json {
		err = errors.Join(err, printAnswer(con, ch, answer, written))
	}
	return err
}

// keepText saves an accepted text that could not be written, because it has the user's edits: in a new file next to
// its destination, or else to standard output. The returned error names the place.
func keepText(con *console.Console, ch *change, f diffFlags, content string, why error) error {
	target := ch.file
	if f.out != "" {
		target = f.out
	}
	for _, dir := range []string{filepath.Dir(target), os.TempDir()} {
		file, err := os.CreateTemp(dir, filepath.Base(target)+".accepted-*")
		if err != nil {
			continue
		}
		_, err = file.WriteString(content)
		if err = errors.Join(err, file.Close()); err == nil {
			return fmt.Errorf("%w; what you accepted is in %q", why, file.Name())
		}
		_ = os.Remove(file.Name())
	}
	if f.json {
		return why // the text is in the JSON object
	}
	_, err := io.WriteString(con.Out, content)
	return errors.Join(why, err)
}

// write changes FILE, unless it changed while the user was deciding.
func (ch *change) write(content string) error {
	now, exists, err := readTextFile(ch.file)
	if err != nil {
		return err
	}
	if now != ch.proposal.Old || exists == ch.proposal.IsNew {
		return fmt.Errorf("%q has changed while you were deciding and is left as it is; ask again, or with -o FILE for another file", ch.file)
	}
	if exists && now == content {
		return nil
	}
	return replaceFile(ch.file, content)
}

// printAnswer prints the outcome as JSON, without the text if that was written somewhere.
func printAnswer(con *console.Console, ch *change, answer control.Answer, written bool) error {
	out := struct {
		Path     string  `json:"path"`
		Accepted bool    `json:"accepted"`
		Edited   bool    `json:"edited"`
		Content  *string `json:"content,omitempty"`
	}{Path: ch.path, Accepted: answer.Accepted, Edited: answer.Edited}
	if answer.Accepted && !written {
		out.Content = &answer.Content
	}
	enc := json.NewEncoder(con.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// findFor joins the companion that serves a file, which need not exist: the one of its folder, else the one of the
// current folder. The nearest root wins, because the user is asked. Its error is never an answer of the user (SPEC
// §11.5).
func findFor(ctx context.Context, con *console.Console, path string) (*control.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			if c, err := control.Find(ctx, con.Dirs.Run, real); err == nil {
				return c, nil
			}
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	c, err := find(ctx, con, ".")
	if errors.Is(err, control.ErrNone) {
		err = errors.New(err.Error())
	}
	return c, err
}
