// Package console is what every command of pollux shares: the streams, colours and signals of a terminal, answers in words and in
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

// A Console is one run of the command line. Its fields are set before a command runs, and not changed afterwards.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	// Dirs are the user's folders, Settings what they have configured; both are empty for commands that work without a home.
	Dirs     settings.Dirs
	Settings settings.Settings
	Log      *slog.Logger
	// Verbose says that the user wants to see the log.
	Verbose bool
}

// Note tells the user something that stops nothing.
func (c *Console) Note(text string) {
	fmt.Fprintf(c.Err, "pollux: note: %s\n", words.Printable(text))
}

// Say prints one line of a result. Foreign text in it is made safe for the terminal.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintln(c.Out, words.Printable(fmt.Sprintf(format, args...)))
}

// PrintJSON is WriteJSON to standard output.
func (c *Console) PrintJSON(v any) error { return WriteJSON(c.Out, v) }

// WriteJSON writes v for programs: indented, and nothing escaped for HTML. What
// a terminal would obey or a reader not see is escaped, which JSON reads back as the same.
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

// TellWhoTyped says to a person at a terminal what a server on standard input waits for: the messages of a program.
func (c *Console) TellWhoTyped(whose string) {
	if Terminal(c.In) != nil {
		fmt.Fprintf(c.Err, "pollux: this is for programs; it waits for messages of %s on standard input. Ctrl-C ends it.\n", whose)
	}
}

// Terminal is a stream where it is a terminal, else nil.
func Terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && isTerminal(f) {
		return f
	}
	return nil
}

// A Colour is a terminal's code for it.
type Colour string

// The colours that pollux uses.
const (
	Red  Colour = "\x1b[31m"
	Bold Colour = "\x1b[1m"
)

// Paint colours text for a terminal that wants it, and for nothing else.
func Paint(w io.Writer, c Colour, text string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || Terminal(w) == nil {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// Folders lists folders for a person. A folder's name may hold what commands a terminal.
func Folders(paths []string) string { return words.Printable(strings.Join(paths, ", ")) }

// List is s, never nil: an empty list in JSON is [].
func List[T any, S ~[]T](s S) S {
	if s == nil {
		return S{}
	}
	return s
}

// Each is what f makes of each value of a list, never nil.
func Each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
