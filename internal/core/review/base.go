package review

import (
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// dueFor is how long an agent has to write the text that the user accepted. After
// that, the registry believes what the file holds.
const dueFor = 10 * time.Second

// A due text was accepted, and its agent will write it in a moment (SPEC F-8).
// Until then, reading the file's old text does not count as a change of the file.
type due struct {
	owner Owner
	was   []File // what the file holds until then
	will  File
	until time.Time
}

// Look reads a file again and shows its open proposals on what the file holds
// now. It does nothing when no open proposal follows the file. A watcher calls it;
// nothing depends on its being called in time, since a decision looks once more.
// It may be called from any goroutine. The file is read with no lock held, since a disk may hang. So two looks can
// overlap: their numbers are taken before they read, and the result of the older one never replaces the newer one's.
func (r *Registry) Look(path string) {
	r.mu.Lock()
	r.looks++
	look, wanted := r.looks, r.opt.Files != nil && r.about(path)
	r.mu.Unlock()
	if !wanted {
		return
	}
	now := r.opt.Files.Read(path)
	defer r.lock()()
	now = r.believe(path, now)
	for _, d := range r.diffs {
		if d.concerns(path) && d.looked < look {
			d.looked = look
			r.rebase(d, now)
		}
	}
}

// lookAt is Look for the file of an open diff.
func (r *Registry) lookAt(id string) {
	if d, ok := r.Get(id); ok && !d.proposal.Apart {
		r.Look(d.proposal.Path)
	}
}

// about says whether an open diff follows the file. The caller holds mu.
func (r *Registry) about(path string) bool {
	for _, d := range r.diffs {
		if d.concerns(path) {
			return true
		}
	}
	return false
}

// rebased reads d's file and says whether it has changed since d was made for it. A rule asks this: the agent has
// read the file some time ago, and another program may have written it since.
func (r *Registry) rebased(d *Diff) bool {
	r.lookAt(d.id)
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.baseVersion != 0
}

// Resolve ends a conflict as the user wants. The proposal stands over the file's
// change; with theirs, the file's text replaces it where both changed the same
// lines. Neither choice accepts the diff. Resolve fails with ErrStale when the
// view has not shown the newest version, and with ErrSettled when the diff is not
// open. Without a conflict it does nothing.
func (r *Registry) Resolve(id string, seen Seen, theirs bool) error {
	r.lookAt(id)
	defer r.lock()()
	d, ok := r.byID[id]
	switch {
	case !ok:
		return ErrSettled
	case seen.Base != d.baseVersion:
		return ErrFileChanged
	case seen.Text != d.version:
		return ErrTextChanged
	case d.conflict == nil:
		return nil
	case theirs && len(d.conflict.Places) == 0:
		return errNothingToTake
	}
	if theirs {
		m := text.Merge(text.ToLF(d.agreed.Text), text.ToLF(d.text), text.ToLF(d.base.Text))
		if taken := text.FromLF(d.text, m.TakeTheirs()); taken != d.text {
			lost := ""
			if d.text != d.proposal.New {
				lost = d.text
			}
			r.put(d, taken, nil)
			r.events = append(r.events, Event{Kind: Edited, Diff: d, Lost: lost})
		}
	}
	d.agreed, d.conflict = d.base, nil // the user has seen this change, and no later merge brings it up again
	r.events = append(r.events, Event{Kind: Rebased, Diff: d})
	return nil
}

// rebase shows d on another text of its file. baseVersion grows also where the merge is
// clean: nobody accepts before a view has shown the new left side. The caller holds mu, taken
// with lock, which tells the events.
func (r *Registry) rebase(d *Diff, now File) {
	if same(d.base, now) {
		d.base.Text = now.Text // take over the line endings; they are no change, and the agent keeps them
		return
	}
	r.total -= d.size()
	d.base = now
	r.total += d.size()
	d.baseVersion++
	r.merge(d, now)
	if d.announced() {
		r.events = append(r.events, Event{Kind: Rebased, Diff: d})
	}
}

// merge merges the file's change into the proposal. Where both changed the same
// lines, the proposal keeps its own and d gets a Conflict. d.agreed moves to the
// new file as far as the merge went, so that the next merge does not take the same
// change twice. The caller holds mu.
func (r *Registry) merge(d *Diff, now File) {
	d.conflict = nil
	switch {
	case same(d.agreed, now):
		return
	case now.Problem != "":
		d.conflict = &Conflict{Reason: "the file has changed on disk, and cannot be shown: " + now.Problem}
		return
	case d.agreed.Problem != "": // the earlier text is not known, so there is nothing to compare with
		d.agreed = now
		return
	case !now.Exists:
		d.conflict = &Conflict{Reason: "the file is gone from the disk"}
		return
	case d.proposal.ReadOnly != "": // the agent does not learn of the change, and would never get a merged text
		d.conflict = &Conflict{Reason: "the file has changed on disk, which the proposal does not know and may undo"}
		return
	}
	// Compared as LF, and written with the proposal's own line ends: a formatter that only changes
	// line ends would make every line a conflict.
	m := text.Merge(text.ToLF(d.agreed.Text), text.ToLF(d.text), text.ToLF(now.Text))
	if merged := text.FromLF(d.text, m.Text); merged != d.text && r.editable(d, merged) == nil {
		r.put(d, merged, nil)
		if d.announced() {
			r.events = append(r.events, Event{Kind: Edited, Diff: d})
		}
	}
	if len(m.Conflicts) == 0 {
		d.agreed = now
		return
	}
	reason := "the file has changed on disk where the proposal changes it"
	if !d.agreed.Exists {
		reason = "the file has come into being meanwhile"
	}
	d.agreed = File{Text: m.Rest, Exists: d.agreed.Exists}
	d.conflict = &Conflict{Reason: reason, Places: m.Conflicts}
}

// same says whether two conflicts are about the same places. Two nils are the same.
func (c *Conflict) same(other *Conflict) bool {
	if c == nil || other == nil {
		return c == other
	}
	return slices.Equal(c.Places, other.Places)
}

// same says whether two files hold the same text. Line endings and the byte order mark do not count: a diff does not
// show them, so a file that was only converted is no reason to ask the user once more.
func same(a, b File) bool {
	return a.Exists == b.Exists && a.Problem == b.Problem && (a.Text == b.Text || text.ToLF(a.Text) == text.ToLF(b.Text))
}

// expect notes that d's agent is about to write content, and shows every other
// proposal for the file on that text from now on: it is what those would overwrite. It
// keeps several earlier texts, since after two acceptances in a row the file may still hold
// the text before the first. The caller holds mu, taken with lock.
func (r *Registry) expect(d *Diff, content string) {
	path := d.proposal.Path
	if d.proposal.Unwritten || d.proposal.Apart {
		return
	}
	now := time.Now()
	for p, e := range r.due {
		if now.After(e.until) {
			delete(r.due, p)
		}
	}
	will := File{Text: content, Exists: true}
	was := append(slices.Clone(r.due[path].was), d.base)
	r.due[path] = due{owner: d.owner, was: was[max(0, len(was)-maxEarlier):], will: will, until: now.Add(dueFor)}
	for _, other := range r.diffs {
		if other != d && other.concerns(path) {
			r.rebase(other, will)
			r.lookLater(path)
		}
	}
}

// expected shows a diff that was just opened on the text that another agent is
// about to write. A new proposal of the same agent means that it has written
// already, so nothing is expected any more. The caller holds mu.
func (r *Registry) expected(d *Diff) {
	path := d.proposal.Path
	if e, ok := r.due[path]; ok && e.owner == d.owner {
		delete(r.due, path)
	} else if ok && !d.proposal.Apart {
		if now := r.believe(path, d.base); !same(now, d.base) {
			r.rebase(d, now)
			r.lookLater(path)
		}
	}
}

// believe says what a file that was just read counts as: the text that an agent is
// about to write, as long as the file still holds an earlier text and the agent has
// time left. Any other content is a real change, and ends the wait. The caller holds mu.
func (r *Registry) believe(path string, now File) File {
	e, ok := r.due[path]
	if !ok {
		return now
	}
	old := slices.ContainsFunc(e.was, func(was File) bool { return same(now, was) })
	if old && !same(now, e.will) && time.Now().Before(e.until) {
		return e.will
	}
	delete(r.due, path)
	return now
}

// lookLater reads a file again when the agent's time to write is over. An agent that never writes changes no
// file, so no watcher would call, and the other proposals would go on showing a text that is nowhere. The timer
// ends by itself, and does nothing once no diff is open.
func (r *Registry) lookLater(path string) {
	time.AfterFunc(dueFor+time.Millisecond, func() { r.Look(path) })
}
