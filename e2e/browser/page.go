package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Busy is how long the tab has worked since its first call: the processor time of its main thread, which another
// program's load does not lengthen.
func (p *Page) Busy() (total time.Duration) {
	p.t.Helper()
	p.do("the time that the tab has worked", chromedp.Func(func(ctx context.Context, tg *chromedp.Target) error {
		if _, err := cdp.Call(ctx, tg, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"}); err != nil {
			return err
		}
		r, err := cdp.Call(ctx, tg, performance.GetMetrics, cdp.Empty{})
		for _, m := range r.Metrics {
			if m.Name == "TaskDuration" {
				total = time.Duration(m.Value * float64(time.Second))
			}
		}
		return err
	}))
	return total
}

// ID is the selector of the element with that data-testid.
func ID(name string) string { return fmt.Sprintf("[data-testid=%q]", name) }

// Eval runs an expression of JavaScript in the tab; a promise is awaited.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Until polls until the expression is true, and fails the test with what it
// was waiting for when that takes too long.
func (p *Page) Until(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			p.snapshot()
			p.t.Fatalf("the page does not come to: %s (%v)", what, err)
		case <-time.After(40 * time.Millisecond):
		}
	}
}

// Wait waits until an element is visible and returns its text.
func (p *Page) Wait(selector string) string {
	p.t.Helper()
	p.Until(selector+" is visible", visible(selector))
	return p.Text(selector)
}

// WaitText waits until a visible element contains text; a no-break space is a blank.
func (p *Page) WaitText(selector, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf("%s shows %q", selector, text),
		fmt.Sprintf("[...document.querySelectorAll(%s)].some(e => e.checkVisibility() && (e.innerText ?? e.textContent).replaceAll('\u00a0', ' ').includes(%s))", quote(selector), quote(text)))
}

// Gone waits until no such element is visible.
func (p *Page) Gone(selector string) {
	p.t.Helper()
	p.Until(selector+" is gone", "!"+visible(selector))
}

// Has says whether such an element is visible now.
func (p *Page) Has(selector string) bool { return Eval[bool](p, visible(selector)) }

// Count is the number of such elements.
func (p *Page) Count(selector string) int {
	return Eval[int](p, fmt.Sprintf("document.querySelectorAll(%s).length", quote(selector)))
}

// Text is what the first such element shows, "" when there is none.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf("(e => e ? (e.innerText ?? e.textContent) : '')(document.querySelector(%s))", quote(selector)))
}

// Attribute is an attribute of the first such element, "" when there is none.
func (p *Page) Attribute(selector, name string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf("document.querySelector(%s)?.getAttribute(%s) ?? ''", quote(selector), quote(name)))
}

func visible(selector string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%s)].some(e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length)", quote(selector))
}

// spot finds the middle of the first visible element where a click would hit
// it or what lies in it; it returns null while something covers it or it moves.
const spot = `(async selector => {
	const e = [...document.querySelectorAll(selector)].find(e => e.checkVisibility({visibilityProperty: true}) && e.getClientRects().length);
	if (!e || e.disabled) return null;
	e.scrollIntoView({block: "nearest", inline: "nearest"});
	const box = () => { const r = e.getClientRects()[0]; return r ? [r.x + r.width / 2, r.y + r.height / 2] : null };
	const before = box();
	await new Promise(requestAnimationFrame);
	const after = box();
	if (!before || !after || before[0] !== after[0] || before[1] !== after[1]) return null;
	const hit = document.elementFromPoint(...after);
	return hit && (e === hit || e.contains(hit) || hit.contains(e) && hit.tagName === "LABEL") ? after : null;
})`

// at waits until the element can be hit with the mouse and returns where.
func (p *Page) at(selector string) (x, y float64) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(40 * time.Millisecond) {
		if at := Eval[[]float64](p, spot+"("+quote(selector)+")"); len(at) == 2 {
			return at[0], at[1]
		}
	}
	p.snapshot()
	p.t.Fatalf("%s is not there to be clicked", selector)
	return 0, 0
}

// Click clicks the first such element with the mouse, once it stands still and nothing covers it.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y := p.at(selector)
	p.do("click "+selector, chromedp.MouseClickXY(x, y))
}

