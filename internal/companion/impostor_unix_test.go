//go:build unix

package companion

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/control"
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

// SPEC §11.1, CC-4: a process of a connected agent's that claims to be the first companion is elected neither by the companion that knows the
// agent nor by others, marks or not, whatever it says. It is told nothing, and Claude Code's lock stays.
func TestImpostor(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	cli := filepath.Join(t.TempDir(), "cli") // another program: pollux's own may be above what it tries
	if err := os.WriteFile(cli, program, 0o700); err != nil {
		t.Fatal(err)
	}
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
