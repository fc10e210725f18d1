package review

import (
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/core/text"
)

// dueFor is how long an agent has to write what was accepted, before the file
// is believed to stay as it is.
const dueFor = 10 * time.Second

// A due text was accepted, and its agent writes it in a moment (SPEC F-8).
// Until then the file's old text is no news for other proposals of it.
type due struct {
	owner Owner
	was   []File // what the file holds until then
	will  File
	until time.Time
}

// Look reads a file again whose proposals are open, and shows them on what it
// holds now. A watcher calls it; nothing depends on its being called in time.
func (r *Registry) Look(path string) {
	r.mu.Lock()
	r.looks++
	look, wanted := r.looks, r.opt.Files != nil && r.about(path)
	r.mu.Unlock()
	if !wanted {
		return
	}
	now := r.opt.Files.Read(path)
	r.mu.Lock()
	defer r.unlock()
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

// about says whether a diff is open that follows the file. The caller holds mu.
func (r *Registry) about(path string) bool {
	for _, d := range r.diffs {
		if d.concerns(path) {
			return true
		}
	}
	return false
}

// rebased looks whether the file is another than the one that d was made for.
func (r *Registry) rebased(d *Diff) bool {
	r.lookAt(d.id)
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.baseVersion != 0
}

// Resolve ends a conflict as the user wants: with the proposal over the file's
// change, or with the file's text in its place where both changed the same
// lines. Neither accepts the diff. ErrStale when the view has not shown the
// newest; ErrSettled when the diff is not open. Without a conflict it does nothing.
func (r *Registry) Resolve(id string, seen Seen, theirs bool) error {
	r.lookAt(id)
	r.mu.Lock()
	defer r.unlock()
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
	d.agreed, d.conflict = d.base, nil
	r.events = append(r.events, Event{Kind: Rebased, Diff: d})
	return nil
}

// rebase shows d on another text of its file. The caller holds mu, and lets go with unlock.
func (r *Registry) rebase(d *Diff, now File) {
	if same(d.base, now) {
		d.base.Text = now.Text // line endings aside, which the agent keeps as they are
		return
	}
	r.total -= d.size()
	d.base = now
	r.total += d.size()
	d.baseVersion++
	r.merge(d, now)
	if d.announced {
		r.events = append(r.events, Event{Kind: Rebased, Diff: d})
	}
}

// merge takes what the file has become into the proposal, as far as the two
// go together. The caller holds mu.
func (r *Registry) merge(d *Diff, now File) {
	d.conflict = nil
	switch {
	case same(d.agreed, now):
		return
	case now.Problem != "":
		d.conflict = &Conflict{Reason: "the file has changed on disk, and cannot be shown: " + now.Problem}
		return
	case d.agreed.Problem != "": // what it was is not known
		d.agreed = now
		return
	case !now.Exists:
		d.conflict = &Conflict{Reason: "the file is gone from the disk"}
		return
	case d.proposal.ReadOnly != "": // the agent knows nothing of the change, and no merged text reaches it
		d.conflict = &Conflict{Reason: "the file has changed on disk, which the proposal does not know and may undo"}
		return
	}
	m := text.Merge(text.ToLF(d.agreed.Text), text.ToLF(d.text), text.ToLF(now.Text))
	if merged := text.FromLF(d.text, m.Text); merged != d.text && r.editable(d, merged) == nil {
		r.put(d, merged, nil)
		if d.announced {
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

// same says whether two conflicts, or none of both, are about the same places.
func (c *Conflict) same(other *Conflict) bool {
	if c == nil || other == nil {
		return c == other
	}
	return slices.Equal(c.Places, other.Places)
}

// same says whether two files hold the same, line endings and byte order mark aside.
func same(a, b File) bool {
	return a.Exists == b.Exists && a.Problem == b.Problem && (a.Text == b.Text || text.ToLF(a.Text) == text.ToLF(b.Text))
}

// expect notes that d's agent is about to write content, on which every other
// proposal for the file is shown from here on. The caller holds mu, and lets go with unlock.
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

// expected shows a diff that is just opened on what another agent is about to
// write. The same agent goes on when it has written. The caller holds mu.
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

// believe says what a file is to be taken for that was just read: what an
// agent is about to write, as long as nothing else has happened to it. The caller holds mu.
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

// lookLater looks at a file again when its agent has had its time. The timer
// ends by itself, and does nothing when the registry is shut.
func (r *Registry) lookLater(path string) {
	time.AfterFunc(dueFor+time.Millisecond, func() { r.Look(path) })
}
