//go:build unix

package companion

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/proc"
)

// impostorVariable makes the test's program claim to be a companion: folder of sockets, root, file for what it is lent, accused process, whether it
// claims to be a keeper.
const impostorVariable = "POLLUX_TEST_IMPOSTOR"

// An impostor claims to be the oldest companion of a folder.
type impostor struct {
	control.Backend

	root   string
	keeper bool
	accuse []proc.Info
	lend   func(*state.Snapshot)
}

func (i impostor) Status() control.Status {
	return control.Status{PID: 1, Started: time.Unix(1, 0), Roots: []string{i.root}, Keeper: i.keeper}
}
func (i impostor) Agents(context.Context) control.Agents { return control.Agents{Processes: i.accuse} }
func (impostor) Meet(...proc.Info)                       {}
func (impostor) HandOver() (control.Handing, *os.File, func(), error) {
	return control.Handing{}, nil, nil, control.ErrNoKeeper
}
func (impostor) Propose(_ context.Context, _ control.Proposal, opened func(control.TakeBack)) (control.Answer, error) {
	opened(nil)
	return control.Answer{Accepted: true, Content: "an agent's", Edited: true}, nil
}
func (i impostor) Sessions() []control.Session { return nil }
func (i impostor) Lend(_ any, snap *state.Snapshot, _ bool) {
	if snap != nil {
		i.lend(snap)
	}
}

