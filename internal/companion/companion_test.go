package companion

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/editor/web"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/settings"
)

// options are those of a user of the test's own, with two project folders.
func options(t *testing.T) (o Options, a, b string) {
	t.Helper()
	root, err := os.MkdirTemp("", "px") // short, for the socket in it
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	path := func(name string) string { return filepath.Join(root, name) }
	for _, name := range []string{"a", "b", "tmp"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"TMPDIR": path("tmp"), "TEMP": path("tmp"), "HOME": path("home"), "USERPROFILE": path("home"), "CLAUDE_CONFIG_DIR": "", "QWEN_HOME": "",
	} {
		t.Setenv(name, value)
	}
	return Options{
		Dirs:     settings.Dirs{Config: path("c"), State: path("s"), Run: []string{path("r")}},
		Settings: settings.Defaults(),
		Roots:    []string{path("a")},
		Version:  "test",
		NewPage:  func(o PageOptions) Page { return web.New(o) },
	}, path("a"), path("b")
}

func start(t *testing.T, o Options) *Companion {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(t.Context()) })
	return c
}

// nothingLeft fails when a discovery file, socket or half-written file is left.
func nothingLeft(t *testing.T, o Options) {
	t.Helper()
	for _, dir := range append(o.Dirs.Run, discovery.Dir()) {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left in %s: %v", dir, left)
		}
	}
}

func TestStartAndStop(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	info := c.Info()
	entries, err := discovery.List(discovery.Dir())
	if err != nil || len(entries) != 1 || entries[0].Path != info.DiscoveryFile || entries[0].Port != info.Port || entries[0].File.IDE.DisplayName != "Pollux" || !slices.Equal(entries[0].File.Roots, []string{a}) {
		t.Errorf("%+v, %v; want %+v", entries, err, info)
	}
	for token, want := range map[string]int{entries[0].File.Token: 200, "wrong": 401} { // T-9, A-2
		req, _ := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/keep-alive", info.Port), nil)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s; want %d", resp.Status, want)
		}
	}
	page, err := c.PageAddress()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the page: %s", resp.Status)
	}
	other, err := control.Find(t.Context(), o.Dirs.Run, a)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if conn, err := other.Connection(t.Context()); err != nil || conn.Port != info.Port || conn.Token != entries[0].File.Token {
		t.Errorf("%+v, %v", conn, err)
	}
	if snap, err := other.Context(t.Context()); err != nil || !slices.Equal(snap.Roots, []string{a}) {
		t.Errorf("%+v, %v", snap, err)
	}
	if err := other.Open(t.Context(), control.Location{Path: a}); err == nil {
		t.Error("a file was opened in no editor")
	}
	watch := pace.Start(t)
	for range 2 {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if took := watch.Took(); took > pace.Slack*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	nothingLeft(t, o)
	if _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", info.Port)); err == nil {
		t.Error("the port is still open")
	}
}

