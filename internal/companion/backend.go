package companion

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

// An Info says where a companion can be found.
type Info struct {
	PID           int
	Port          int
	Roots         []string // absolute and canonical
	DiscoveryFile string   // absolute; "" where it can be nowhere
	Hidden        bool     // Gemini CLI does not find the file, since the folder for it is not this user's
	// Resumed says that the companion took over the port and token of an earlier one.
	Resumed bool
}

// Info returns what a person or a script needs to know after the start.
func (c *Companion) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	file := c.place.Path()
	if c.hidden != nil {
		file = ""
		if c.aside != nil {
			file = c.aside.Path()
		}
	}
	return Info{
		PID:           c.o.PID,
		Port:          c.file.Port,
		Roots:         slices.Clone(c.file.Roots),
		DiscoveryFile: file,
		Hidden:        c.hidden != nil,
		Resumed:       c.resumed,
	}
}

// Connection returns what a CLI needs to reach this companion, its token included.
func (c *Companion) Connection() control.Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn := control.Connection{PID: c.o.PID, Port: c.file.Port, Token: c.file.Token, Roots: slices.Clone(c.file.Roots)}
	if c.hidden != nil && c.aside != nil {
		conn.TempDir = c.privateTemp()
	}
	return conn
}

// PageAddress returns a fresh address of the editor page, good for one use within
// five minutes. Just after the start it waits for the page's server, which learns its address on a goroutine of its own.
func (c *Companion) PageAddress() (string, error) {
	page, err := c.needPage()
	if err != nil {
		return "", err
	}
	for range 200 {
		if address, err := page.PageURL(); err == nil || c.ctx.Err() != nil {
			return address, err
		}
		time.Sleep(time.Millisecond)
	}
	return page.PageURL()
}

// SetRoots replaces the workspace's folders, for the connected CLIs and for CLIs that
// look from now on (SPEC D-4). On an error the folders stay as they were.
func (c *Companion) SetRoots(roots []string) error {
	page := c.webPage()
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.work.Roots()
	if err := c.work.SetRoots(roots); err != nil {
		return err
	}
	file := c.file
	file.Roots = c.work.Roots()
	if err := c.publish(&file); err != nil {
		return errors.Join(err, c.work.SetRoots(before))
	}
	c.file = file
	c.lookShares()
	c.store.SetRoots(file.Roots)
	if page != nil {
		page.RootsChanged()
	}
	return nil
}

// Serving lists the companions that already served one of this companion's folders when it started, newest first.
func (c *Companion) Serving() []control.Status {
	var serving []control.Status
	for _, o := range c.others {
		if !o.Keeper && c.work.Within(o.Roots) {
			serving = append(serving, o)
		}
	}
	return serving
}

// Silent returns an error about the companions that ran when this one started, and did not answer; nil for none.
func (c *Companion) Silent() error {
	if len(c.silent) == 0 {
		return nil
	}
	return control.SilentError(c.silent)
}

// backend shows the companion to the control channel.
type backend struct{ c *Companion }

func (b backend) Status() control.Status {
	return control.Status{
		PID:     b.c.o.PID,
		Version: b.c.o.Version,
		Editor:  b.c.o.IDE.Name,
		Roots:   b.c.work.Roots(),
		Started: b.c.started,
		Keeper:  b.c.o.Keeping != nil,
		Alone:   b.c.o.Soon != "",
		Views:   b.views(),

		Troubles: b.c.troubles(),
		Shares:   b.c.everyShare(),
	}
}

// views asks the same views as lateView and pageView.
func (b backend) views() *control.Views {
	v := &control.Views{Reviewer: b.c.reviewers.looking()}
	if page := b.c.webPage(); page != nil {
		v.Page = page.Shows()
	}
	if editor := b.c.o.Editor; editor != nil {
		v.Editor = editor.Shows()
		v.Browser = b.c.o.OpenPage != nil && b.c.o.Settings.OpenBrowser
	}
	return v
}

// Pause stops or resumes telling agents what the user looks at.
func (b backend) Pause(paused bool) { b.c.store.Pause(paused) }

func (b backend) Connection() control.Connection { return b.c.Connection() }

func (b backend) Sessions() []control.Session {
	var list []control.Session
	for _, s := range b.c.everySession() {
		list = append(list, b.c.listed(s))
	}
	return list
}

// Meet remembers an agent with its go-betweens.
func (b backend) Meet(agents ...proc.Info) { b.c.meet(agents...) }

func (b backend) Agents(ctx context.Context) control.Agents {
	unknown := b.c.agents.Unknown(ctx)
	if proc.TellsPeers() != nil {
		unknown = nil // no unknown session is the caller; an agent is told by its marks alone
	}
	processes, full := b.c.met.Living()
	behind, more := b.c.above.living()
	processes = append(processes, behind...)
	if full || more {
		unknown = append(unknown, "one of thousands of programs that have connected; start this companion again")
	}
	return b.c.reviewers.keptAgents(control.Agents{Processes: processes, Unknown: unknown})
}

func (b backend) Diffs() []control.Diff {
	b.c.whole()
	var diffs []control.Diff
	unsaved := map[string]bool{}
	for _, f := range b.c.store.Snapshot().Files {
		unsaved[f.Path] = f.Dirty
	}
	for _, d := range b.c.reg.Pending() {
		p, now := d.Proposal(), d.Now()
		diff := control.Diff{
			ID: d.ID(), Path: p.Path, IsNew: !now.Base.Exists, Title: p.Title,
			Owner: d.Label(), Opened: d.Opened(), Edited: now.Text != p.New,
			Version: now.Seen.Text, Base: now.Seen.Base, Others: now.Others, Unsaved: unsaved[p.Path], ReadOnly: p.ReadOnly,
		}
		if now.Conflict != nil {
			diff.Conflict = conflictOf(now.Conflict)
		}
		diffs = append(diffs, diff)
	}
	return diffs
}

func conflictOf(c *review.Conflict) *control.Conflict {
	out := &control.Conflict{Reason: c.Reason}
	for _, p := range c.Places {
		out.Places = append(out.Places, control.Place{Start: p.Start, End: p.End, Text: p.Theirs})
	}
	return out
}

func (b backend) Decide(d control.Decision) error {
	b.c.whole()
	if d.Accept {
		return b.c.reg.Accept(d.ID, review.Seen{Text: d.Seen.Version, Base: d.Seen.Base}, d.Content)
	}
	return b.c.reg.Reject(d.ID)
}

func (b backend) Open(ctx context.Context, l control.Location) error {
	return b.c.open(ctx, l.Path, l.Position, l.TakeFocus)
}

func (b backend) Save(ctx context.Context, path string) error { return b.c.saveFile(ctx, path) }

func (b backend) Ask(ctx context.Context, q control.Question) (*string, error) {
	choice, err := b.c.ask(ctx, q)
	if err != nil || choice == "" {
		return nil, err
	}
	return &choice, nil
}

func (b backend) Context() *state.Snapshot { return b.c.store.Snapshot() }

func (b backend) Page() (string, error) { return b.c.PageAddress() }

var _ control.Backend = backend{}
