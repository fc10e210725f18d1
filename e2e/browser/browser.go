// Package browser drives a real, headless Chromium: real clicks and keys,
// found by data-testid or CSS, with the accessibility tree and an automated
// contrast check.
package browser

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/pollux-companion/pollux/internal/peers"
)

// A Browser is one Chromium process with a profile of its own. Its pages may
// be used from different goroutines, each page from one.
type Browser struct {
	ctx  context.Context
	stop func()
	dir  string
}

// Start runs Chromium until Stop; t only says whether it is there.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := peers.Need(t, peers.Chromium)
	dir, err := os.MkdirTemp("", "pollux-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-prefers-reduced-motion", true), // animations cost time where no graphics card draws them
		chromedp.Flag("mute-audio", true), chromedp.WindowSize(1280, 800),
		chromedp.Env("HOME="+dir),
		chromedp.WSURLReadTimeout(2*timeout), // the first start reads 300 MB from a cold disk
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	b := &Browser{ctx: ctx, dir: dir, stop: func() { stop(); stopAllocator() }}
	if err := chromedp.Do(ctx); err != nil {
		b.Stop()
		t.Fatalf("chromium does not start: %v", err)
	}
	return b
}

// Stop ends the process and removes its profile.
func (b *Browser) Stop() {
	b.stop()
	for range 40 { // its children may still be writing
		if os.RemoveAll(b.dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// timeout bounds every wait of a page on a busy machine.
const timeout = 60 * time.Second

// A Page is one tab. It closes with its test, which fails if the tab's
// console has seen an error that Expect has not announced.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex // guards what follows; the console's goroutine writes
	errors   []string
	expected []string
}

// Open shows url in a new tab, which believes that it has the focus.
func (b *Browser) Open(t testing.TB, url string) *Page {
	t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx)
	p := &Page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		t.Fatalf("no new tab: %v", err)
	}
	done := p.listen()
	t.Cleanup(func() {
		p.finish()
		stop()
		<-done
	})
	p.do("focus emulation", chromedp.Func(func(ctx context.Context, tg *chromedp.Target) error {
		_, err := cdp.Call(ctx, tg, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	p.Go(url)
	return p
}

// listen hears the tab's console, and lets it go when it asks whether unsaved
// changes may be left behind. The returned channel is closed when the tab is gone.
func (p *Page) listen() (done chan struct{}) {
	console, questions := chromedp.Console(p.ctx), chromedp.Events(p.ctx, page.JavascriptDialogOpening)
	var both sync.WaitGroup
	both.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			p.heard(m)
		}
	})
	both.Go(func() {
		for _, err := range questions {
			if err != nil || chromedp.Do(p.ctx, leave) != nil {
				return
			}
		}
	})
	done = make(chan struct{})
	go func() {
		both.Wait()
		close(done)
	}()
	return done
}

// leave answers the tab's question with yes.
func leave(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	_, err := cdp.Call(ctx, t, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
	return chromedp.Void{}, err
}

// Go navigates the tab.
func (p *Page) Go(url string) {
	p.t.Helper()
	p.do("navigate", chromedp.Navigate(url))
}

// Expect announces a console error that contains text, so that it does not
// fail the test: a lost connection is one.
func (p *Page) Expect(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text)
}

func (p *Page) heard(m chromedp.ConsoleMessage) {
	if m.Type != chromedp.ConsoleError && m.Type != chromedp.ConsoleException {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, fmt.Sprintf("%s: %s (%s:%d)", m.Type, m.Text, m.URL, m.Line))
}

// do runs one action with a deadline and fails the test when it fails.
func (p *Page) do(what string, a chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, a); err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}