// A start that fails leaves nothing behind, wherever it fails.
func TestFailedStart(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tt := range map[string]struct {
		spoil func(t *testing.T, o *Options)
		want  string
	}{
		"no such root": {func(_ *testing.T, o *Options) { o.Roots = []string{"/none/such"} }, "/none/such"},
		"a name that no CLI could read": {func(t *testing.T, o *Options) {
			o.Roots = []string{filepath.Join(o.Roots[0], "\xff")}
			if os.Mkdir(o.Roots[0], 0o700) != nil {
				t.Log("the file system takes only UTF-8")
			}
		}, "\\xff"},
		"a port that is taken":          {func(_ *testing.T, o *Options) { o.Port = taken.Addr().(*net.TCPAddr).Port }, "--port"},
		"an address of another machine": {func(_ *testing.T, o *Options) { o.Settings.ContainerAddress = "203.0.113.7" }, "this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := options(t)
			tt.spoil(t, &o)
			c, err := Start(t.Context(), o)
			if err == nil {
				c.Stop(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want something with %q", err, tt.want)
			}
			nothingLeft(t, o)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		o, _, _ := options(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Start(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		nothingLeft(t, o)
	})
}

// SPEC D-4: the file follows the workspace's folders.
func TestSetRootsD4(t *testing.T) {
	o, a, b := options(t)
	c := start(t, o)
	roots := func() []string {
		t.Helper()
		entries, err := discovery.List(discovery.Dir())
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		return entries[0].File.Roots
	}
	if err := c.SetRoots([]string{b, a}); err != nil {
		t.Fatal(err)
	}
	if want := []string{b, a}; !slices.Equal(roots(), want) || !slices.Equal(c.Info().Roots, want) || !slices.Equal(c.store.Snapshot().Roots, want) {
		t.Errorf("%v, %v, %v; want %v", roots(), c.Info().Roots, c.store.Snapshot().Roots, want)
	}
	if err := c.SetRoots([]string{"/none/such"}); err == nil || !slices.Equal(roots(), []string{b, a}) {
		t.Errorf("%v, %v", err, roots())
	}
	if got := (backend{c}).Status().Roots; !slices.Equal(got, []string{b, a}) {
		t.Errorf("status says %v", got)
	}
}

// A program that cleans the temporary folder does not hide a companion for good.
func TestTouchRestoresFile(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	path := c.Info().DiscoveryFile
	old := time.Now().Add(-time.Hour)
	os.Chtimes(path, old, old)
	c.touch(time.Now())
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("not touched: %v, %v", info, err)
	}
	os.RemoveAll(filepath.Dir(filepath.Dir(path)))
	c.touch(time.Now())
	if entries, _ := discovery.List(discovery.Dir()); len(entries) != 1 {
		t.Error("the file did not come back")
	}
	c.Stop(t.Context())
	c.touch(time.Now())
	nothingLeft(t, o)
}

// SPEC T-8: a second address, the same port, one more Host.
func TestContainerT8(t *testing.T) {
	o, _, _ := options(t)
	o.Settings.ContainerAddress = "127.0.0.2" // another address of loopback, as a bridge's is another of the machine
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Logf("this system has no 127.0.0.2: %v", err)
		return
	}
	defer c.Stop(t.Context())
	info := c.Info()
	for host, want := range map[string]int{fmt.Sprintf("host.docker.internal:%d", info.Port): 200, "evil.example": 403} {
		req, _ := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.2:%d/keep-alive", info.Port), nil)
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+c.Connection().Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %s; want %d", host, resp.Status, want)
		}
	}
}

