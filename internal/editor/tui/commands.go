package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/text"
)

// askWithin bounds a question to the companion.
const askWithin = 20 * time.Second

// Messages with the companion's answers.
type (
	loadedMsg struct {
		id, path string
		texts    control.Texts
		text     string
		version  int
		err      error
	}
	textMsg struct {
		id      string
		text    string
		version int
		err     error
	}
	sentMsg struct {
		to      Companion
		id      string
		text    string // with line feeds
		version int    // of the text
		err     error
	}
	decidedMsg struct {
		id   string
		what string
		err  error
	}
	ruleMsg struct {
		what string
		err  error
	}
	pastMsg struct {
		entries []control.PastProposal
		err     error
	}
	entryMsg struct {
		entry control.PastProposal
		texts control.Texts
		err   error
	}
	undoneMsg struct {
		name string
		err  error
	}
	editedMsg struct {
		id   string
		path string // of the proposal
		file string // what the editor has written, in a private folder
		text string // the text before editing
		err  error
	}
)

// ask makes a command from a call to the companion. Without a companion it does nothing.
func (m *model) ask(f func(context.Context, Companion) tea.Msg) tea.Cmd {
	c := m.companion
	if c == nil {
		return nil
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), askWithin)
		defer cancel()
		return f(ctx, c)
	}
}

// load reads the texts of a diff.
func (m *model) load(id, path string) tea.Cmd {
	return m.ask(func(ctx context.Context, c Companion) tea.Msg {
		msg := loadedMsg{id: id, path: path}
		if msg.texts, msg.err = c.Texts(ctx, id); msg.err == nil {
			msg.text, msg.version, msg.err = c.Text(ctx, id)
		}
		return msg
	})
}

// reload reads a diff that was changed elsewhere.
func (m *model) reload(id string) tea.Cmd {
	return m.ask(func(ctx context.Context, c Companion) tea.Msg {
		text, version, err := c.Text(ctx, id)
		return textMsg{id, text, version, err}
	})
}

// send sends our text of a diff to the companion, one edit at a time.
func (m *model) send(id string, d *document) tea.Cmd {
	if d.waiting || d.known == d.change.text() {
		return nil
	}
	d.waiting = true
	d.known = d.change.text()
	lf, content, from := d.known, d.content(), d.version
	return m.ask(func(ctx context.Context, c Companion) tea.Msg {
		version, err := c.Edit(ctx, id, content, &from)
		return sentMsg{c, id, lf, version, err}
	})
}

// decide settles a diff with exactly the text shown.
func (m *model) decide(id, name string, accept bool) tea.Cmd {
	decision := control.Decision{ID: id, Accept: accept}
	what := "rejected " + name
	if accept {
		what = "accepted " + name
		content := m.docs[id].content()
		decision.Content, decision.Seen = &content, m.docs[id].seen()
	}
	m.deciding[id] = what
	return m.ask(func(ctx context.Context, c Companion) tea.Msg { return decidedMsg{id, what, c.Decide(ctx, decision)} })
}

// paused says whether agents are told nothing of what the user looks at.
func (m *model) paused() bool {
	return slices.ContainsFunc(m.queue.Troubles, func(t control.Trouble) bool { return t.ID == control.PausedTrouble })
}

// pause has agents be told nothing of what the user looks at, or everything again.
func (m *model) pause() tea.Cmd {
	to, what := !m.paused(), "agents are told again what you look at"
	if to {
		what = "agents are told nothing of what you look at; p resumes"
	}
	return m.ask(func(ctx context.Context, c Companion) tea.Msg { return ruleMsg{what, c.Pause(ctx, to)} })
}

func (m *model) setRule(r review.Rule, what string) tea.Cmd {
	return m.ask(func(ctx context.Context, c Companion) tea.Msg { return ruleMsg{what, c.SetRule(ctx, r)} })
}

func (m *model) loadPast() tea.Cmd {
	return m.ask(func(ctx context.Context, c Companion) tea.Msg {
		entries, err := c.History(ctx)
		return pastMsg{entries, err}
	})
}

func (m *model) loadEntry(e control.PastProposal) tea.Cmd {
	return m.ask(func(ctx context.Context, c Companion) tea.Msg {
		texts, err := c.PastTexts(ctx, e.ID)
		return entryMsg{e, texts, err}
	})
}

func (m *model) undo(e control.PastProposal) tea.Cmd {
	name := m.name(e.Path)
	return m.ask(func(ctx context.Context, c Companion) tea.Msg { return undoneMsg{name, c.Undo(ctx, e.ID)} })
}

// edit opens the text of a diff in the user's editor, in a private file with the real file's extension.
func (m *model) edit(id, path string, d *document) tea.Cmd {
	if m.o.Editor == "" {
		m.complain("no editor is known; set EDITOR (for example EDITOR=vi) and start again")
		return nil
	}
	content := d.content()
	file, err := writePrivate(path, content)
	if err != nil {
		m.complain("the text cannot be edited: " + err.Error())
		return nil
	}
	cmd := editorCommand(m.o.Editor, file)
	cmd.Env = m.o.Env
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return editedMsg{id, path, file, content, err} })
}

// writePrivate writes the text to a file in a new private folder.
func writePrivate(path, content string) (file string, err error) {
	dir, err := os.MkdirTemp("", "pollux-edit-") // 0700
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, safeName(filepath.Base(path)))
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return file, nil
}

// safeName returns a file's name without characters that an editor or a shell would misread.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, "-+.")
	if name == "" || len(name) > 200 {
		return "text" + filepath.Ext(name)[:min(len(filepath.Ext(name)), 10)]
	}
	return name
}

// maxEdited bounds the text that an editor may leave, in bytes.
const maxEdited = 16 << 20

// takeEdited reads the text that the editor left, and removes the file unless it holds the user's own changes.
func takeEdited(msg editedMsg) (content string, err error) {
	defer func() {
		if err == nil && content == msg.text || msg.err != nil {
			_ = os.RemoveAll(filepath.Dir(msg.file))
		}
	}()
	if msg.err != nil {
		return "", errors.New("the editor failed, and your edit was not taken: " + msg.err.Error())
	}
	info, err := os.Stat(msg.file)
	if err == nil && info.Size() > maxEdited {
		err = fmt.Errorf("the edited text is too big, and was not taken; it stays in %s", msg.file)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(msg.file)
	}
	switch {
	case err != nil:
		return "", err
	case text.IsBinary(data):
		return "", fmt.Errorf("the edited file is not text in UTF-8, and was not taken; it stays in %s", msg.file)
	}
	return keepEnd(msg.text, string(data)), nil
}

// keepEnd drops a line end at the end of the text that the editor added by itself (SPEC F-6).
func keepEnd(before, after string) string {
	if before == "" || text.ShapeOf(before).FinalNewline {
		return after
	}
	if cut := strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r"); !text.ShapeOf(cut).FinalNewline {
		return cut
	}
	return after
}
