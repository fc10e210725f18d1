package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// TestConsent: pollux asks once, stores the answer, asks again for changed content and for wider permissions, not for
// narrower ones. A refused tool does not run (SPEC S-2).
func TestConsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := &asker{answer: always}
	w.options.Asker = ask
	script := `echo '"one"'`
	write := func(level permission.Access) {
		w.extension("x", "shell", script, permission.Permissions{Read: level}, nil)
	}
	step := func(name string, asked int, status consent.Status) {
		t.Helper()
		before := ask.asked
		var got consent.Status
		answer := ask.answer
		ask.answer = func(q consent.Question) (consent.Answer, error) { got = q.Verdict.Status; return answer(q) }
		w.must("x", "")
		ask.answer = answer
		if ask.asked-before != asked || got != status {
			t.Errorf("%s: asked %d times, because %q", name, ask.asked-before, got)
		}
	}
	write(permission.Workspace)
	step("first", 1, consent.NotAsked)
	step("second", 0, "")
	write(permission.None)
	step("narrower", 0, "")
	write(permission.Home)
	step("wider", 1, consent.Wider)
	step("wider, again", 0, "")
	script = `echo '"two"'`
	write(permission.Home)
	step("other content", 1, consent.Changed)

	ask.answer = func(consent.Question) (consent.Answer, error) { return consent.Never, nil }
	script = `echo '"three"'`
	write(permission.Home)
	for range 2 {
		var refused *RefusedError
		if r, err := w.run("x", ""); r != nil || !errors.As(err, &refused) || refused.Why != BecauseConsent {
			t.Errorf("%+v %v", r, err)
		}
	}
	script = `echo '"four"'`
	write(permission.None)
	if _, err := w.run("x", ""); err == nil || ask.asked != 4 {
		t.Errorf("after never: %v, asked %d times", err, ask.asked)
	}
}

// TestOnce: neither a yes for one run nor a dismissed question is stored.
func TestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := &asker{answer: func(consent.Question) (consent.Answer, error) { return consent.Once, nil }}
	w.options.Asker = ask
	w.extension("x", "shell", `echo 1`, permission.Permissions{}, nil)
	w.must("x", "")
	w.must("x", "")
	ask.answer = func(consent.Question) (consent.Answer, error) { return "", nil }
	if _, err := w.run("x", ""); err == nil || errors.Is(err, consent.ErrNobody) {
		t.Error(err)
	}
	if ask.asked != 3 {
		t.Errorf("asked %d times", ask.asked)
	}
	w.options.Asker = nil
	_, err := w.run("x", "")
	if !errors.Is(err, consent.ErrNobody) || !strings.Contains(err.Error(), "pollux extensions consent grant x") {
		t.Error(err)
	}
	q := w.request("x", "")
	q.Agreed = true
	if _, err := w.do(q); err != nil {
		t.Error(err)
	}
	if _, err := w.run("x", ""); !errors.Is(err, consent.ErrNobody) {
		t.Errorf("a yes beforehand was kept: %v", err)
	}
}

// TestAskedOneByOne: several calls at once cause one question, and a permanent answer counts for all. A waiting call
// can be cancelled.
func TestAskedOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.extension("x", "shell", `echo 1`, permission.Permissions{}, nil)
	stands, answer := make(chan struct{}), make(chan struct{})
	ask := &asker{answer: func(consent.Question) (consent.Answer, error) {
		close(stands) // a second question panics
		<-answer
		return consent.Always, nil
	}}
	w.options.Asker = ask
	r := New(w.options)
	done := make(chan error, 4)
	for range 4 {
		go func() { _, err := r.Run(t.Context(), w.request("x", "")); done <- err }()
	}
	<-stands
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Run(ctx, w.request("x", "")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(answer)
	for range 4 {
		err := <-done
		w.possible(err)
		if err != nil {
			t.Error(err)
		}
	}
}

