package kakoune

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// maxText bounds a proposal's text as Kakoune has it.
const maxText = 64 << 20

// A proposal is one diff in Kakoune, from openDiff to its end. Its texts lie in files beside each other, since Kakoune reads and
// writes files best: ID.old as shown, ID.text as the user has it, and ID.json, which a pollux after a crash reads.
type proposal struct {
	ID    string `json:"id"`
	Path  string `json:"path"`
	Name  string `json:"name"` // of its buffer
	Old   string `json:"old"`
	New   string `json:"new"` // as pollux has told it last, without the user's edits since
	Shown bool   `json:"shown"`
	// Fixed says why the user's edits do not count, where they do not.
	Fixed string `json:"fixed,omitempty"`
	// Rejected: the user has rejected it, and pollux did not answer.
	Rejected bool `json:"rejected,omitempty"`

	sent          string // the text that pollux knows
	edits         int    // that it has heard of
	version, base int    // of New and of Old
	conflict      *conflict
	next          *update // not in Kakoune yet

	offered time.Time
}

// A conflict is lines of the proposal for which the file has others.
type conflict struct {
	Reason string `json:"reason"`
	Places []struct {
		Start int    `json:"start"`
		End   int    `json:"end"`
		Text  string `json:"text"`
	} `json:"places"`
}

// plain says whether an id can be the name of a file in any folder.
func plain(id string) bool {
	return id != "" && len(id) <= 100 && strings.Trim(id, idLetters) == ""
}

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// whole is a text as Kakoune holds it: it always ends with a line's end.
func whole(s string) string {
	if strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func (p *proposal) file(dir, kind string) string { return filepath.Join(dir, p.ID+"."+kind) }

// write writes the files for Kakoune.
func (p *proposal) write(dir string) error {
	if !plain(p.ID) {
		return errors.New("an id that is no file's name")
	}
	return errors.Join(p.save(dir), p.writeOld(dir), safefile.Write(p.file(dir, "text"), []byte(whole(p.New)), nil))
}

// writeOld writes what the marks of a proposal are made from.
func (p *proposal) writeOld(dir string) error {
	lines := ""
	if p.conflict != nil {
		for _, at := range p.conflict.Places {
			for n := at.Start; n < max(at.End, at.Start+1); n++ {
				lines += fmt.Sprintln(n + 1)
			}
		}
	}
	return errors.Join(safefile.Write(p.file(dir, "old"), []byte(whole(p.Old)), nil), safefile.Write(p.file(dir, "conflict"), []byte(lines), nil))
}

// save writes what another pollux needs to know.
func (p *proposal) save(dir string) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return safefile.Write(p.file(dir, "json"), data, nil)
}

// text is the proposal as the user has it, byte for byte.
func (p *proposal) text(dir string) string {
	if p.Fixed != "" {
		return p.New
	}
	data, _, err := safefile.ReadRegular(p.file(dir, "text"), maxText)
	switch has := string(data); {
	case err != nil || has == whole(p.New):
		return p.New
	case strings.HasSuffix(p.New, "\n"):
		return has
	default:
		return strings.TrimSuffix(has, "\n")
	}
}

func (p *proposal) remove(dir string) {
	for _, kind := range []string{"json", "old", "text", "conflict", "sent", "next"} {
		_ = os.Remove(p.file(dir, kind))
	}
}

// announce is the proposal as the initialize of a pollux after a crash has it.
func (p *proposal) announce(dir string) obj {
	said := obj{"diffId": p.ID, "filePath": p.Path, "content": p.text(dir), "shown": p.New, "oldText": p.Old}
	if p.Rejected {
		said["outcome"] = "rejected"
	}
	return said
}

// left reads what a killed pollux has left.
func left(dir string) (list []*proposal) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, name := range names {
		var p proposal
		data, err := safefile.ReadPrivate(name, 3*maxText)
		if err == nil && json.Unmarshal(data, &p) == nil && plain(p.ID) {
			p.sent, p.version = p.text(dir), 1
			list = append(list, &p)
		}
	}
	return list
}

// Reject notes that the user has rejected a proposal while no pollux listens. The next one hears of it.
func Reject(dir, id string) error {
	for _, p := range left(dir) {
		if p.ID == id {
			p.Rejected, p.Shown = true, false
			return p.save(dir)
		}
	}
	return rpc.Errorf(rpc.CodeInvalidParams, "there is no proposal %s", id)
}
