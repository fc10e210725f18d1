package companion

import (
	"fmt"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/proc"
)

// troubles returns the problems that status and doctor report of this companion.
func (c *Companion) troubles() []control.Trouble {
	var all []control.Trouble
	if c.below || slices.ContainsFunc(c.selves(), proc.Branded) {
		all = append(all, control.Trouble{
			ID: "below", What: "this companion counts as an agent's: an agent has started it or its editor",
			Why: "it decides nothing and shows no changes, and pollux's other commands pass it over (SPEC §11.1)", Do: belowDo,
		})
	}
	if t := c.usersTrouble(proc.TellsPeers()); t != nil {
		all = append(all, *t)
	}
	if t := c.folderTrouble(); t != nil {
		all = append(all, *t)
	}
	if t := c.pauseTrouble(); t != nil {
		all = append(all, *t)
	}
	if t := c.acceptingTrouble(); t != nil {
		all = append(all, *t)
	}
	if t := c.rivalTrouble(); t != nil {
		all = append(all, *t)
	}
	if t := c.silentTrouble(); t != nil {
		all = append(all, *t)
	}
	for _, w := range c.work.Withheld() { // SPEC C-8
		all = append(all, control.Trouble{
			ID: "sharing", What: w.String(),
			Why: "what the file should hide there is not known, so the model hears of no file of that folder",
			Do:  "mend the file; it is read again at once",
		})
	}
	if c.journal != nil {
		if err := c.journal.Trouble(); err != nil {
			all = append(all, control.Trouble{
				ID: "journal", What: err.Error(),
				Why: "if pollux is killed now, an open proposal may be lost and its CLI wait for it, or be asked about twice",
				Do:  "make room there, or make it writable; pollux tries again every two seconds",
			})
		}
	}
	if err := c.lost(); err != nil {
		all = append(all, control.Trouble{
			ID: "lost", What: err.Error(),
			Why: "a proposal that was open may be missing here, or without its last edits, and its CLI wait for it",
			Do:  "cancel it in the CLI if it waits, and have it proposed again",
		})
	}
	if err := c.unrecorded(); err != nil {
		all = append(all, control.Trouble{
			ID: "record", What: "a restart would not take over the connected CLIs and open proposals: " + err.Error(),
			Why: "if pollux is killed now, its CLIs lose it and wait for what is open",
			Do:  "make room in the state folder, or make it writable; pollux looks every minute, and if this stays, start it again",
		})
	}
	return all
}

// acceptingTroubleID is the ID of acceptingTrouble.
const acceptingTroubleID = "accepting"

// acceptingTrouble says that the settings have every change accepted without a question; nil when somebody is asked. Nobody
// may have decided that in this life: any program of the user's can write the settings (SPEC §11.1).
func (c *Companion) acceptingTrouble() *control.Trouble {
	everything := review.Rule{Mode: review.AcceptAll}
	if review.Mode(c.o.Settings.DiffMode) != review.AcceptAll || !slices.Contains(c.reg.Rules(), everything) {
		return nil
	}
	return &control.Trouble{
		ID: acceptingTroubleID, What: `every change is accepted without asking, by "diffMode": "accept" in ` + c.o.Dirs.ConfigFile(),
		Why: "agents change files here, and you see it only afterwards, in the history",
		Do:  `if you did not choose that, look who wrote it, and set "diffMode" to "ask"; a rule "ask" for everything helps until the next start`,
	}
}

// lost says what is missing of the journal of the companion before this one.
func (c *Companion) lost() error {
	if c.journal == nil {
		return nil
	}
	if !c.resumed {
		return c.damaged
	}
	if err := c.unread.Load(); err != nil {
		return fmt.Errorf("a proposal of the companion before this one cannot be read: %w", *err)
	}
	return c.journal.Lost()
}

// unrecorded says why there is no record for the next start; nil when there is one, or none is wanted.
func (c *Companion) unrecorded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsaved
}

// shownTroubles returns the problems that also stand where proposals are reviewed: work may be lost, or the model may not hear
// of a folder. The other problems are about the machine's set-up, and only status and doctor show them.
func (c *Companion) shownTroubles() []control.Trouble {
	return slices.DeleteFunc(c.troubles(), func(t control.Trouble) bool {
		return !slices.Contains([]string{"journal", "lost", "record", "sharing", control.PausedTrouble, acceptingTroubleID, rivalTroubleID, silentTroubleID}, t.ID)
	})
}

// lookAgain is how often silent trouble is looked at again, to see whether it has ended.
const lookAgain = 2 * time.Second

// again calls tellTroubles, until Stop.
func (c *Companion) again() {
	if c.ctx.Err() == nil {
		c.tellTroubles()
	}
}

// tellTroubles tells pages and reviewers when the shown problems have changed. It does nothing until every part has started.
func (c *Companion) tellTroubles() {
	if !c.parts.Load() {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	now := c.shownTroubles()
	if slices.ContainsFunc(now, func(t control.Trouble) bool { return t.ID == "sharing" }) && c.ctx.Err() == nil {
		if c.lookingAgain != nil {
			c.lookingAgain.Stop()
		}
		c.lookingAgain = time.AfterFunc(lookAgain, c.again) // no event says that an ignore file was repaired
	}
	if slices.Equal(now, c.told) {
		return
	}
	c.told = now
	c.reviewers.touch(func() {})
	if page := c.webPage(); page != nil {
		page.TroublesChanged()
	}
}

// usersTrouble says that other users' connections cannot be recognised and kept out (SPEC A-5). untold is the error of proc.TellsPeers.
func (c *Companion) usersTrouble(untold error) *control.Trouble {
	t := control.Trouble{
		ID:  "users",
		Why: "another user of this machine who learns a token gets in",
	}
	switch {
	case c.o.Settings.AdmitOtherUsers:
		t.What = "other users of this machine are let in with a token, as the setting admitOtherUsers says"
		t.Do = "take admitOtherUsers out of pollux/config.json, unless a proxy or WSL needs it"
	case untold != nil:
		t.What = "connections of other users are not told apart: " + untold.Error()
		t.Do = "on a machine that you share, run pollux where netlink or /proc/net/tcp can be read"
	default:
		return nil
	}
	return &t
}
