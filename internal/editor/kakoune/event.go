package kakoune

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/ownpipe"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// askWithin bounds how long Kakoune, which waits, is held up by one event.
const askWithin = 5 * time.Second

// maxEvent bounds an event and its answer, in bytes.
const maxEvent = 4 << 20

// An Event is what the plugin tells: a name with arguments, and what Kakoune says of itself then.
type Event struct {
	Name   string   `json:"name"`
	Args   []string `json:"args,omitempty"`
	Client string   `json:"client,omitempty"`
	Dir    string   `json:"dir,omitempty"`  // the folder of the shell, against which names of buffers count
	File   string   `json:"file,omitempty"` // the buffer's file, or its name
	// Desc is the main selection, as "anchor line.column,cursor line.column", from 1 and in bytes.
	Desc string `json:"desc,omitempty"`
	// Prefix is the selection's first line up to its first character, with it. Chosen is the selection.
	Prefix string `json:"prefix,omitempty"`
	Chosen string `json:"chosen,omitempty"`
}

// FromKakoune is the event that a shell of Kakoune's tells, by its variables.
func FromKakoune(name string, args []string) (e Event, socket string) {
	dir, _ := os.Getwd()
	e = Event{
		Name: name, Args: args, Client: os.Getenv("kak_client"), Dir: dir, File: os.Getenv("kak_buffile"), Desc: os.Getenv("kak_selection_desc"),
		Prefix: os.Getenv("kak_opt_pollux_prefix"), Chosen: os.Getenv("kak_opt_pollux_chosen"),
	}
	if e.Prefix == "" {
		e.Prefix, e.Chosen = handed("prefix"), handed("chosen")
	}
	return e, os.Getenv("kak_opt_pollux_socket")
}

// handed is a text that is too long for an environment: the plugin has just written it to a file.
func handed(name string) string {
	path := filepath.Join(os.Getenv("kak_opt_pollux_dir"), name)
	data, _, err := safefile.ReadRegular(path, maxEvent/8) // JSON may make six bytes of one
	if err != nil {
		return ""
	}
	_ = os.Remove(path)
	return string(data)
}

// Tell tells an event to the pollux that listens at socket, or to one that is just starting. The answer is what Kakoune is to do.
func Tell(ctx context.Context, socket string, e Event) (script string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if socket == "" {
		data, err := safefile.ReadPrivate(filepath.Join(os.Getenv("kak_opt_pollux_dir"), socketFile), ownpipe.MaxPath)
		if err != nil {
			return "", err
		}
		socket = string(data)
	}
	conn, err := ownpipe.Dial(ctx, ownpipe.Name(socket))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	if err := json.NewEncoder(conn).Encode(e); err != nil {
		return "", err
	}
	err = json.NewDecoder(io.LimitReader(conn, maxEvent)).Decode(&script)
	return script, err
}

// hear reads one event and answers it.
func hear(conn net.Conn, answer func(Event) string) error {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askWithin))
	var e Event
	if err := json.NewDecoder(io.LimitReader(conn, maxEvent)).Decode(&e); err != nil {
		return err
	}
	return json.NewEncoder(conn).Encode(answer(e))
}

// A position counts as LSP does: lines from 0, and UTF-16 units.
type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// behind is the place behind a text that begins at p.
func (p position) behind(s string) position {
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		return position{p.Line + strings.Count(s, "\n"), text.UTF16Len(s[i+1:])}
	}
	return position{p.Line, p.Character + text.UTF16Len(s)}
}

// column is the place's byte in its line of a file, from 1.
func (p position) column(path string) int {
	data, _, err := safefile.ReadRegular(path, maxText)
	lines := strings.Split(string(data), "\n")
	if err != nil || p.Line >= len(lines) {
		return 1
	}
	at := 0
	for i, r := range lines[p.Line] {
		if at >= p.Character {
			return i + 1
		}
		at += text.UTF16Len(string(r))
	}
	return len(lines[p.Line]) + 1
}

// A place is where the user is in a file: a cursor, and what is selected beside the character below it.
type place struct {
	cursor, start, end position
	chosen             string
	lines              [2]int // first and last, from 1
}

// place reads where the user is. ok is false for what no Kakoune says.
func (e Event) place() (at place, ok bool) {
	var anchor, cursor [2]int // line and byte, from 1
	if _, err := fmt.Sscanf(e.Desc, "%d.%d,%d.%d", &anchor[0], &anchor[1], &cursor[0], &cursor[1]); err != nil {
		return at, false
	}
	first, last := anchor, cursor
	backwards := cursor[0] < anchor[0] || cursor[0] == anchor[0] && cursor[1] < anchor[1]
	if backwards {
		first, last = cursor, anchor
	}
	at.lines = [2]int{first[0], last[0]}
	prefix := e.Prefix
	_, n := utf8.DecodeLastRuneInString(prefix)
	prefix = prefix[:len(prefix)-n]
	at.start = position{first[0] - 1, text.UTF16Len(prefix)}
	if e.Prefix == "" { // it was too long to be told
		at.start.Character = first[1] - 1
	}
	at.cursor, at.end = at.start, at.start
	if first == last {
		return at, true
	}
	_, n = utf8.DecodeLastRuneInString(e.Chosen)
	if !backwards {
		at.cursor = at.start.behind(e.Chosen[:len(e.Chosen)-n])
	}
	at.end, at.chosen = at.start.behind(e.Chosen), e.Chosen
	return at, true
}

// path is the absolute path of a buffer's file by its name; ok is false for a buffer that is no file.
func (e Event) path(name string) (path string, ok bool) {
	if rest, home := strings.CutPrefix(name, "~/"); home {
		dir, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		name = filepath.Join(dir, rest)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.Dir, name)
	}
	info, err := os.Stat(name)
	return name, err == nil && info.Mode().IsRegular()
}

// quote makes a word of Kakoune's language.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// command is a command of Kakoune's with its arguments quoted.
func command(name string, args ...string) string {
	for _, a := range args {
		name += " " + quote(a)
	}
	return name + "\n"
}

// in has a script run where a client is, or nowhere when the client has gone. While none has told anything, it is the first one.
func in(client, script string) string {
	if client == "" {
		return command("pollux-in", script)
	}
	return "try %{ " + command("evaluate-commands -client "+quote(client), script) + "}\n"
}

// say shows a message.
func say(format string, args ...any) string {
	return command("echo -markup", "{Information}pollux: "+strings.ReplaceAll(fmt.Sprintf(format, args...), "{", `\{`))
}

// number is an argument that is one, 0 for others.
func number(args []string) int {
	if len(args) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(args[0])
	return n
}