// TestLinked: a folder under development asks once, and runs its current content.
func TestLinked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := &asker{answer: always}
	w.options.Asker = ask
	dir := w.extension("x", "shell", `echo 1`, permission.Permissions{}, nil)
	work := filepath.Join(w.root, "dev")
	if err := os.Rename(dir, work); err != nil {
		t.Fatal(err)
	}
	w.file(".gemini/extensions/x/.gemini-extension-install.json", `{"source":`+strconv.Quote(work)+`,"type":"link"}`)
	if r := w.must("x", ""); r.Text != "1\n" {
		t.Error(r.Text)
	}
	w.file("dev/tools/t", `echo 2`)
	if r := w.must("x", ""); r.Text != "2\n" || ask.asked != 1 {
		t.Errorf("%s, asked %d times", r.Text, ask.asked)
	}
}

// TestWorkspaceIsExtension: authors run their extension's tool in its own folder. The tool sees and changes the files
// of the workspace, also when called in a subfolder.
func TestWorkspaceIsExtension(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.extension("x", "shell", `cat input && echo new >output && [ -d .git ]`, permission.Permissions{Write: permission.Workspace}, nil)
	work := filepath.Join(w.root, "dev")
	if err := os.Rename(dir, work); err != nil {
		t.Fatal(err)
	}
	w.file(".gemini/extensions/x/.gemini-extension-install.json", `{"source":`+strconv.Quote(work)+`,"type":"link"}`)
	w.allow("x")
	for _, dir := range []string{"dev", "dev/sub"} {
		w.file(dir+"/input", "input of "+dir)
		w.file(dir+"/.git/HEAD", "x")
		q := w.request("x", "")
		q.WorkDir = filepath.Join(w.root, dir)
		r, err := w.do(q)
		if err != nil || r.Text != "input of "+dir {
			t.Errorf("%s: %+v %v", dir, r, err)
		}
		if _, err := os.Stat(filepath.Join(q.WorkDir, "output")); err != nil {
			t.Error(err)
		}
	}
}

// TestSwap: what was shown to the user is what runs, even if the script is replaced while they think (SPEC S-2).
func TestSwap(t *testing.T) {
	t.Parallel()
	for _, answer := range []consent.Answer{consent.Once, consent.Always} {
		w := newWorld(t)
		w.extension("x", "python", `print('"good"')`, permission.Permissions{Read: permission.Home}, nil)
		ask := &asker{}
		ask.answer = func(consent.Question) (consent.Answer, error) {
			if ask.asked == 1 {
				w.file(".gemini/extensions/x/tools/t", `print('"evil"')`)
				return answer, nil
			}
			return "", nil
		}
		w.options.Asker = ask
		if r := w.must("x", ""); string(r.JSON) != `"good"` {
			t.Errorf("%s: %s ran", answer, r.Text)
		}
		if r, err := w.run("x", ""); err == nil {
			t.Errorf("%s: %s ran without a question", answer, r.Text)
		}
	}
}

// TestSwapWhileReading: files that change all the time during runs never make other content run than the user agreed
// to.
func TestSwapWhileReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.extension("x", "shell", `echo '"good"'`, permission.Permissions{}, nil)
	w.allow("x")
	script := filepath.Join(w.root, ".gemini/extensions/x/tools/t")
	other, same := w.file("other", `echo '"evil"'`), w.file("same", `echo '"good"'`)
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			from := []string{other, same}[i%2]
			tmp := script + ".new" // beside it, so that it briefly is content too
			if os.Link(from, tmp) == nil {
				_ = os.Rename(tmp, script)
				_ = os.Remove(tmp)
			}
		}
	})
	good, refused := 0, 0
	for deadline := time.Now().Add(testTime); good == 0 || refused == 0 || good+refused < 30; {
		if time.Now().After(deadline) {
			t.Errorf("%d good and %d refused: nothing was proven", good, refused)
			break
		}
		r, err := w.do(w.request("x", ""))
		switch {
		case err != nil:
			refused++
		case string(r.JSON) == `"good"`:
			good++
		default:
			t.Errorf("%s ran", r.Text)
		}
	}
	close(stop)
	swapper.Wait()
}

