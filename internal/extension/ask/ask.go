// Package ask puts the questions of extension/consent to a person: on this process's terminal, or in the editor of
// the companion that serves the folder, through package control. It is the only place where the extension half uses
// the companion half.
package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/extension/consent"
)

// editorWait is how long a question stays open in an editor before the run is given up: longer than a coffee break,
// shorter than Gemini CLI waits for a tool (ten minutes).
const editorWait = 9 * time.Minute

// Typed is consent by a command that somebody typed into this process's shell. dirs are the socket folders, as
// control.InAgent takes them; they tell an agent's shell from the user's.
func Typed(dirs []string) consent.Giver {
	return consent.Typed(func(ctx context.Context) error { return control.MayDecide(ctx, dirs) })
}

// A Terminal asks on this process's terminal. The caller makes sure that In is a terminal.
type Terminal struct {
	In   io.Reader
	Out  io.Writer
	Dirs []string // the socket folders, as control.InAgent takes them; they tell an agent's shell from the user's
}

// Ask prints the question and reads a letter or word followed by Enter. Anything else, and the end of input, is no
// answer. In an agent's shell it returns consent.ErrAgent.
func (t *Terminal) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	if control.InAgent(ctx, t.Dirs) {
		return "", consent.ErrAgent
	}
	fmt.Fprintln(t.Out, q.Title())
	for _, line := range q.Lines() {
		fmt.Fprintln(t.Out, "  "+line)
	}
	var keys []string
	for _, c := range q.Choices() {
		if c.Key != "" {
			keys = append(keys, fmt.Sprintf("[%s] %s", c.Key, c.Label))
		}
	}
	fmt.Fprintf(t.Out, "%s; Enter: not now: ", strings.Join(keys, "  "))
	line, err := ReadLine(ctx, t.In)
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(t.Out)
		return "", err
	}
	return q.AnswerOf(line), nil
}

// ReadLine reads one typed line of at most 1 MiB, with its line end. If ctx ends first, it returns ctx's cause; the
// blocked read stays until the process ends.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(in, 1<<20)).ReadString('\n')
		done <- result{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-done:
		return r.line, r.err
	}
}

// An Editor asks in the editor of the companion that serves Folder. The question appears in a dialog that a model's
// shell cannot answer (SPEC §11.1).
type Editor struct {
	Dirs   []string // the socket folders, as control.Find takes them
	Folder string   // absolute and canonical
	// Asking is told which editor is about to show the question; nil for nobody.
	Asking func(editor string)
}

// Ask puts the question to the person at the editor. It returns consent.ErrNobody if there is no companion, or no
// page or editor that can ask.
func (e *Editor) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	c, err := control.Find(ctx, e.Dirs, e.Folder)
	if err != nil {
		return "", fmt.Errorf("%w: %w", consent.ErrNobody, err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, editorWait)
	defer cancel()
	if e.Asking != nil {
		e.Asking(c.Status.Editor)
	}
	var labels []string
	for _, choice := range q.Choices() {
		labels = append(labels, choice.Label)
	}
	choice, err := c.Ask(ctx, control.Question{Title: q.Title(), Message: strings.Join(q.Lines(), "\n"), Choices: labels})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%w: the question stood in the editor for %v without an answer", consent.ErrNobody, editorWait)
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("%w: %w", consent.ErrNobody, err)
	case choice == nil:
		return "", nil
	}
	return q.AnswerOf(*choice), nil
}

// First asks the askers in turn until one reaches the person.
func First(askers ...consent.Asker) consent.Asker { return first(askers) }

type first []consent.Asker

func (f first) Ask(ctx context.Context, q consent.Question) (consent.Answer, error) {
	err := consent.ErrNobody
	for _, a := range f {
		answer, e := a.Ask(ctx, q)
		if !errors.Is(e, consent.ErrNobody) {
			return answer, e
		}
		err = e
	}
	return "", err
}
