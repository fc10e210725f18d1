// Package console holds what all commands share: a terminal's streams, colours and signals, output in words and in
// JSON, and the exit codes of SPEC §11.5.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/pollux-companion/pollux/internal/settings"
	"github.com/pollux-companion/pollux/internal/words"
)

// A Console is one run of the command line. Its fields are set before a command runs, and do not change afterwards.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	// Dirs are the user's folders, Settings the user's settings. Both are empty for commands that work without a
	// home.
	Dirs     settings.Dirs
	Settings settings.Settings
	Log      *slog.Logger
	// Verbose shows the log to the user.
	Verbose bool
}

// Note tells the user something that does not stop the command.
func (c *Console) Note(text string) {
	fmt.Fprintf(c.Err, "pollux: note: %s\n", words.Printable(text))
}

// Say prints one line of a result. It makes untrusted text in it safe for the terminal.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintln(c.Out, words.Printable(fmt.Sprintf(format, args...)))
}

// PrintJSON is WriteJSON to standard output.
func (c *Console) PrintJSON(v any) error { return WriteJSON(c.Out, v) }

// WriteJSON writes v as indented JSON, without escapes for HTML. It escapes control and invisible characters, which
// does not change the decoded value.
func WriteJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, words.EscapeJSON(text.String()))
	return err
}

// TellWhoTyped tells a user at a terminal what a server on standard input expects: the messages of a program.
func (c *Console) TellWhoTyped(whose string) {
	if Terminal(c.In) != nil {
		fmt.Fprintf(c.Err, "pollux: this is for programs; it waits for messages of %s on standard input. Ctrl-C ends it.\n", whose)
	}
}

// Terminal returns a stream if it is a terminal, else nil.
func Terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}

// A Colour is the terminal code of a colour.
type Colour string

// The colours that pollux uses.
const (
	Red  Colour = "\x1b[31m"
	Bold Colour = "\x1b[1m"
)

// Paint colours text if w is a terminal that supports it.
func Paint(w io.Writer, c Colour, text string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || Terminal(w) == nil {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// Folders lists folders for a person. It escapes control characters in their names.
func Folders(paths []string) string { return words.Printable(strings.Join(paths, ", ")) }

// List returns s, never nil: an empty list in JSON is [].
func List[T any, S ~[]T](s S) S {
	if s == nil {
		return S{}
	}
	return s
}

// Each returns f of each value in a list, never nil.
func Each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
