package companion

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pollux-companion/pollux/internal/attach"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/history"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// showWithin is how long showing a diff may take when an editor is asked first and
// then the page: the editor's five seconds, and some for the page.
const showWithin = 8 * time.Second

// browserEvery bounds how often the browser is opened for waiting diffs: one page
// shows them all.
const browserEvery = 20 * time.Second

// errNoBrowser is the error of Show when no page is open and no browser can be opened.
var errNoBrowser = errors.New("no editor page is open and the browser could not be opened; run \"pollux page\" in a terminal and open the address that it prints, or run \"pollux review\" and decide there")

// attachEditor makes the editor's process part of this companion.
func (c *Companion) attachEditor() error {
	past := backend{c}
	var keep func(history.Entry)
	if c.kept != nil {
		keep = c.kept.Keep
	}
	c.o.Editor.Attach(attach.Core{
		Store: c.store, Registry: c.reg, Page: pageView{c}, Watch: c.watch, Whole: c.whole, Mention: c.mention,
		History: func() (any, error) { return past.History() }, Past: past.shown, Undo: past.Undo, Keep: keep,
	})
	unwatch := c.agents.Watch(c.o.Editor.SessionsChanged)
	c.onStop("sessions", func(context.Context) error { unwatch(); return nil })
	c.followOpen()
	return c.lazyPage()
}

// lazyPage lets the page start when something needs it, or when pages of an earlier companion may come back.
func (c *Companion) lazyPage() error {
	c.onStop("page", c.stopPage)
	if c.record.PagePort == 0 {
		return nil
	}
	_, err := c.needPage()
	return err
}

// watch reports changes of files, inside the workspace or outside.
func (c *Companion) watch(changed func([]string)) attach.FileWatcher {
	return c.work.Watch(func(change workspace.Change) { changed(change.Files) }, c.o.Log)
}

// stopPage ends the page's server, if it was started, and lets none start any more.
func (c *Companion) stopPage(ctx context.Context) error {
	c.pages.Lock()
	page := c.page
	c.pageClosed = true
	c.pages.Unlock()
	if page == nil {
		return nil
	}
	return page.Shutdown(ctx)
}

// webPage returns the page's server; nil as long as nothing has needed it.
func (c *Companion) webPage() Page {
	c.pages.Lock()
	defer c.pages.Unlock()
	return c.page
}

// needPage returns the page's server, started.
func (c *Companion) needPage() (Page, error) {
	c.pages.Lock()
	defer c.pages.Unlock()
	if c.page != nil {
		return c.page, nil
	}
	if c.pageClosed {
		return nil, review.ErrShut
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ln, err := c.listenPage()
	if err != nil {
		return nil, err
	}
	page := c.newPage(c.record)
	c.page = page
	c.tasks.Go(func() { c.fail(page.Serve(c.guard(ln))) })
	unwatch := c.agents.Watch(page.SessionsChanged)
	c.tasks.Go(func() { <-c.ctx.Done(); unwatch() })
	c.record.PagePort, c.record.PageKeys = ln.Addr().(*net.TCPAddr).Port, page.Keys()
	if c.resume != nil && c.place != nil { // otherwise startDiscovery saves it
		c.save("a restart will not find its pages again")
	}
	return page, nil
}

// pageView is the page, used as the fallback of an editor.
type pageView struct{ c *Companion }

// Show shows a diff on the page, and opens the browser when nobody looks at one.
func (v pageView) Show(ctx context.Context, d *review.Diff) error {
	page, err := v.c.needPage()
	if err != nil {
		return err
	}
	if page.Pages() > 0 {
		return page.Show(ctx, d)
	}
	if v.c.reviewers.looking() {
		return nil
	}
	return v.Bring(ctx) // the page finds the diff when it comes
}

// Bring opens the page in the browser, unless that happened a moment ago.
func (v pageView) Bring(context.Context) error {
	c := v.c
	if _, err := c.needPage(); err != nil {
		return err
	}
	if c.o.OpenPage == nil {
		return errNoBrowser
	}
	c.pages.Lock()
	just := time.Since(c.browser) < browserEvery
	if !just {
		c.browser = time.Now()
	}
	c.pages.Unlock()
	if just {
		return nil
	}
	address, err := c.PageAddress()
	if err == nil {
		err = c.o.OpenPage(address)
	}
	if err == nil {
		return nil
	}
	c.o.Log.Warn("the browser was not opened", "err", err)
	c.pages.Lock()
	c.browser = time.Time{}
	c.pages.Unlock()
	return errNoBrowser
}

func (v pageView) Close(d *review.Diff, o review.Outcome) {
	if page := v.c.webPage(); page != nil {
		page.Close(d, o)
	}
}

func (v pageView) Content(ctx context.Context, d *review.Diff) (review.Edit, bool) {
	if page := v.c.webPage(); page != nil {
		return page.Content(ctx, d)
	}
	return review.Edit{}, false
}

// open shows a file where the user is: in the editor, else on the page.
func (c *Companion) open(ctx context.Context, path string, at *state.Position, takeFocus bool) error {
	if c.o.Editor != nil && c.o.Editor.Full() {
		return c.o.Editor.OpenDocument(ctx, path, at, takeFocus)
	}
	if front := c.front(); front != nil {
		return front.Open(ctx, control.Location{Path: path, Position: at, TakeFocus: takeFocus})
	}
	page, err := c.needPage()
	if err != nil {
		return err
	}
	err = page.Open(path, at, takeFocus)
	if err != nil && c.reviewers.looking() {
		err = fmt.Errorf("only pollux review looks here, which shows proposals and no other places: %w", err)
	}
	return err
}

// saveFile has the user's editor, or else the page, write unsaved changes of a file.
func (c *Companion) saveFile(ctx context.Context, path string) error {
	if c.o.Editor != nil && c.o.Editor.Full() {
		return c.o.Editor.SaveDocument(ctx, path)
	}
	if front := c.front(); front != nil {
		return front.Save(ctx, path)
	}
	if page := c.webPage(); page != nil {
		return page.Save(ctx, path)
	}
	return errors.New("saving is left to the user, in this editor")
}

// ask puts a question to the user, in the editor or else on the page; "" when the user made no choice.
func (c *Companion) ask(ctx context.Context, q control.Question) (string, error) {
	if c.reminder != nil {
		key := new(control.Question)
		c.reminder.Wait(key)
		defer c.reminder.Done(key)
	}
	if c.o.Editor != nil && c.o.Editor.Full() {
		return c.o.Editor.Ask(ctx, q.Title, q.Message, q.Choices)
	}
	page, err := c.needPage()
	if err != nil {
		return "", err
	}
	return page.Ask(ctx, q.Title, q.Message, q.Choices)
}
