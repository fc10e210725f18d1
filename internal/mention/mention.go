// Package mention puts a mention of a file into the prompt of an agent: by the agent's own protocol, or by typing it into the agent's
// terminal.
package mention

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/typein"
)

// maxQuoted is the largest file, in bytes, whose mentioned lines are read.
const maxQuoted = 4 << 20

// A Mentioner puts mentions into the prompts of sessions.
type Mentioner struct {
	// Sessions lists the sessions. Tell tells one of a mention by its agent's protocol; the error is mcp.ErrNoMention where there is none.
	Sessions func() []mcp.SessionInfo
	Tell     func(session int, m mcp.Mention) error
	// Lines says how a person names lines to an agent, after a file's name.
	Lines func(agent string, first, last int) string
	// Type has the editor type into the process of one of its terminals; nil without an editor.
	Type func(ctx context.Context, pid int, text string) (typed bool, err error)
	// May returns why nobody may mention a file; Denied, why one agent must not hear of it. nil: nothing speaks against it.
	May    func(path string) error
	Denied func(agent, path string) error
}

// Mention puts a mention into the prompt of a session: by the agent's own protocol, or else by typing into its terminal. The user's own
// words are always typed, since no protocol takes them.
func (t Mentioner) Mention(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	if err := t.may(m); err != nil {
		return control.Mentioned{}, err
	}
	s, err := t.listener(m)
	if m.Terminal > 0 && errors.Is(err, errUnconnected) {
		return t.unconnected(ctx, m)
	}
	if err != nil {
		return control.Mentioned{}, err
	}
	if err := t.Denied(s.Agent, m.Path); err != nil {
		return control.Mentioned{}, err
	}
	done := control.Mentioned{Session: s.Label, By: "protocol"}
	if m.Words == "" && s.ID > 0 {
		err := t.Tell(s.ID, mcp.Mention{Path: m.Path, First: m.First, Last: m.Last, Text: linesOf(m)})
		if err == nil || !errors.Is(err, mcp.ErrNoMention) {
			return done, err
		}
	}
	if s.PID == 0 {
		return done, fmt.Errorf("pollux does not know the process of %s, so it cannot type into its terminal; type @ and the name there yourself", s.Label)
	}
	done.Text = t.typedAs(s.Agent, s.PID, m)
	done.By, err = t.typeInto(ctx, s.PID, done.Text)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Label, err)
	}
	return done, err
}

func (t Mentioner) may(m control.Mention) error {
	if m.First < 0 || m.Last < m.First || m.First == 0 && m.Last != 0 {
		return fmt.Errorf("the lines %d to %d are none; the first is 1", m.First, m.Last)
	}
	if m.Words != "" {
		if err := typein.Check(m.Words); err != nil {
			return err
		}
	}
	if err := typein.Check(m.Path); err != nil {
		return fmt.Errorf("%q: %w", m.Path, err)
	}
	return t.May(m.Path)
}

// errUnconnected: what runs in a terminal of the editor's is not connected to this companion.
var errUnconnected = errors.New("no agent that is connected runs in this terminal")

// unconnected types into a terminal of the editor's whose agent is not connected, as far as anybody knows.
func (t Mentioner) unconnected(ctx context.Context, m control.Mention) (control.Mentioned, error) {
	done := control.Mentioned{Session: "the terminal", By: "editor", Text: t.typedAs("", m.Terminal, m)}
	if t.Type == nil {
		return done, errUnconnected
	}
	typed, err := t.Type(ctx, m.Terminal, done.Text)
	if err == nil && !typed {
		err = errUnconnected
	}
	return done, err
}

// listener returns the session that a mention is for.
func (t Mentioner) listener(m control.Mention) (mcp.SessionInfo, error) {
	all := t.Sessions()
	if m.Terminal > 0 {
		for _, s := range all {
			if leader, ok := proc.Leader(s.PID); s.PID > 0 && ok && leader == m.Terminal {
				return s, nil
			}
		}
		return mcp.SessionInfo{}, errUnconnected
	}
	fits := slices.DeleteFunc(slices.Clone(all), func(s mcp.SessionInfo) bool {
		return m.Session != 0 && s.ID != m.Session || m.Agent != "" && s.Agent != m.Agent
	})
	if len(fits) == 1 {
		return fits[0], nil
	}
	if len(all) == 0 {
		return mcp.SessionInfo{}, errors.New("no agent is connected; start one in this folder, and pollux doctor says why it does not connect")
	}
	var labels []string
	for _, s := range all {
		labels = append(labels, s.Label)
	}
	if len(fits) == 0 {
		return mcp.SessionInfo{}, fmt.Errorf("no such session is connected; there are: %s", strings.Join(labels, ", "))
	}
	return mcp.SessionInfo{}, fmt.Errorf("%d sessions are connected; say which one by its number: %s", len(fits), strings.Join(labels, ", "))
}

// linesOf returns the text of the mentioned lines; "" when it is not known.
func linesOf(m control.Mention) string {
	if m.First == 0 {
		return ""
	}
	data, _, err := safefile.ReadRegular(m.Path, maxQuoted)
	lines := strings.SplitAfter(string(data), "\n")
	if err != nil || m.First > len(lines) {
		return ""
	}
	return strings.TrimRight(strings.Join(lines[m.First-1:min(m.Last, len(lines))], ""), "\r\n")
}

// typedAs writes a mention as a person would type it to an agent: the name relative to the agent's own folder, with a backslash before
// each character that would end it. It ends with a blank, so that what comes next stands apart.
func (t Mentioner) typedAs(agent string, pid int, m control.Mention) string {
	path := m.Path
	if dir, err := proc.Dir(pid); err == nil && paths.Within(paths.Real(dir), paths.Real(path)) {
		if rel, err := filepath.Rel(paths.Real(dir), paths.Real(path)); err == nil && rel != "." {
			path = rel
		}
	}
	var b strings.Builder
	b.WriteByte('@')
	for _, r := range path {
		if strings.ContainsRune(` \(){},;!?"[]`+"'`$&*<>|#~", r) && (r != '\\' || filepath.Separator == '/') {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	if m.First > 0 {
		b.WriteString(t.Lines(agent, m.First, m.Last))
	}
	b.WriteByte(' ')
	if m.Words != "" {
		b.WriteString(m.Words + " ")
	}
	return b.String()
}

// typeInto types a text into the terminal of a process: the editor's own terminal, or through the program that shows it.
func (t Mentioner) typeInto(ctx context.Context, pid int, text string) (by string, err error) {
	place, err := typein.Find(pid)
	if err != nil {
		return "", err
	}
	by, err = place.Type(ctx, text)
	if errors.Is(err, typein.ErrNoTerminal) && t.Type != nil {
		if typed, asked := t.Type(ctx, place.Leader.PID, text); asked == nil && typed {
			return "editor", nil
		}
	}
	return by, err
}