// Type enters text where the focus is, as an input method does.
func (p *Page) Type(text string) {
	p.t.Helper()
	p.do("type", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
		return err
	}))
}

// Press presses keys one after the other, each written as "Control+Shift+ArrowDown".
func (p *Page) Press(chords ...string) {
	p.t.Helper()
	for _, chord := range chords {
		key, modifiers := chordOf(chord)
		if utf8.RuneCountInString(key) != 1 {
			p.t.Fatalf("no key is called %q", key)
		}
		p.do("press "+chord, press([]rune(key)[0], modifiers))
	}
}

// press sends a key as a keyboard does: the text comes with the key going
// down, in one event, so that nothing can move the focus in between.
func press(r rune, modifiers []chromedp.Modifier) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		k, known := kb.Keys[r]
		if !known {
			return fmt.Errorf("no key for %q", r)
		}
		down := input.DispatchKeyEventParams{
			Type: kb.KeyRawDown, Key: k.Key, Code: k.Code,
			NativeVirtualKeyCode: k.Native, WindowsVirtualKeyCode: k.Windows,
		}
		if k.Shift {
			modifiers = append(modifiers, kb.ModifierShift)
		}
		for _, m := range modifiers {
			down.Modifiers |= m.Int64()
		}
		up := down
		if k.Text != "" && down.Modifiers&^kb.ModifierShift.Int64() == 0 {
			down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, k.Text, k.Unmodified
		}
		up.Type = kb.KeyUp
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, down); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, up)
		return err
	})
}

func chordOf(chord string) (key string, modifiers []chromedp.Modifier) {
	parts := strings.Split(chord, "+")
	for _, m := range parts[:len(parts)-1] {
		modifiers = append(modifiers, map[string]chromedp.Modifier{
			"Control": kb.ModifierCtrl, "Shift": kb.ModifierShift, "Alt": kb.ModifierAlt, "Meta": kb.ModifierMeta,
		}[m])
	}
	key = parts[len(parts)-1]
	if named := map[string]string{
		"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "Space": " ", "Backspace": kb.Backspace, "Delete": kb.Delete,
		"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
		"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
		"F1": kb.F1, "F2": kb.F2, "F6": kb.F6, "F8": kb.F8, "F9": kb.F9, "F10": kb.F10, "ContextMenu": kb.ContextMenu,
	}[key]; named != "" {
		key = named
	}
	return key, modifiers
}

// Focused describes the element that has the focus: its data-testid, or its tag and label.
func (p *Page) Focused() string {
	return Eval[string](p, `(e => e?.dataset?.testid ?? (e ? e.tagName.toLowerCase() + "/" + (e.getAttribute("aria-label") ?? e.id) : ""))(document.activeElement)`)
}

// Media sets what the user's system prefers: "color-scheme" to "dark" or
// "light", "reduced-motion" to "reduce", "forced-colors" to "active".
func (p *Page) Media(feature, value string) {
	p.t.Helper()
	p.do("media", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-" + feature, Value: value}},
		})
		return err
	}))
}

// Size sets the tab's size in CSS pixels.
func (p *Page) Size(width, height int64) {
	p.t.Helper()
	p.do("size", chromedp.EmulateViewport(width, height))
}

// Screenshot writes what the tab shows to file, as PNG.
func (p *Page) Screenshot(file string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, timeout)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		p.t.Fatalf("screenshot: %v", err)
	}
}

// snapshot keeps a picture of a failure where POLLUX_E2E_SHOTS says.
func (p *Page) snapshot() {
	dir := os.Getenv("POLLUX_E2E_SHOTS")
	if dir == "" {
		return
	}
	p.Screenshot(filepath.Join(dir, strings.ReplaceAll(p.t.Name(), "/", "-")+".png"))
}

// finish fails the test for errors in the tab's console.
func (p *Page) finish() {
	if p.t.Failed() {
		p.snapshot()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.errors {
		if !slices.ContainsFunc(p.expected, func(text string) bool { return strings.Contains(e, text) }) {
			p.t.Errorf("the page's console: %s", e)
		}
	}
}

// quote writes a string as JavaScript does.
func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}
