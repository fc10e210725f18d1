package past

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/journal"
)

// A Journal keeps what the next companion must know.
type Journal = journal.Journal

// OpenJournal is journal.Open.
func OpenJournal(dir string, secret func(path string) bool, trouble func(error)) *Journal {
	return journal.Open(dir, secret, trouble)
}

// errSession: this companion did not issue the session's id.
var errSession = errors.New("its session is not known")

// A Return is how proposals of an earlier companion come back.
type Return struct {
	Journal  *Journal
	History  *History // nil when no history is kept
	Registry *review.Registry
	Agents   *mcp.Server
	// Shown is what the editor still shows of a proposal; nil without an editor.
	Shown func(id string) (text string, ok bool)
	// Resumed says that the sessions of the earlier companion may come back.
	Resumed bool
	// Unread is told why a proposal cannot be read. It must not block.
	Unread func(error)
	Log    *slog.Logger
}

// BringBack opens the diffs of an earlier companion again, and hands outcomes that a CLI may not have heard to its session.
// The outcomes come first: they say how far the session's count has come. A diff that is open may be decided at once, and an
// outcome with a number that was used before counts as heard.
// A crash in here loses nothing: the journal keeps each entry until its outcome was heard or the entry is forgotten.
func (r Return) BringBack(ctx context.Context, left []journal.Diff) {
	open := r.bringOutcomes(ctx, left)
	for _, d := range open {
		if ctx.Err() != nil {
			return // the rest stays in the journal for the next companion
		}
		texts, err := r.read(d)
		switch {
		case err != nil:
		case !r.Resumed:
			err = errSession
		default:
			err = r.reopen(d, texts)
		}
		r.giveUp(ctx, d, texts, err)
	}
}

// bringOutcomes is BringBack for the diffs that are decided. It returns the others.
func (r Return) bringOutcomes(ctx context.Context, left []journal.Diff) (others []journal.Diff) {
	unheard := map[string]*mcp.Unheard{}
	var order []string
	for _, d := range left {
		if ctx.Err() != nil {
			return nil
		}
		if !r.Resumed || len(d.Outcomes) == 0 {
			others = append(others, d)
			continue
		}
		texts, err := r.read(d)
		if err != nil {
			r.giveUp(ctx, d, texts, err)
			continue
		}
		if unheard[d.Session] == nil {
			unheard[d.Session] = &mcp.Unheard{Session: d.Session, Seq: r.Journal.Newest(d.Session).Seq}
			order = append(order, d.Session)
		}
		addUnheard(unheard[d.Session], d, texts.Text)
		r.keepDecided(d, texts)
	}
	for _, session := range order {
		if u := *unheard[session]; !r.Agents.Bring(u) && ctx.Err() == nil {
			r.Log.Info("outcomes for a session that is not known", "outcomes", len(u.Outcomes))
			r.Journal.Ended(session, true)
		}
	}
	return others
}

// read returns the texts of a diff of an earlier companion.
func (r Return) read(d journal.Diff) (journal.Texts, error) {
	texts, err := r.Journal.Texts(d.ID)
	if err != nil {
		r.Log.Warn("a diff of the companion before this one cannot be read", "err", err)
		r.Unread(err)
	}
	return texts, err
}

// giveUp keeps a diff that does not come back in the history alone; it does nothing without err.
func (r Return) giveUp(ctx context.Context, d journal.Diff, texts journal.Texts, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	r.Log.Info("a diff of the companion before this one is not restored", "err", err)
	r.keepLost(d, texts)
	r.Journal.Forget(d.ID)
}

func addUnheard(u *mcp.Unheard, d journal.Diff, text string) {
	for _, o := range d.Outcomes {
		u.Life = o.Life // all are of one life: a session keeps its life while outcomes wait
		u.Outcomes = append(u.Outcomes, mcp.UnheardOutcome{Seq: o.Seq, ID: d.ID, Path: d.Key, As: o.As, Content: text})
	}
}

// reopen opens a diff of an earlier companion again, under its old id, for the
// session that still waits for its outcome.
func (r Return) reopen(d journal.Diff, t journal.Texts) error {
	owner, ok := r.Agents.Adopt(d.Session)
	if !ok {
		return errSession
	}
	opened := d.Opened
	if now := time.Now(); opened.After(now) { // the clock was set back; later diffs must not look older
		opened = now
	}
	p := review.Proposal{Key: d.Key, Path: d.Path, Old: t.Old, IsNew: d.IsNew, New: t.New, Title: d.Title}
	diff, err := r.Registry.Restore(owner, d.ID, r.newestOf(d, t), t.Agreed, opened, p)
	if err == nil {
		r.Journal.Restored(diff, t.Text)
	}
	return err
}

// newestOf returns the newest text of a diff of an earlier companion. What the editor still shows is newer than the journal's text.
func (r Return) newestOf(d journal.Diff, t journal.Texts) string {
	if r.Shown != nil {
		if text, ok := r.Shown(d.ID); ok {
			return text
		}
	}
	return t.Text
}

// keepLost adds a diff to the history (SPEC F-12) whose session cannot be told its outcome any more, so that the user's
// edits are not lost.
func (r Return) keepLost(d journal.Diff, t journal.Texts) {
	t.Text = r.newestOf(d, t)
	kind := review.Withdrawn
	if len(d.Outcomes) > 0 {
		kind = kindOf(d)
	}
	r.keepPast(d, t, kind)
}

// keepDecided adds a decided diff to the history, when the companion before this one ended before it wrote that.
func (r Return) keepDecided(d journal.Diff, t journal.Texts) {
	if r.History == nil {
		return
	}
	if _, err := r.History.Get(d.ID); errors.Is(err, history.ErrNoEntry) {
		r.keepPast(d, t, kindOf(d))
	}
}

func kindOf(d journal.Diff) review.Kind {
	if d.Outcomes[0].As == mcp.Accepted {
		return review.Accepted
	}
	return review.Rejected
}

func (r Return) keepPast(d journal.Diff, t journal.Texts, kind review.Kind) {
	if r.History == nil {
		return
	}
	if kind == review.Rejected {
		t.Text = ""
	}
	r.History.Keep(history.Entry{
		Info: history.Info{
			ID: d.ID, Path: d.Path, Title: d.Title, Owner: ownerOf(d),
			Opened: d.Opened, Settled: time.Now(), Outcome: kind, Edited: kind != review.Rejected && t.Text != t.New, IsNew: d.IsNew,
		},
		Old: t.Old, New: t.New, Final: t.Text,
	})
}

// ownerOf returns the session's name, which ends a proposal's title.
func ownerOf(d journal.Diff) string {
	if i := strings.LastIndex(d.Title, " – "); i >= 0 {
		return d.Title[i+len(" – "):]
	}
	return "a session of the companion before this one"
}