// impersonate lives as long as the process that started it.
func impersonate(order []string) {
	b := impostor{root: order[1], keeper: order[4] == "true", lend: func(snap *state.Snapshot) { _ = os.WriteFile(order[2], []byte("lent "+snap.Active), 0o600) }}
	if pid, _ := strconv.Atoi(order[3]); pid != 0 {
		b.accuse = []proc.Info{{PID: pid}, {PID: 1 << 30}}
	}
	s, err := control.Listen(order[:1], b, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	defer s.Close()
	_ = os.WriteFile(order[2], []byte("ready"), 0o600)
	_ = proc.WaitParent(context.Background(), os.Getppid())
}

// otherProgram copies the test's program: pollux's own may be above what it tries.
func otherProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cli")
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(path, program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// SPEC §11.1, CC-4: a process of a connected agent's that claims to be the first companion is elected neither by the companion that knows the
// agent nor by others, marks or not, whatever it says. It is told nothing, and Claude Code's lock stays.
func TestImpostor(t *testing.T) {
	cli := otherProgram(t)
	for name, accused := range map[string]int{"quiet": 0, "accuses the companion": os.Getpid(), "accuses everybody": 1, "keeper": 0} {
		t.Run(name, func(t *testing.T) {
			o, a, _ := options(t)
			useClaude(t)
			first := start(t, o)
			said := filepath.Join(t.TempDir(), "said")
			t.Setenv("ORDER", fmt.Sprint(o.Dirs.Run[0], " ", a, " ", said, " ", accused, " ", name == "keeper"))
			t.Setenv("CLI", cli)
			agent.Start(t, first.Info().DiscoveryFile, "sh", "-c", impostorVariable+`="$ORDER" "$CLI" & exec "$CLI" -test.run=^$`)
			soon(t, "it listens", func() bool { data, _ := os.ReadFile(said); return string(data) == "ready" })
			first.electAndPublish()
			second := start(t, o)
			for _, c := range []*Companion{first, second} {
				c.electAndPublish()
				c.mu.Lock()
				if c.elected != nil && c.elected.Status.PID == 1 {
					t.Error("the agent's process is elected")
				}
				if len(c.keepers) > 0 {
					t.Error("the agent's process is lent what the user looks at")
				}
				c.mu.Unlock()
			}
			if !slices.Contains(claudeLocks(t), first.Info().Port) {
				t.Errorf("Claude Code's locks: %v", claudeLocks(t))
			}
			if data, _ := os.ReadFile(said); string(data) != "ready" {
				t.Errorf("it was %s", data)
			}
			if found, err := control.Find(t.Context(), o.Dirs.Run, a); err == nil {
				if found.Status.PID == 1 {
					t.Error("a person's command finds it")
				}
				found.Close()
			}
		})
	}
}

// What is elected must take what is lent: one that never answers, or stops answering, serves nobody. Nobody is lent what no agent may be told.
func TestElectsWhoAnswers(t *testing.T) {
	o, a, _ := options(t)
	useClaude(t)
	o.Settings.Share = map[string]string{"*": "never"}
	path := filepath.Join(a, "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hang, lent := make(chan struct{}), make(chan string, 64)
	for _, lend := range []func(*state.Snapshot){func(*state.Snapshot) { <-hang }, func(snap *state.Snapshot) { lent <- snap.Active }} {
		s, err := control.Listen(o.Dirs.Run, impostor{root: a, lend: lend}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	t.Cleanup(func() { close(hang) })
	c := start(t, o)
	c.store.Report("c", state.Report{Active: path, Open: []string{path}, Front: true})
	for range 2 { // the first question, and what c lends
		if got := <-lent; got != "" {
			t.Errorf("it is lent %q", got)
		}
	}
	if got := claudeLocks(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A kept is a keeper's session, and a view that shows all.
type kept struct{}

func (*kept) Label() string                                                 { return "Claude Code #1" }
func (*kept) Settled(*review.Diff, review.Outcome)                          {}
func (kept) Show(context.Context, *review.Diff) error                       { return nil }
func (kept) Close(*review.Diff, review.Outcome)                             {}
func (kept) Content(context.Context, *review.Diff) (e review.Edit, ok bool) { return e, false }

// SPEC L-4, §11.1: a keeper has a proposal decided by the very process that it has elected, and as long as that process is no agent's:
// a model's shell may put its socket in place of the editor's, or be known as an agent's only after the election.
func TestKeeperAsksWhomItElected(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	c.reg = review.New(review.Options{View: kept{}})
	d, err := c.reg.Open(t.Context(), &kept{}, review.Proposal{Key: "f", Path: filepath.Join(a, "f"), IsNew: true, New: "mine"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	undecided := func(why string, to *control.Client) {
		t.Helper()
		if err := c.askOnce(t.Context(), to, d); err == nil {
			t.Errorf("%s: no error", why)
		}
		if o, decided := d.Outcome(); decided {
			t.Fatalf("%s: the proposal is %s: %q", why, o.Kind, o.Content)
		}
	}
	run := filepath.Join(filepath.Dir(o.Dirs.Run[0]), "i") // where the others listen
	editor, err := control.Listen([]string{run}, impostor{root: a}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(editor.Close)
	elected, err := control.Dial(t.Context(), editor.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(elected.Close)

	said := filepath.Join(t.TempDir(), "said")
	shell := exec.Command(otherProgram(t))
	shell.Env = append(os.Environ(), impostorVariable+"="+fmt.Sprint(run, " ", a, " ", said, " 0 false"))
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shell.Process.Kill(); _ = shell.Wait() })
	soon(t, "it listens", func() bool { data, _ := os.ReadFile(said); return string(data) == "ready" })
	sockets, _ := filepath.Glob(filepath.Join(run, strconv.Itoa(shell.Process.Pid)+"-*.sock"))
	if len(sockets) != 1 {
		t.Fatalf("%v", sockets)
	}
	later, err := control.Dial(t.Context(), sockets[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(later.Close)
	p, _ := proc.Lookup(shell.Process.Pid)
	c.met.Add(p)
	undecided("the elected process is an agent's by now", later)
	c.met.Clear()
	if err := os.Rename(sockets[0], editor.Path()); err != nil {
		t.Fatal(err)
	}
	undecided("another process has the socket", elected)
}

// SPEC L-4, §11.1: a process that claims to be a keeper, and is known as an agent's only after it was taken for one, is lent nothing more.
func TestKeeperKnownLate(t *testing.T) {
	o, a, _ := options(t)
	files := []string{filepath.Join(a, "before"), filepath.Join(a, "after")}
	for _, path := range files {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, o)
	said := filepath.Join(t.TempDir(), "said")
	shell := exec.Command(otherProgram(t))
	shell.Env = append(os.Environ(), impostorVariable+"="+fmt.Sprint(o.Dirs.Run[0], " ", a, " ", said, " 0 true"))
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shell.Process.Kill(); _ = shell.Wait() })
	lent := func() string { data, _ := os.ReadFile(said); return string(data) }
	soon(t, "it listens", func() bool { return lent() == "ready" })
	c.electAndPublish()
	c.store.Report("c", state.Report{Active: files[0], Open: files, Front: true})
	soon(t, "it is lent what the user looks at", func() bool { return lent() == "lent "+files[0] })
	p, _ := proc.Lookup(shell.Process.Pid)
	c.meet(p)
	c.store.Report("c", state.Report{Active: files[1], Open: files, Front: true})
	soon(t, "nothing is lent to it any more", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.keepers) == 0
	})
	c.electAndPublish()
	if got := lent(); got != "lent "+files[0] {
		t.Errorf("an agent's process is %s", got)
	}
}

// SPEC L-4, §11.1: an editor that shows a keeper's proposal knows the keeper's agents as long as it does. Rules that they have set before are dropped.
func TestKeepersAgentsAreKnown(t *testing.T) {
	o, a, _ := options(t)
	o.Settings.OpenBrowser = false
	c := start(t, o)
	c.reg = review.New(review.Options{View: kept{}})
	shell := exec.Command("sleep", "600")
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shell.Process.Kill(); _ = shell.Wait() })
	p, _ := proc.Lookup(shell.Process.Pid)
	backend{c}.SetRule(review.Rule{Mode: review.AcceptAll}, p.PID)
	ctx, cancel := context.WithCancel(t.Context())
	opened, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = backend{c}.Propose(ctx, control.Proposal{
			Path: filepath.Join(a, "f"), IsNew: true, New: "x", For: "Claude Code #1", Agents: control.Agents{Processes: []proc.Info{p}, Unknown: []string{"Gemini CLI #2"}},
		}, func(control.TakeBack) { close(opened) })
	}()
	<-opened
	if got := (backend{c}).Agents(t.Context()); !slices.Contains(got.Processes, p) || !slices.Contains(got.Unknown, "Gemini CLI #2") {
		t.Errorf("%+v", got)
	}
	if got := c.reg.Rules(); len(got) > 0 {
		t.Errorf("an agent's rules %+v", got)
	}
	cancel()
	<-ended
	if got := (backend{c}).Agents(t.Context()); len(got.Processes)+len(got.Unknown) > 0 {
		t.Errorf("afterwards %+v", got)
	}
}
