// Package contract holds the wires between agents and a companion as numbered
// vectors, and plays them against any companion. Each vector is an archive of
// raw requests, with the raw answers and events that are expected for them.
//
// An archive is named after its number in the specification (F-4a.txtar) and
// begins with a sentence that says what it shows. Its files are played in order;
// the first word of a file's name says what it is:
//
//	settings   lines "name: value" for whoever starts the companion
//	editor     lines of JSON: what the user does ({"report": …}, {"accept": …})
//	request    a raw HTTP request, lines ending with LF here
//	response   the raw answer, headers sorted, Date left out
//	events     the events of the session's stream since the last look
//	send       messages, a line each, for the newest socket; (end) ends it
//	messages   the messages of that socket since the last look, answers first
//	do         lines of JSON for the package that plays the archive
//	see        what that package then sees; the second word says of what
//
// In all of them {{host}}, {{token}}, {{session}}, {{dir}} and {{event}} (the id
// of the last event) stand for what differs from run to run; {{life}} and {{ms}}
// only in what is expected. {{first}} is the first of two sessions, {{port}} the
// port of {{host}}, {{short}} the token without its last byte and {{1000 x}} a
// thousand times x. {{root}} is the workspace's folder, in which {{dir}} lies. With the setting "connect: yes" the session is opened
// beforehand, with "stream: yes" its stream as well, up to the first context.
// "without: writeFile" wants a companion that has not that setting.
// "agent: claude" is another agent's wire: its token, and its way to open a
// session. A request that is not followed by its response waits for it.
//
// The folder drivers holds programs that play the user in front of real editors, for `pollux conform`.
//
// What cannot be seen on the wire is played by the tests of another package,
// which the archive's last line before its files names: "played by: internal/history".
package contract

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// Wire plays the archives that name nobody: any companion can be held against them.
const Wire = "internal/agent/mcp"

//go:embed *.txtar
var archives embed.FS

// An Archive is one vector.
type Archive struct {
	Name     string // "F-4a"
	About    string // what it shows
	Player   string // the folder of the package whose tests play it
	Settings map[string]string
	Steps    []Step
}

// A Step is one file of an archive.
type Step struct {
	File string // its name in the archive
	Kind string // its first word
	Text string
}

// Expects says whether the step holds what must come.
func (s Step) Expects() bool {
	return slices.Contains([]string{"response", "events", "messages", "see"}, s.Kind)
}

// Number is the number of the specification that the vector belongs to: "F-4".
func (a *Archive) Number() string { return strings.TrimRight(a.Name, "abcdefghijklmnopqrstuvwxyz") }

// Agent is the name of the agent that speaks so, "" for Gemini CLI.
func (a *Archive) Agent() string { return a.Settings["agent"] }

// NeedsEditor says whether somebody must play the user: such a vector cannot be
// tried on a companion that somebody works with.
func (a *Archive) NeedsEditor() bool {
	for _, s := range a.Steps {
		if s.Kind == "editor" {
			return true
		}
	}
	return false
}

// All returns every vector, by name.
func All() ([]*Archive, error) {
	names, err := fs.Glob(archives, "*.txtar")
	if err != nil {
		return nil, err
	}
	var all []*Archive
	for _, name := range names {
		data, err := archives.ReadFile(name)
		if err != nil {
			return nil, err
		}
		a, err := parse(strings.TrimSuffix(path.Base(name), ".txtar"), data)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// PlayedBy returns the vectors that the tests of one package play, by name.
func PlayedBy(player string) ([]*Archive, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a *Archive) bool { return a.Player != player })
	if len(all) == 0 {
		return nil, fmt.Errorf("no vector is played by %s", player)
	}
	return all, nil
}

// parse reads one archive.
func parse(name string, data []byte) (*Archive, error) {
	file := txtar.Parse(data)
	about, player, named := strings.Cut(strings.TrimSpace(string(file.Comment)), "\nplayed by: ")
	if !named {
		player = Wire
	}
	a := &Archive{Name: name, About: about, Player: player, Settings: map[string]string{}}
	if a.About == "" {
		return nil, fmt.Errorf("%s: say first what it shows", name)
	}
	for _, f := range file.Files {
		kind, _, _ := strings.Cut(f.Name, " ")
		switch kind {
		case "settings":
			for line := range strings.Lines(string(f.Data)) {
				key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
				if !ok {
					return nil, fmt.Errorf("%s: setting %q is not name: value", name, line)
				}
				a.Settings[key] = value
			}
		case "editor", "request", "response", "events", "send", "messages", "do", "see":
			a.Steps = append(a.Steps, Step{File: f.Name, Kind: kind, Text: string(f.Data)})
		default:
			return nil, fmt.Errorf("%s: unknown kind of file %q", name, f.Name)
		}
	}
	return a, nil
}

// Rewrite puts what was really seen, as Play and Perform return it, in place of
// what the archive in a folder expects.
func (a *Archive) Rewrite(folder string, got []Step) error {
	name := filepath.Join(folder, a.Name+".txtar")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file := txtar.Parse(old)
	texts := map[string]string{}
	for _, s := range got {
		texts[s.File] = s.Text
	}
	for i, f := range file.Files {
		if text, ok := texts[f.Name]; ok {
			file.Files[i].Data = []byte(text)
		}
	}
	return os.WriteFile(name, txtar.Format(file), 0o600)
}

// Said returns the JSON messages that the agent sends in a vector, in order: lines of send, and the bodies of requests. They are as the
// vector has them, with {{…}}.
func (a *Archive) Said() (messages []string) {
	for _, s := range a.Steps {
		switch s.Kind {
		case "send":
			messages = append(messages, strings.Split(strings.TrimSpace(s.Text), "\n")...)
		case "request":
			if _, body, _ := strings.Cut(s.Text, "\n\n"); strings.TrimSpace(body) != "" {
				messages = append(messages, strings.TrimSpace(body))
			}
		}
	}
	return messages
}
