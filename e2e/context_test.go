package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/model"
)

// TestContextReachesTheModel: the CLI finds the companion by itself (D-1 to
// D-4), /ide status lists the files newest first (C-3), and the model is sent
// the active file, cursor and selection, and later only what changed (C-1 to
// C-6). What pollux context prints for the same moment is that, to the byte.
func TestContextReachesTheModel(t *testing.T) {
	needCLI(t)
	b := newBench(t, map[string]string{
		"one.txt": "line 1\nline 2\nline 3\nline 4\n", "two.txt": "zwei 🎈 ballons\n", "three.txt": "three\n",
		"secret.txt": "not for the model\n", ".geminiignore": "secret.txt\n",
	})
	d := b.desk(b.serve())
	d.open("two.txt")
	d.open("secret.txt")
	d.open("one.txt")
	d.cursor(3, 5, 4)

	s := b.gemini("")
	status := connected(s)
	order(t, status, "one.txt (active)", "two.txt")
	if strings.Contains(status, "secret.txt") {
		t.Errorf("a file of .geminiignore is named:\n%s", status)
	}
	s.Wait("2 open files", second(60))

	defer tells(t, "context")
	first := s.Ask("tell me what I look at")
	before := b.saidBoth(first, "")
	ctx := first.Context()
	if ctx == nil || ctx.ActiveFile == nil || ctx.ActiveFile.Path != b.path("one.txt") {
		t.Fatalf("the model sees %+v", ctx)
	}
	// The selection runs from 3:5 to 3:7 and over the line's end, the cursor stands behind it.
	if a := ctx.ActiveFile; a.SelectedText == nil || *a.SelectedText != " 3\nl" || a.Cursor == nil || a.Cursor.Line != 4 || a.Cursor.Character != 2 {
		t.Errorf("active file: %+v, cursor %+v, selection %v", a, a.Cursor, deref(a.SelectedText))
	}
	if !slices.Equal(ctx.OtherOpenFiles, []string{b.path("two.txt")}) {
		t.Errorf("other files: %q", ctx.OtherOpenFiles)
	}

	// Nothing changed: nothing is said again.
	unchanged := s.Ask("and now")
	if again := unchanged.Context(); again != nil {
		t.Errorf("an unchanged context was sent again: %+v", again)
	}
	before = b.saidBoth(unchanged, before)

	// A move within the file, with the selection dropped. A balloon is two UTF-16 units (C-4).
	d.cursor(2, 3, 0)
	b.told("the cursor", func(context string) bool {
		return strings.Contains(context, `"cursor":{"line":2,"character":3}`) && !strings.Contains(context, "selectedText")
	})
	changed := s.Ask("the cursor moved")
	before = b.saidBoth(changed, before)
	moved := changed.Context()
	if moved == nil || moved.Changes == nil || moved.Changes.CursorMoved == nil ||
		moved.Changes.CursorMoved.Cursor.Line != 2 || moved.Changes.CursorMoved.Cursor.Character != 3 {
		t.Fatalf("changes: %+v", moved)
	}
	if sel := moved.Changes.SelectionChanged; sel == nil || sel.SelectedText == nil || *sel.SelectedText != "" {
		t.Errorf("the dropped selection: %+v", sel)
	}

	// A mention is typed where the CLI reads, with words, and nothing is sent before Enter; a secret is refused.
	if told := b.pollux("mention", "two.txt:1", "--words", "what is that?"); !strings.Contains(told, "typed by tmux") {
		t.Errorf("pollux mention says %q", told)
	}
	s.Wait("@two.txt line 1 what is that?", second(60))
	b.pollux("mention", "two.txt:2", "--words", "and that?") // another one stands apart
	s.Wait("what is that? @two.txt line 2 and that?", second(60))
	if text := b.entered(s.Terminal, s.Model, "what is that?"); !strings.Contains(text, "zwei 🎈 ballons") {
		t.Errorf("the model is not told of what was mentioned:\n%s", text)
	}

	d.open("three.txt")
	d.Click(d.tab("two.txt"))
	d.shows("two.txt")
	d.cursor(1, 7, 0)
	d.Click(d.tab("one.txt") + " " + browser.ID("tab-close"))
	d.Gone(d.tab("one.txt"))
	b.told("the closed file", func(context string) bool {
		return !strings.Contains(context, b.path("one.txt")) && strings.Contains(context, `"cursor":{"line":1,"character":8}`)
	})
	others := s.Ask("other files")
	b.saidBoth(others, before)
	last := others.Context()
	if last == nil || last.Changes == nil {
		t.Fatalf("changes: %+v", last)
	}
	c := last.Changes
	if !slices.Equal(c.FilesOpened, []string{b.path("three.txt")}) || !slices.Equal(c.FilesClosed, []string{b.path("one.txt")}) {
		t.Errorf("opened %q, closed %q", c.FilesOpened, c.FilesClosed)
	}
	if a := c.ActiveFileChanged; a == nil || a.Path != b.path("two.txt") || a.Cursor == nil || a.Cursor.Character != 8 {
		t.Errorf("the active file is now %+v", a)
	}
	order(t, connected(s), "two.txt (active)", "three.txt")
}

// saidBoth compares what a request tells of the editor with what pollux context prints: the whole, or the changes since
// an earlier call, whose result is before. It returns the file by which the next call knows this moment.
func (b *bench) saidBoth(r *model.Request, before string) string {
	b.t.Helper()
	args := []string{"context"}
	if before != "" {
		args = append(args, "--since", before)
	}
	if got, want := strings.TrimSuffix(b.pollux(args...), "\n"), r.ContextText(); got != want {
		b.t.Errorf("the model is told:\n%s\npollux %s says:\n%s", want, strings.Join(args, " "), got)
	}
	file := filepath.Join(b.home.Dir, "context-"+strconv.FormatInt(r.At.UnixNano(), 36))
	if err := os.WriteFile(file, []byte(b.pollux("context", "--raw")), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return file
}