// TestPycache: compiled code that was not hashed is not read, and no run leaves any behind.
func TestPycache(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	t.Parallel()
	w := newWorld(t)
	dir := w.extension("x", "python", "import helper\nprint(helper.word)", permission.Permissions{}, nil)
	w.file(".gemini/extensions/x/tools/helper.py", `word = '"good"'`)
	evil := w.file("evil.py", `word = '"evil"'`)
	w.allow("x")
	out, err := exec.Command("python3", "-c", `import py_compile, sys
py_compile.compile(sys.argv[1], cfile=sys.argv[2] + "/__pycache__/helper." + sys.implementation.cache_tag + ".pyc", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)`, evil, filepath.Join(dir, "tools")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := exec.Command("python3", filepath.Join(dir, "tools", "t")).Output(); err != nil || string(out) != "\"evil\"\n" {
		t.Fatalf("nothing is proven: %s %v", out, err)
	}
	if r := w.must("x", ""); string(r.JSON) != `"good"` {
		t.Errorf("%s ran", r.Text)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "tools/__pycache__/t.*")); len(found) > 0 {
		t.Error(found)
	}
}

// TestLarge: an extension too large for memory runs from a private copy, which is removed afterwards; so does one
// without a sandbox.
func TestLarge(t *testing.T) {
	w := newWorld(t)
	tmp := filepath.Join(w.root, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	dir := w.extension("x", "shell", `. "$(dirname "$0")/lib.sh"; wc -c <"$(dirname "$0")/../data"`, permission.Permissions{}, nil)
	w.file(".gemini/extensions/x/data", strings.Repeat("x", 20<<20))
	w.file(".gemini/extensions/x/real/lib.sh", `set -e`)
	if err := os.Symlink("../real/lib.sh", filepath.Join(dir, "tools/lib.sh")); err != nil {
		t.Fatal(err)
	}
	w.allow("x")
	for _, unsafe := range []bool{false, true} {
		q := w.request("x", "")
		q.Unsafe = unsafe
		r, err := w.do(q)
		if err != nil || string(r.JSON) != strconv.Itoa(20<<20) {
			t.Errorf("unsafe %v: %+v %v", unsafe, r, err)
		}
		if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	last := w.events()[len(w.events())-1]
	if last.Assurance != unsandboxed {
		t.Errorf("%+v", last)
	}
}

// TestLimits: a limit ends the tool, is named in the error, and is logged.
func TestLimits(t *testing.T) {
	for kind, test := range map[string]struct {
		script string
		limits sandbox.Limits
		unsafe bool
	}{
		"time":           {script: "echo begun; sleep 1000", limits: sandbox.Limits{Time: 300 * time.Millisecond}},
		"output":         {script: "echo begun; yes", limits: sandbox.Limits{Output: 2000}},
		"time, unsafe":   {script: "echo begun; sleep 1000 & sleep 1000", limits: sandbox.Limits{Time: 300 * time.Millisecond}, unsafe: true},
		"output, unsafe": {script: "echo begun; yes", limits: sandbox.Limits{Output: 2000}, unsafe: true},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.extension("x", "shell", test.script, permission.Permissions{}, nil)
			w.allow("x")
			q := w.request("x", "")
			q.Limits, q.Unsafe = test.limits, test.unsafe
			r, err := w.do(q)
			var failed *FailedError
			if !errors.As(err, &failed) || r == nil || r.Limit == nil || r.Code != 137 || !strings.HasPrefix(r.Text, "begun\n") {
				t.Fatalf("%+v %v", r, err)
			}
			want, _, _ := strings.Cut(kind, ",")
			if e := w.events()[len(w.events())-1]; e.Limit != want || r.Limit.Kind != want || *e.Exit != 137 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestEndings: exit codes and signals are passed on unchanged.
func TestEndings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, unsafe := range []bool{false, true} {
		for script, want := range map[string][2]int{"exit 7": {7, 0}, "kill -SEGV $$": {139, 11}} {
			w.extension("x", "shell", "echo told >&2; "+script, permission.Permissions{}, nil)
			w.allow("x")
			q := w.request("x", "")
			q.Unsafe = unsafe
			r, err := w.do(q)
			if !errors.As(err, new(*FailedError)) || r.Code != want[0] || r.Signal != want[1] || r.Stderr != "told\n" {
				t.Errorf("%s, unsafe %v: %+v %v", script, unsafe, r, err)
			}
		}
	}
}

// TestNothingSurvives: no process and no folder is left after a limit, a cancelled run or kill -9 of pollux, with and
// without the sandbox (SPEC S-1).
func TestNothingSurvives(t *testing.T) {
	w := newWorld(t)
	tmp := filepath.Join(w.root, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	ready := w.file("work/ready", "")
	// Leaves processes behind in every known way; the last one says that all have started.
	w.extension("x", "shell", `(setsid sh -c "sleep $2; :" >/dev/null 2>&1 &)
nohup setsid sh -c "trap '' TERM HUP INT; sleep $2; :" >/dev/null 2>&1 &
echo ready >"$4"; exec sleep "$2"`, permission.Permissions{Write: permission.Workspace}, nil, "mark:string", "ready:string")
	w.allow("x")
	begin := func() (mark, args string) {
		mark = fmt.Sprintf("1000.%d%d", os.Getpid(), time.Now().UnixNano())
		w.file("work/ready", "")
		return mark, fmt.Sprintf(`{"mark": %q, "ready": %q}`, mark, ready)
	}
	begun := func() {
		t.Helper()
		poll(t, "the tool runs", func() bool { data, _ := os.ReadFile(ready); return len(data) > 0 })
	}
	gone := func(mark string) {
		t.Helper()
		poll(t, "its processes are gone", func() bool { return len(marked(mark)) == 0 })
	}
	t.Run("limit", func(t *testing.T) {
		mark, args := begin()
		q := w.request("x", args)
		q.Limits.Time = 500 * time.Millisecond
		if r, err := w.do(q); err == nil || r == nil {
			t.Errorf("%+v %v", r, err)
		}
		gone(mark)
	})
	t.Run("cancelled", func(t *testing.T) {
		mark, args := begin()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := New(w.options).Run(ctx, w.request("x", args)); done <- err }()
		begun()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		gone(mark)
		if e := w.events()[len(w.events())-1]; e.Event != audit.Ended || e.Why != "it was cancelled" {
			t.Errorf("%+v", e)
		}
	})
	t.Run("killed", func(t *testing.T) {
		mark, args := begin()
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "RUNNER_VICTIM="+w.root, "RUNNER_VICTIM_EXT=x", "RUNNER_VICTIM_ARGS="+args)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun()
		poll(t, "both of its processes run", func() bool { return len(marked(mark)) >= 2 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gone(mark)
		if e := w.events()[len(w.events())-1]; e.Event != audit.Started {
			t.Errorf("the log does not say that it was started: %+v", e)
		}
	})
	t.Run("killed without a sandbox", func(t *testing.T) {
		w.extension("y", "shell", `echo ready >"$2"; exec sleep "$4"`, permission.Permissions{}, nil, "ready:string", "mark:string")
		w.allow("y")
		mark, args := begin()
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "RUNNER_VICTIM="+w.root, "RUNNER_VICTIM_EXT=y", "RUNNER_VICTIM_UNSAFE=1", "RUNNER_VICTIM_ARGS="+args)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		gone(mark)
		left, _ := filepath.Glob(filepath.Join(tmp, unpackPrefix+"*"))
		if len(left) != 1 {
			t.Fatalf("nothing is proven: %q", left)
		}
		poll(t, "the next run removes what it left", func() bool {
			sweep(tmp)
			left, _ := filepath.Glob(filepath.Join(tmp, unpackPrefix+"*"))
			return len(left) == 0
		})
	})
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// marked lists the processes with a word in their command lines.
func marked(mark string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), mark) && !strings.Contains(string(data), "runner.test") {
			all = append(all, f)
		}
	}
	return all
}

// poll waits for another process to do something.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTime); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// TestStages: whatever fails on the way, the tool does not run, and the error says what to do.
func TestStages(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, w *world, q *Request)
		want  string
		as    any
	}{
		"no such extension": {func(_ *testing.T, _ *world, q *Request) { q.Extension = "y" }, `no extension "y"`, new(*store.NotFoundError)},
		"no such tool":      {func(_ *testing.T, _ *world, q *Request) { q.Tool = "tt" }, `did you mean "t"?`, new(*UnknownToolError)},
		"arguments":         {func(_ *testing.T, _ *world, q *Request) { q.Args = []byte(`{"a":1}`) }, "unknown: a", new(*ArgumentError)},
		"broken manifest": {func(t *testing.T, w *world, _ *Request) {
			w.file(".gemini/extensions/x/gemini-extension.json", `{"name":"x"}`)
		},
			"does not load", new(*RefusedError)},
		"disabled": {func(t *testing.T, w *world, _ *Request) {
			if err := w.store.SetEnabled(t.Context(), "x", store.User, false); err != nil {
				t.Fatal(err)
			}
		}, "pollux extensions enable x", new(*RefusedError)},
		"a pipe among the files": {func(t *testing.T, w *world, _ *Request) {
			if err := exec.Command("mkfifo", filepath.Join(w.root, ".gemini/extensions/x/pipe")).Run(); err != nil {
				t.Fatal(err)
			}
		}, "pipe", nil},
		"no workspace": {func(_ *testing.T, w *world, q *Request) { q.WorkDir = "/" }, "is none: it holds your whole home folder", new(*RefusedError)},
		"folder gone":  {func(_ *testing.T, w *world, q *Request) { q.WorkDir = filepath.Join(w.root, "gone") }, "is gone", new(*RefusedError)},
		"answers damaged": {func(t *testing.T, w *world, _ *Request) { w.file("state/consent.json", "{") },
			"consent revoke --all", new(*RefusedError)},
		"nobody to ask": {func(t *testing.T, w *world, _ *Request) { w.options.Asker = nil }, "consent grant x", new(*RefusedError)},
		"asking fails": {func(t *testing.T, w *world, _ *Request) {
			w.options.Asker = &asker{answer: func(consent.Question) (consent.Answer, error) {
				return consent.Always, errors.New("the editor is gone")
			}}
		}, "the editor is gone", new(*RefusedError)},
		"odd answer": {func(t *testing.T, w *world, _ *Request) {
			w.options.Asker = &asker{answer: func(consent.Question) (consent.Answer, error) { return "yes!", nil }}
		}, "did not agree", new(*RefusedError)},
		"answer not kept":  {func(t *testing.T, w *world, _ *Request) { w.file("state/consent.lock/x", "") }, "cannot be changed", nil},
		"log not writable": {func(t *testing.T, w *world, _ *Request) { w.file("state/audit.jsonl/x", "") }, "audit log", nil},
		"no runtime":       {func(t *testing.T, _ *world, _ *Request) { t.Setenv("PATH", "/nonexistent") }, `no program "sh" is found`, nil},
		"a secret store as workspace": {func(_ *testing.T, w *world, q *Request) { q.WorkDir = filepath.Dir(w.file(".ssh/id", "x")) },
			"where secrets are kept", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.Asker = &asker{answer: always}
			mark := filepath.Join(w.workspace, "ran")
			w.extension("x", "shell", "echo ran >"+mark, permission.Permissions{Write: permission.Workspace}, nil)
			q := w.request("x", "")
			test.spoil(t, w, &q)
			r, err := w.do(q)
			if err == nil || r != nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%+v, %v; want %q", r, err, test.want)
			}
			if test.as != nil && !errors.As(err, test.as) {
				t.Errorf("%T is not %T", err, test.as)
			}
			if _, err := os.Lstat(mark); err == nil {
				t.Error("it ran")
			}
			if text, failed := Reply(r, err, 1000); !failed || text == "" {
				t.Errorf("%q", text)
			}
			if name == "log not writable" {
				return
			}
			if events := w.events(); len(events) == 0 || !slices.ContainsFunc(events, func(e audit.Entry) bool { return e.Event == audit.Refused && e.Why != "" }) {
				t.Errorf("%+v", events)
			}
		})
	}
}
