package tui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// lookEvery is how often the current proposal's file is looked at.
const lookEvery = time.Second

// A diskFile is what stands in a file now.
type diskFile struct {
	stamp   string // another one when the file may have changed
	exists  bool
	text    string
	problem string // why its text cannot be shown; then text is empty
}

// A disk is what is known of a proposal's file beside the proposal. The proposal was made for what the file held
// then; whoever accepts it overwrites what has come since.
type disk struct {
	seen    bool
	base    diskFile // what the proposal is compared with
	now     diskFile
	changed bool
}

// What comes of a look.
type (
	tickMsg struct{}
	diskMsg struct {
		id     string
		now    diskFile
		same   bool // the stamp is the one that was known
		accept bool // the user has asked to accept, and waits for it
	}
)

func tick() tea.Cmd { return tea.Tick(lookEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

// look reads the current proposal's file when it has changed since the last look.
func (m *model) look(accept bool) tea.Cmd {
	d, doc := m.diff(), m.docs[m.current]
	if d == nil || doc == nil || m.past != nil {
		return nil
	}
	id, path, known := d.ID, d.Path, doc.disk.now.stamp
	read := m.o.read()
	return func() tea.Msg {
		now, same := read(path, known)
		return diskMsg{id, now, same, accept}
	}
}

func (o *Options) read() func(path, known string) (diskFile, bool) {
	if o.readFile != nil {
		return o.readFile
	}
	return readDisk
}

// readDisk reads a file unless its stamp is the known one.
func readDisk(path, known string) (now diskFile, same bool) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now.stamp = "none"
	case err != nil:
		now.stamp, now.problem = err.Error(), "it cannot be read"
	default:
		now.exists, now.stamp = true, fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
	}
	if now.stamp == known {
		return diskFile{}, true
	}
	switch {
	case !now.exists || now.problem != "":
	case !info.Mode().IsRegular():
		now.problem = "it is no file any more"
	case info.Size() > maxEdited:
		now.problem = "it is too big to be shown"
	default:
		data, _, err := safefile.ReadRegular(path, maxEdited)
		switch {
		case err != nil:
			now.problem = "it cannot be read"
		case text.IsBinary(data):
			now.problem = "it is not text any more"
		default:
			now.text = string(data)
		}
	}
	return now, false
}

// looked takes what a look has found, and goes on with an acceptance that waits for it.
func (m *model) looked(msg diskMsg) tea.Cmd {
	d, doc := m.diff(), m.docs[msg.id]
	if doc == nil {
		return nil
	}
	if !msg.same {
		m.learn(msg, doc)
	}
	if !msg.accept || d == nil || d.ID != msg.id || m.past != nil {
		return nil
	}
	return m.acceptNow()
}

// learn compares the file with what the proposal was made for.
func (m *model) learn(msg diskMsg, doc *document) {
	before := doc.disk.changed
	doc.disk.now = msg.now
	if !doc.disk.seen {
		doc.disk.seen = true
		doc.disk.base = diskFile{exists: !doc.texts.IsNew, text: doc.texts.Old}
		if d := m.byID(msg.id); d != nil && strings.HasPrefix(d.Owner, proposer) {
			doc.disk.base = msg.now // pollux diff may show a text beside the file's own
		}
	}
	base, now := doc.disk.base, msg.now
	doc.disk.changed = now.exists != base.exists || now.text != base.text || now.problem != base.problem
	if doc.disk.changed && msg.id == m.current && m.past == nil && (!before || m.notice.text == "") {
		m.complain(doc.disk.says(m.name(doc.path)))
	}
}

// proposer begins the owner of what pollux diff asks.
const proposer = "pollux diff"

// says tells how the file has changed.
func (k *disk) says(name string) string {
	switch {
	case k.now.problem != "":
		return name + " has changed on disk: " + k.now.problem
	case !k.now.exists:
		return name + " is gone from the disk; c compares with nothing"
	case !k.base.exists:
		return name + " has come into being; c compares with it"
	}
	return name + " has changed on disk since; c compares with it as it is now"
}

// compareNow makes the file as it is now the left side. The proposal stays as the user has it.
func (m *model) compareNow() tea.Cmd {
	d, doc := m.diff(), m.docs[m.current]
	switch {
	case d == nil || doc == nil:
		return nil
	case !doc.disk.changed:
		m.say("the file is as it was when this was proposed")
		return nil
	case doc.disk.now.problem != "":
		m.complain(doc.disk.says(m.name(d.Path)))
		return nil
	}
	doc.rebase(doc.disk.now)
	m.home()
	if doc.disk.now.exists && doc.disk.now.text == doc.content() {
		m.say("the file holds the proposed text already")
	} else {
		m.say("this is the file as it is now: accepting loses what is marked -")
	}
	return nil
}

// rebase compares the proposal with another text.
func (d *document) rebase(now diskFile) {
	d.disk.base, d.disk.changed = now, false
	d.texts.Old, d.texts.IsNew = now.text, !now.exists
	d.set(newChange(text.ToLF(now.text), !now.exists, d.change.text()))
}

// An overwrite asks before a file is accepted that has changed on disk.
type overwrite struct {
	id   string
	text string
	keys []button
}

func (m *model) newOverwrite(id, name string, doc *document) *overwrite {
	o := &overwrite{id: id, text: name + " has changed on disk since this was proposed. Accept all the same?", keys: []button{{"c", "compare first"}, {"y", "accept, and lose that"}, {"n", "not yet"}}}
	switch {
	case doc.disk.now.problem != "":
		o.text, o.keys = name+": "+doc.disk.now.problem+". Accept all the same?", []button{{"y", "yes"}, {"n", "no"}}
	case !doc.disk.now.exists:
		o.text = name + " is gone from the disk. Accept all the same?"
		o.keys[1].does = "accept, and make it anew"
	}
	return o
}

func (o *overwrite) key(m *model, key, _ string) tea.Cmd {
	switch key {
	case "c", "C":
		m.dialog = nil
		return m.compareNow()
	case "y", "Y":
		m.dialog = nil
		if d := m.diff(); d != nil && d.ID == o.id {
			return m.acceptAnyway(*d)
		}
	case "n", "N", "esc", "q", "ctrl+c":
		m.dialog = nil
	}
	return nil
}
func (o *overwrite) paste(*model, string) tea.Cmd { return nil }
func (o *overwrite) about() string                { return o.id }
func (o *overwrite) whole() bool                  { return false }
func (o *overwrite) draw(*model, *frame)          {}
func (o *overwrite) question() string             { return o.text }
func (o *overwrite) buttons(*model) []button      { return o.keys }