// What cannot be kept is left out, and the companion works without it.
func TestStateUnwritable(t *testing.T) {
	o, _, _ := options(t)
	if err := os.WriteFile(o.Dirs.State, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	o.Dirs.Run = []string{filepath.Join(o.Dirs.State, "run")}
	c := start(t, o)
	if entries, _ := discovery.List(discovery.Dir()); len(entries) != 1 {
		t.Error("no discovery file")
	}
	if !hasTrouble(c, "record") {
		t.Errorf("nobody is told: %v", c.troubles())
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func hasTrouble(c *Companion, id string) bool {
	return slices.ContainsFunc(c.troubles(), func(t control.Trouble) bool { return t.ID == id })
}

// A record that others could have written is not trusted.
func TestResumeRefusesForeignRecord(t *testing.T) {
	o, _, _ := options(t)
	start(t, o).Stop(t.Context())
	records, _ := filepath.Glob(filepath.Join(o.Dirs.State, "resume", "*.json"))
	if len(records) != 1 {
		t.Fatalf("%v", records)
	}
	copied := filepath.Join(t.TempDir(), "x")
	data, _ := os.ReadFile(records[0])
	os.WriteFile(copied, data, 0o600)
	os.Remove(records[0])
	os.Symlink(copied, records[0])
	if _, err := safefile.ReadPrivate(records[0], 1<<20); !errors.Is(err, safefile.ErrNotPrivate) {
		t.Fatal(err)
	}
	if c := start(t, o); c.Info().Resumed {
		t.Error("resumed through a link")
	}
}

// The parts end by themselves only with a word about it.
func TestFailed(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	c.fail(errors.New("first"))
	c.fail(errors.New("second"))
	if err := <-c.Failed(); err.Error() != "first" {
		t.Error(err)
	}
	c.Stop(t.Context())
	c.fail(errors.New("after the end"))
	select {
	case err := <-c.Failed():
		t.Error(err)
	default:
	}
}

// A part that hangs keeps neither the process nor the other parts (SPEC L-1).
func TestStopIsBoundedL1(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	hang := make(chan struct{})
	defer close(hang)
	c.onStop("hanging", func(context.Context) error { <-hang; return nil })
	watch := pace.Start(t)
	err := c.Stop(t.Context())
	if took := watch.Took(); took > pace.Slack*time.Second || err == nil || !strings.Contains(err.Error(), "hanging") {
		t.Errorf("after %v: %v", took, err)
	}
	nothingLeft(t, o)
}

// SPEC §11.1, F-11: settings by which nobody is asked, whoever wrote them, are told by status, reviewers and the page, as long as
// they hold.
func TestSettingsThatAcceptAreTold(t *testing.T) {
	for mode, want := range map[review.Mode]bool{review.AcceptAll: true, review.Ask: false, review.Terminal: false} {
		o, a, _ := options(t)
		o.Settings.DiffMode = string(mode)
		c := start(t, o)
		client, err := control.Find(t.Context(), o.Dirs.Run, a)
		if err != nil {
			t.Fatal(err)
		}
		is := func(x control.Trouble) bool { return x.ID == "accepting" && strings.Contains(x.Do, "diffMode") }
		if told := slices.ContainsFunc(client.Status.Troubles, is); told != want {
			t.Errorf("%s: status says %+v", mode, client.Status.Troubles)
		}
		queue := backend{c}.Watch(t.Context(), 0)
		if told := slices.ContainsFunc(queue.Troubles, is); told != want {
			t.Errorf("%s: reviewers hear %+v", mode, queue.Troubles)
		}
		if !want {
			continue
		}
		c.reg.SetRule(review.Rule{Mode: review.Ask})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for ctx.Err() == nil && slices.ContainsFunc(queue.Troubles, is) {
			queue = backend{c}.Watch(ctx, queue.Version)
		}
		if ctx.Err() != nil {
			t.Errorf("%s: with another rule, reviewers still hear %+v", mode, queue.Troubles)
		}
	}
}

// SPEC C-8: what the user keeps from agents stays so over a restart, for this folder, and status says so.
func TestPauseOutlivesC8(t *testing.T) {
	o, a, b := options(t)
	file := filepath.Join(a, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, pause := range []struct{ before, then bool }{{false, true}, {true, true}, {true, false}, {false, false}} {
		c := start(t, o)
		c.store.Report("test", state.Report{Active: file, Open: []string{file}})
		client, err := control.Find(t.Context(), o.Dirs.Run, a)
		if err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(client.Status.Troubles, func(t control.Trouble) bool { return t.ID == "paused" })
		if snap := (backend{c}).Context(); (len(snap.Files) == 0) != pause.before || told != pause.before {
			t.Errorf("life %d: %+v, %+v", i, snap, client.Status.Troubles)
		}
		if err := client.Pause(t.Context(), pause.then); err != nil {
			t.Fatal(err)
		}
		if snap := (backend{c}).Context(); (len(snap.Files) == 0) != pause.then {
			t.Errorf("life %d: %+v", i, snap)
		}
		client.Close()
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if pause.then {
			elsewhere := o
			elsewhere.Roots = []string{b}
			c := start(t, elsewhere)
			if c.store.Paused() {
				t.Error("another folder is paused")
			}
			if err := c.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWithheldC8(t *testing.T) {
	o, a, _ := options(t)
	var log strings.Builder
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	c := start(t, o)
	file, secret := filepath.Join(a, "f"), filepath.Join(a, "secret")
	for path, content := range map[string]string{file: "", secret: "", filepath.Join(a, ".geminiignore"): strings.Repeat("x\n", 10000) + "secret\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.store.Report("test", state.Report{Active: file, Open: []string{file, secret}})
	c.store.Shut() // one judges alone
	if snap := (backend{c}).Context(); len(snap.Files) > 0 || snap.Active != "" {
		t.Errorf("shared: %+v", snap)
	}
	client, err := control.Find(t.Context(), o.Dirs.Run, a)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if told := client.Status.Troubles; len(told) != 1 || told[0].ID != "sharing" || !strings.Contains(told[0].What, "more than 10,000 patterns") {
		t.Errorf("status: %q", told)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "a folder is not shared"); n != 1 {
		t.Errorf("said %d times:\n%s", n, &log)
	}
}
