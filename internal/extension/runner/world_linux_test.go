package runner

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// TestMain lets the test binary act as pollux itself, and as a pollux that is killed. All tests share an empty home
// folder.
func TestMain(m *testing.M) {
	for _, name := range []string{"GEMINI_CLI_HOME", "GEMINI_CLI", "DBUS_SESSION_BUS_ADDRESS"} {
		os.Unsetenv(name)
	}
	os.Setenv("GEMINI_FORCE_FILE_STORAGE", "true")
	os.Setenv("GORACE", "atexit_sleep_ms=0") // hundreds of short processes
	if dir := os.Getenv("RUNNER_VICTIM"); dir != "" {
		os.Exit(victim(dir))
	}
	if how := os.Getenv("RUNNER_NESTED"); how != "" {
		os.Exit(nested(how))
	}
	os.Exit(inHome(m))
}

func inHome(m *testing.M) int {
	home, err := os.MkdirTemp("", "runner-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	if home, err = filepath.EvalSymlinks(home); err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	return m.Run()
}

// A world is a user with extensions, answers, a log and a workspace.
type world struct {
	t         testing.TB
	root      string
	workspace string
	store     *store.Store
	consent   *consent.Store
	audit     *audit.Log
	options   Options
}

func newWorld(t testing.TB) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return worldAt(t, root)
}

func worldAt(t testing.TB, root string) *world {
	w := &world{t: t, root: root, workspace: filepath.Join(root, "work")}
	err := os.MkdirAll(w.workspace, 0o700)
	if err == nil {
		w.store, err = store.Open(&store.Options{Home: root, WorkDir: w.workspace})
	}
	if err != nil {
		panic(err)
	}
	w.consent, w.audit = consent.Open(filepath.Join(root, "state")), audit.Open(filepath.Join(root, "state"))
	w.options = Options{
		Store: w.store, Consent: w.consent, Audit: w.audit, Limits: sandbox.Limits{Time: testTime},
		Sandbox: sandbox.New(&sandbox.Options{Home: root}),
	}
	return w
}

// testTime bounds each run in tests, even on a busy machine.
const testTime = 40 * time.Second

// file writes a file below the world's root.
func (w *world) file(name, text string) string {
	path := filepath.Join(w.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		panic(err)
	}
	return path
}

// extension installs an extension as Gemini CLI does: a folder with a manifest. Its only tool is "t".
func (w *world) extension(name, runtime, script string, p permission.Permissions, more map[string]any, args ...string) string {
	t := map[string]any{"name": "t", "description": "a tool", "executable": "tools/t", "runtime": runtime, "output": "json"}
	var list []map[string]string
	for _, a := range tool(runtime, args...).Args {
		list = append(list, map[string]string{"name": a.Name, "type": a.Type})
	}
	if list != nil {
		t["args"] = list
	}
	m := map[string]any{"name": name, "version": "1.0.0", "permissions": p, "tools": []any{t}}
	for k, v := range more {
		m[k] = v
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	dir := ".gemini/extensions/" + name + "/"
	w.file(dir+"gemini-extension.json", string(data))
	w.file(dir+"tools/t", script)
	return filepath.Join(w.root, dir)
}

// allow agrees to an extension's current content.
func (w *world) allow(name string) {
	x, err := w.store.Get(name)
	if err == nil {
		var s consent.Subject
		if s, err = Subject(x); err == nil {
			err = w.consent.Grant(context.Background(), s, consent.Always, consent.Answered())
		}
	}
	if err != nil {
		panic(err)
	}
}

func (w *world) request(name, args string) Request {
	return Request{Extension: name, Tool: "t", Args: json.RawMessage(args), WorkDir: w.workspace}
}

// run runs the tool t of an extension.
func (w *world) run(name, args string) (*Result, error) {
	w.t.Helper()
	return w.do(w.request(name, args))
}

// do is run for any request.
func (w *world) do(q Request) (*Result, error) {
	w.t.Helper()
	r, err := New(w.options).Run(w.t.Context(), q)
	w.possible(err)
	return r, err
}

// possible skips a test on a machine without namespaces, unless peers are required.
func (w *world) possible(err error) {
	w.t.Helper()
	if errors.Is(err, sandbox.ErrSetup) && !peers.Required() {
		if report := w.options.Sandbox.Check(w.t.Context()); !report.Enforced {
			w.t.Skip(report.Summary, report.Fixes)
		}
	}
}

// must is run for a tool that succeeds.
func (w *world) must(name, args string) *Result {
	w.t.Helper()
	r, err := w.run(name, args)
	if err != nil {
		if r != nil {
			w.t.Fatalf("%v\n%s%s", err, r.Stderr, r.Text)
		}
		w.t.Fatal(err)
	}
	return r
}

// events returns the log's entries in the order of writing.
func (w *world) events() []audit.Entry {
	w.t.Helper()
	all, err := w.audit.Read(audit.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// An asker gives the answers of a test, and counts questions.
type asker struct {
	asked  int
	answer func(consent.Question) (consent.Answer, error)
}

func (a *asker) Ask(_ context.Context, q consent.Question) (consent.Answer, error) {
	a.asked++
	return a.answer(q)
}

func always(consent.Question) (consent.Answer, error) { return consent.Always, nil }
