//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
)

// A decider is a user who reviews proposals.
type decider struct {
	w *world
	c *control.Client
}

// decider joins the project's companion as a reviewer does.
func (w *world) decider() *decider {
	w.t.Helper()
	c := w.control()
	if err := c.Attach(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return &decider{w, c}
}

// waiting waits until exactly one proposal is open and returns it.
func (d *decider) waiting() control.Diff {
	d.w.t.Helper()
	var diffs []control.Diff
	eventually(d.w.t, "a proposal", func() bool {
		var err error
		if diffs, err = d.c.Diffs(d.w.t.Context()); err != nil {
			d.w.t.Fatal(err)
		}
		return len(diffs) == 1
	})
	return diffs[0]
}

// decide decides like a reviewer who looks at every newer state, and keeps the proposal over the file (SPEC F-13).
func (d *decider) decide(accept bool, content *string) {
	d.w.t.Helper()
	ctx := d.w.t.Context()
	eventually(d.w.t, "a decision", func() bool {
		now := d.waiting()
		seen := control.Seen{Version: now.Version, Base: now.Base}
		err := d.c.Decide(ctx, control.Decision{ID: now.ID, Accept: accept, Content: content, Seen: seen})
		if err == nil {
			return true
		}
		if !strings.Contains(err.Error(), "since this was shown") && !strings.Contains(err.Error(), "where the proposal changes it") {
			d.w.t.Fatal(err)
		}
		if now = d.waiting(); now.Conflict != nil {
			if err := d.c.Resolve(ctx, now.ID, control.Seen{Version: now.Version, Base: now.Base}, false); err != nil {
				d.w.t.Log(err)
			}
		}
		return false
	})
}

// nothing waits until no proposal is open.
func (d *decider) nothing() {
	d.w.t.Helper()
	eventually(d.w.t, "the withdrawal", func() bool {
		diffs, err := d.c.Diffs(d.w.t.Context())
		return err == nil && len(diffs) == 0
	})
}

// A question is one pollux diff, or a git that runs it.
type question struct {
	w         *world
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	ended     chan error
}

// ask starts a command with a text on its standard input.
func (w *world) ask(stdin string, args ...string) *question {
	w.t.Helper()
	q := &question{w: w, cmd: exec.Command(args[0], args[1:]...), ended: make(chan error, 1)}
	q.cmd.Dir, q.cmd.Env = w.project, w.env
	q.cmd.Stdin, q.cmd.Stdout, q.cmd.Stderr = strings.NewReader(stdin), &q.out, &q.errs
	if err := q.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { q.ended <- q.cmd.Wait() }()
	w.t.Cleanup(func() { _ = q.cmd.Process.Kill() })
	return q
}

// code waits for the end and returns the exit code.
func (q *question) code() int {
	q.w.t.Helper()
	var err error
	ended := false
	eventually(q.w.t, "the command's end", func() bool {
		select {
		case err = <-q.ended:
			ended = true
		default:
		}
		return ended
	})
	_ = err
	return q.cmd.ProcessState.ExitCode()
}

func (q *question) wants(code int, stdout string) {
	q.w.t.Helper()
	if got := q.code(); got != code || q.out.String() != stdout {
		q.w.t.Errorf("%v: exit code %d, want %d; output %q, want %q; %s", q.cmd.Args[1:], got, code, &q.out, stdout, &q.errs)
	}
}

func (w *world) write(name, content string, mode os.FileMode) string {
	w.t.Helper()
	path := filepath.Join(w.project, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) holds(name, want string) {
	w.t.Helper()
	if got, err := os.ReadFile(filepath.Join(w.project, name)); err != nil || string(got) != want {
		w.t.Errorf("%s holds %q, want %q; %v", name, got, want, err)
	}
}

// SPEC §11.5: 0 accepted, 1 rejected, 130 cancelled; the text arrives at its destination byte for byte.
func TestDiff(t *testing.T) {
	w := newWorld(t)
	w.serve()
	d := w.decider()
	const old, proposed, edited = "one\r\ntwo\r\n", "\ufeffone\r\n2\r\nno end", "edited <&>\u2028\n"
	w.write("a.txt", old, 0o751)
	w.write("new", proposed, 0o600)

	q := w.ask(proposed, "pollux", "diff", "a.txt")
	if diff := d.waiting(); diff.Path != filepath.Join(w.project, "a.txt") || diff.IsNew {
		t.Errorf("%+v", diff)
	}
	d.decide(true, nil)
	q.wants(0, proposed)
	w.holds("a.txt", old)

	q = w.ask("", "pollux", "diff", "a.txt", "--from", "new", "-o", "out")
	text := edited
	d.decide(true, &text)
	q.wants(0, "")
	w.holds("out", edited)

	q = w.ask(proposed, "pollux", "diff", "a.txt", "--write")
	d.decide(false, nil)
	q.wants(1, "")
	w.holds("a.txt", old)

	if err := os.Symlink("a.txt", filepath.Join(w.project, "link")); err != nil {
		t.Fatal(err)
	}
	q = w.ask(proposed, "pollux", "diff", "link", "--write", "--json")
	d.decide(true, nil)
	if code := q.code(); code != 0 {
		t.Errorf("exit code %d, %s", code, &q.errs)
	}
	var outcome struct {
		Accepted, Edited bool
		Content          *string
	}
	if err := json.Unmarshal(q.out.Bytes(), &outcome); err != nil || !outcome.Accepted || outcome.Edited || outcome.Content != nil {
		t.Errorf("%s, %v", &q.out, err)
	}
	w.holds("a.txt", proposed)
	if info, _ := os.Lstat(filepath.Join(w.project, "link")); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link has become a file")
	}
	if info, _ := os.Stat(filepath.Join(w.project, "a.txt")); info.Mode().Perm() != 0o751 {
		t.Errorf("the mode is %v", info.Mode())
	}

	q = w.ask("fresh\n", "pollux", "diff", "sub.txt", "--write")
	if diff := d.waiting(); !diff.IsNew {
		t.Errorf("%+v", diff)
	}
	d.decide(true, nil)
	q.wants(0, "")
	w.holds("sub.txt", "fresh\n")

	// Equal texts need no decision.
	w.ask("fresh\n", "pollux", "diff", "sub.txt").wants(0, "fresh\n")

	// A file that has changed meanwhile is not overwritten.
	q = w.ask("mine\n", "pollux", "diff", "sub.txt", "--write")
	d.waiting()
	w.write("sub.txt", "theirs\n", 0o600)
	d.decide(true, nil)
	q.wants(3, "")
	w.holds("sub.txt", "theirs\n")
	w.kept(q, "sub.txt", "has changed while you were deciding", "mine\n")
	for end, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 130, syscall.SIGKILL: -1} {
		q := w.ask("x", "pollux", "diff", "a.txt", "--write")
		d.waiting()
		if err := q.cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		q.wants(want, "")
		d.nothing()
	}
	w.holds("a.txt", proposed)
}

// kept checks that the accepted text that could not be written is in the one file that the message names, readable by
// the user alone.
func (w *world) kept(q *question, name, why, want string) {
	w.t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.project, name+".accepted-*"))
	if len(files) != 1 || !strings.Contains(q.errs.String(), why) || !strings.Contains(q.errs.String(), files[0]) {
		w.t.Fatalf("%q: %s", files, &q.errs)
	}
	data, err := os.ReadFile(files[0])
	if info, _ := os.Stat(files[0]); err != nil || string(data) != want || info.Mode().Perm() != 0o600 {
		w.t.Errorf("%q, %v, %v", data, err, info.Mode())
	}
}

// An accepted text is never lost: a file that changed, disappeared or appeared, a folder that disappeared.
func TestDiffKeeps(t *testing.T) {
	w := newWorld(t)
	w.serve()
	d := w.decider()
	edited := "edited\n"
	for name, change := range map[string]func(path string) error{
		"gone.txt":    os.Remove,
		"changed.txt": func(path string) error { return os.WriteFile(path, []byte("theirs\n"), 0o600) },
		"new.txt":     func(path string) error { return os.WriteFile(path, []byte("theirs\n"), 0o600) },
		"folder.txt": func(path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
	} {
		if name != "new.txt" {
			w.write(name, "old\n", 0o600)
		}
		q := w.ask("proposed\n", "pollux", "diff", name, "--write", "--json")
		d.waiting()
		if err := change(filepath.Join(w.project, name)); err != nil {
			t.Fatal(err)
		}
		d.decide(true, &edited)
		if code := q.code(); code != 3 {
			t.Errorf("%s: exit code %d", name, code)
		}
		var outcome struct {
			Accepted bool
			Content  *string
		}
		if err := json.Unmarshal(q.out.Bytes(), &outcome); err != nil || !outcome.Accepted || outcome.Content == nil || *outcome.Content != edited {
			t.Errorf("%s: %s, %v", name, &q.out, err)
		}
		w.kept(q, name, filepath.Join(w.project, name), edited)
	}

	// -o into a folder that has disappeared: the text is kept elsewhere, and the message names the file.
	out := filepath.Join(w.project, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("a.txt", "old\n", 0o600)
	q := w.ask("proposed\n", "pollux", "diff", "a.txt", "-o", "out/a.txt")
	d.waiting()
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	d.decide(true, &edited)
	q.wants(3, "")
	files, _ := filepath.Glob(filepath.Join(w.tmp, "a.txt.accepted-*"))
	if len(files) != 1 || !strings.Contains(q.errs.String(), files[0]) {
		t.Errorf("%q: %s", files, &q.errs)
	}
}

// SPEC §11.5: a companion that ends, in any way, has given no answer, and nothing counts as cancelled.
func TestDiffWithoutItsCompanion(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		w := newWorld(t)
		l := w.serve()
		d := w.decider()
		w.write("a.txt", "a\n", 0o600)
		watch := w.ask("", "sh", "-c", "exec pollux context --watch --raw > told")
		eventually(t, "the context", func() bool {
			told, err := os.ReadFile(filepath.Join(w.project, "told"))
			return err == nil && len(told) > 0
		})
		q := w.ask("b\n", "pollux", "diff", "a.txt", "--write")
		d.waiting()
		if err := l.cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		for _, q := range []*question{q, watch} {
			q.wants(3, "")
			if !strings.Contains(q.errs.String(), "the companion has stopped before it answered; open its editor again") {
				t.Errorf("%v, %v: %s", end, q.cmd.Args, &q.errs)
			}
		}
		w.holds("a.txt", "a\n")
	}
}

// SPEC F-2: texts that no editor can show, and wrong usage.
func TestDiffRefuses(t *testing.T) {
	w := newWorld(t)
	w.write("a.txt", "a\n", 0o600)
	w.write("binary", "a\x00b", 0o600)
	w.write("latin1", "gr\xfc\xdfe", 0o600)
	w.write("big", strings.Repeat("x", 16<<20+1), 0o600)
	if err := syscall.Mkfifo(filepath.Join(w.project, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args  []string
		code  int
		error string
	}{
		{[]string{"a.txt"}, 3, "no companion serves this folder"},
		{[]string{"."}, 3, "is a folder; name a file in it"},
		{[]string{"binary"}, 3, "not text in UTF-8"},
		{[]string{"latin1"}, 3, "not text in UTF-8"},
		{[]string{"big"}, 3, "larger than 16 MiB"},
		{[]string{"pipe"}, 3, "not a regular file"},
		{[]string{"a.txt", "--from", "binary"}, 3, "not text in UTF-8"},
		{[]string{"a.txt", "--from", "big"}, 3, "larger than 16 MiB"},
		{[]string{"a.txt", "--from", "none"}, 3, "there is no file"},
		{[]string{"a.txt", "--write", "-o", "b"}, 2, "use one of them"},
		{[]string{"a.txt", "-o", "none/b"}, 3, "there is no folder \"none\""},
		{[]string{"none/a.txt", "--write"}, 3, "there is no folder"},
		{[]string{"a.txt", "-o", "."}, 3, "is a folder; name a file in it"},
		{[]string{""}, 2, "is no file"},
		{nil, 2, "accepts 1 arg"},
	} {
		q := w.ask("b\n", append([]string{"pollux", "diff"}, tt.args...)...)
		if code := q.code(); code != tt.code || !strings.Contains(q.errs.String(), tt.error) {
			t.Errorf("%v: exit code %d, want %d; %s", tt.args, code, tt.code, &q.errs)
		}
	}
	w.serve()
	q := w.ask("b\n", "pollux", "diff", "a.txt")
	if code := q.code(); code != 3 || !strings.Contains(q.errs.String(), `run "pollux review"`) {
		t.Errorf("with nobody to look: exit code %d, %s", code, &q.errs)
	}
}

// SPEC §11.1: a model's shell may ask, but cannot answer or pose as a reviewer.
func TestDiffFromAgent(t *testing.T) {
	w := newWorld(t)
	w.serve()
	d := w.decider()
	w.env = append(w.env, "GEMINI_CLI=1")
	q := w.ask("b\n", "pollux", "diff", "a.txt")
	d.decide(true, nil)
	q.wants(0, "b\n")
}

// The recipes of docs/review.md, with the user's own git.
func TestGit(t *testing.T) {
	pace.NotRaced(t, "each command is a process of its own, and shares its memory with no other")
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed: apt-get install git")
	}
	w := newWorld(t)
	w.serve()
	d := w.decider()
	w.env = append(w.env, "GIT_CONFIG_GLOBAL="+filepath.Join(w.root, "gitconfig"), "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	run := func(wantErr bool, args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = w.project, w.env
		if out, err := cmd.CombinedOutput(); (err != nil) != wantErr {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	recipe, err := os.ReadFile(filepath.Join("..", "..", "docs", "review.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, config, ok := strings.Cut(string(recipe), "```gitconfig\n")
	config, _, ok2 := strings.Cut(config, "```")
	if !ok || !ok2 {
		t.Fatal("docs/review.md has no gitconfig")
	}
	if err := os.WriteFile(filepath.Join(w.root, "gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	run(false, "init", "-q", "-b", "main")
	w.write("a.txt", "one\ntwo\n", 0o644)
	run(false, "add", ".")
	run(false, "commit", "-qm", "first")

	w.write("a.txt", "one\n2\n", 0o644)
	w.write("b.txt", "added\n", 0o644)
	run(false, "add", "b.txt")
	q := w.ask("", git, "difftool", "-y", "--tool=pollux", "HEAD")
	if diff := d.waiting(); filepath.Base(diff.Path) != "a.txt" {
		t.Errorf("%+v", diff)
	}
	text := "one\nzwei\n"
	d.decide(true, &text)
	eventually(t, "the second file", func() bool {
		diffs, err := d.c.Diffs(t.Context())
		return err == nil && len(diffs) == 1 && filepath.Base(diffs[0].Path) == "b.txt" && diffs[0].IsNew
	})
	d.decide(true, nil)
	if code := q.code(); code != 0 {
		t.Errorf("git difftool: exit code %d, %s%s", code, &q.out, &q.errs)
	}
	w.holds("a.txt", text)

	run(false, "checkout", "-q", "-f", "-b", "side", "HEAD")
	w.write("a.txt", "one\nours\n", 0o644)
	run(false, "commit", "-qam", "ours")
	run(false, "checkout", "-q", "-b", "other", "main")
	w.write("a.txt", "one\ntheirs\n", 0o644)
	run(false, "commit", "-qam", "theirs")
	run(true, "merge", "side")
	q = w.ask("", git, "mergetool", "-y", "--tool=pollux")
	d.waiting()
	d.decide(true, nil) // with conflict markers: not a merge
	if code := q.code(); code == 0 {
		t.Errorf("a file with conflict marks counts as merged: %s%s", &q.out, &q.errs)
	}
	q = w.ask("", git, "mergetool", "-y", "--tool=pollux")
	merged := "one\nours and theirs\n"
	d.waiting()
	d.decide(true, &merged)
	if code := q.code(); code != 0 {
		t.Errorf("git mergetool: exit code %d, %s%s", code, &q.out, &q.errs)
	}
	w.holds("a.txt", merged)
	run(false, "commit", "-qm", "merged")
}

// pollux open FILE:LINE:COLUMN moves the page to a place; pollux context shows what the CLI is told about it.
func TestOpenAndContext(t *testing.T) {
	w := newWorld(t)
	l := w.serve()
	w.write("a.txt", "one\ntwo\n", 0o600)
	w.write("odd:3", "x\n", 0o600)
	q := w.ask("", "pollux", "open", "a.txt:2:3")
	if code := q.code(); code != 3 || !strings.Contains(q.errs.String(), "no editor page is open") {
		t.Errorf("exit code %d, %s", code, &q.errs)
	}
	d := w.decider()
	q = w.ask("", "pollux", "open", "a.txt")
	if code := q.code(); code != 3 || !strings.Contains(q.errs.String(), "only pollux review looks here") {
		t.Errorf("with a reviewer: exit code %d, %s", code, &q.errs)
	}
	d.c.Close()
	page := webtest.Open(t, l.Page, "p")
	for what, want := range map[string]string{
		"a.txt:2:3": `{"line":1,"character":2}`, "a.txt:2": `{"line":1,"character":0}`, "a.txt:2:": `{"line":1,"character":0}`,
		"a.txt": `null`, "odd:3": `null`, "odd:3:1": `{"line":0,"character":0}`,
	} {
		w.ask("", "pollux", "open", what).wants(0, "")
		var note struct {
			Path     string
			Position json.RawMessage
		}
		page.Expect("open", &note)
		if got := string(note.Position); got != want && (got != "" || want != "null") {
			t.Errorf("%s: %s %s", what, note.Path, got)
		}
	}
	for _, bad := range []string{"none.txt", "none.txt:3", ".", "a.txt:0"} {
		if code := w.ask("", "pollux", "open", bad).code(); code == 0 {
			t.Errorf("%s: exit code 0", bad)
		}
	}

	w.ask("", "pollux", "context", "--json").wants(0, "{}\n")
	w.ask("", "pollux", "context").wants(0, "")
	file := filepath.Join(w.project, "a.txt")
	watch := w.ask("", "pollux", "context", "--watch", "--json")
	page.Notify("context/update", map[string]any{"open": []string{file}, "active": map[string]any{"path": file, "cursor": map[string]int{"line": 1, "character": 2}}, "dirty": []string{}, "focused": true})
	name, _ := json.Marshal(file)
	full := `{"activeFile":{"path":` + string(name) + `,"cursor":{"line":2,"character":3}}}` + "\n"
	eventually(t, "the context", func() bool {
		cmd := w.command("context", "--json")
		out, err := cmd.Output()
		return err == nil && string(out) == full
	})
	q = w.ask("", "pollux", "context")
	if code := q.code(); code != 0 || !strings.HasPrefix(q.out.String(), "Here is the user's editor context as a JSON object.") {
		t.Errorf("exit code %d, %s", code, &q.out)
	}
	q = w.ask("", "pollux", "context", "--raw")
	if code := q.code(); code != 0 || !strings.HasPrefix(q.out.String(), `{"workspaceState":{"openFiles":[{"path":`) {
		t.Errorf("exit code %d, %s", code, &q.out)
	}
	_ = watch.cmd.Process.Signal(syscall.SIGINT)
	if code := watch.code(); code != 0 || !strings.Contains(watch.out.String(), `{"changes":{"filesOpened":[`+string(name)) && !strings.Contains(watch.out.String(), full) {
		t.Errorf("exit code %d, %s", code, &watch.out)
	}
	w.ask("", "pollux", "context", "--raw", "--json").wants(2, "")
}
