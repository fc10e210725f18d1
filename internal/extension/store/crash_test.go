package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// operation is one change with the states before and after it.
type operation struct {
	name, before, after string
	twoSteps            bool
}

func operations() []operation {
	return []operation{
		{"install", "", "2", false}, {"update", "1", "2", false}, {"update", "1", "2", true}, {"uninstall", "1", "", false},
	}
}

func (o operation) String() string {
	if o.twoSteps {
		return o.name + " in two steps"
	}
	return o.name
}

// prepare makes the state before the operation, and the source of version 2.
func (o operation) prepare(t *testing.T) (*Store, string) {
	t.Helper()
	s, src := newStore(t), t.TempDir()
	if o.twoSteps {
		s.exchange = func(_, _ string) error { return errors.ErrUnsupported }
	}
	if o.before != "" {
		must(t, perform(s, "install", extension(t, src, o.before)))
		write(t, filepath.Join(s.folder("x"), ".env"), "A=kept\n")
		must(t, os.RemoveAll(src))
	}
	extension(t, src, "2")
	return s, src
}

// steps runs the operation once and returns its steps.
func (o operation) steps(t *testing.T) []string {
	t.Helper()
	s, src := o.prepare(t)
	var steps []string
	s.fault = func(step string) error {
		steps = append(steps, step)
		return nil
	}
	must(t, perform(s, o.name, src))
	if got := whole(t, s); got != o.after {
		t.Fatalf("after %s: version %q, want %q", o, got, o.after)
	}
	tidy(t, s)
	return steps
}

// TestKill (SPEC M-2): if pollux is killed at any step of an install, an update or an uninstall, the old or the new
// version is left complete. The next pollux cleans up and can repeat the operation.
func TestKill(t *testing.T) {
	for _, o := range operations() {
		steps := o.steps(t)
		if want := map[string]int{"install": 9, "update": 9, "uninstall": 7}[o.name]; len(steps) < want {
			t.Fatalf("%s has only the steps %q", o, steps)
		}
		for _, step := range steps {
			t.Run(o.String()+"/"+step, func(t *testing.T) {
				t.Parallel()
				s, src := o.prepare(t)
				killed(t, s, o, src, step)
				inBetween := o.twoSteps && step == "between"
				if got := whole(t, s); got != o.before && got != o.after && !(inBetween && got == "") {
					t.Fatalf("right after the kill: version %q", got)
				}
				all, err := s.List() // reading recovers too
				must(t, err)
				now := whole(t, s)
				if now != o.before && now != o.after {
					t.Fatalf("after recovery: version %q", now)
				}
				if late := slices.Contains([]string{"enablement", "record", "integrity", "done", "clean", "between"}, step); late && now != o.after {
					t.Errorf("killed at %s, after the change was made, and it was undone", step)
				}
				if (now == "") != (len(all) == 0) {
					t.Errorf("listed: %d, on the disk: %q", len(all), now)
				}
				must(t, s.locked(context.Background(), func() error { return nil })) // the next change sweeps
				tidy(t, s)
				settled(t, s, o, now)
				if now == o.before {
					must(t, perform(s, o.name, src))
				}
				if got := whole(t, s); got != o.after {
					t.Errorf("done again: version %q, want %q", got, o.after)
				}
				settled(t, s, o, o.after)
				tidy(t, s)
			})
		}
	}
}

// TestKillAnyTime: the same for an update that is killed at random moments.
func TestKillAnyTime(t *testing.T) {
	s, src := newStore(t), t.TempDir()
	for i := range 100 {
		write(t, filepath.Join(src, "many", fmt.Sprint(i)), "x")
	}
	must(t, perform(s, "install", extension(t, src, "0")))
	now := "0"
	for round := range 40 {
		next := fmt.Sprint(round + 1)
		must(t, os.Remove(filepath.Join(src, "deep", fmt.Sprint(round)+".txt")))
		extension(t, src, next)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STORE_CHILD=update", "STORE_HOME="+s.home, "STORE_SOURCE="+src)
		must(t, cmd.Start())
		time.Sleep(time.Duration(2+round*2) * time.Millisecond)
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		for _, when := range []string{"right after the kill", "after recovery"} {
			if got := whole(t, s); got != now && got != next {
				t.Fatalf("round %d, %s: version %q, want %q or %q", round, when, got, now, next)
			}
			must(t, s.locked(context.Background(), func() error { return nil }))
		}
		tidy(t, s)
		now = whole(t, s)
		if v, err := s.Verify("x"); err != nil || !v.Same() || v.ByOther {
			t.Fatalf("round %d: %+v, %v", round, v, err)
		}
	}
}

// killed runs the operation in a process that dies at step.
func killed(t *testing.T, s *Store, o operation, src, step string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_CHILD="+o.name, "STORE_HOME="+s.home, "STORE_SOURCE="+src, "STORE_KILL="+step)
	if o.twoSteps {
		cmd.Env = append(cmd.Env, "STORE_TWO_STEPS=1")
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() && exit.ExitCode() != 1 {
		t.Fatalf("the child was not killed at %s: %v\n%s", step, err, out)
	}
}

// settled checks that the files around the folder match the version in it.
func settled(t *testing.T, s *Store, o operation, version string) {
	t.Helper()
	rules, err := s.readEnablement()
	must(t, err)
	_, ruled := rules.rules["x"]
	record := s.readRecord("x")
	if version == "" {
		if ruled || record != nil || exists(s.treeFile("x")) {
			t.Errorf("nothing is installed, but there are rules (%v) or a record (%v)", ruled, record)
		}
		return
	}
	if !ruled || record == nil || record.Version != version {
		t.Fatalf("version %s is installed; rules: %v, record: %+v", version, ruled, record)
	}
	v, err := s.Verify("x")
	must(t, err)
	if !v.Same() || v.ByOther {
		t.Errorf("the record does not fit the content: %+v", v)
	}
	if o.before != "" {
		if got := read(t, filepath.Join(s.folder("x"), ".env")); got != "A=kept\n" {
			t.Errorf("the user's settings are now %q", got)
		}
	}
}

// TestFailure (SPEC M-2): an error at any step (a full disk, an unwritable file) leaves every file unchanged.
func TestFailure(t *testing.T) {
	broken := errors.New("no space left on device")
	for _, o := range operations() {
		for _, step := range o.steps(t) {
			if step == "done" || step == "clean" {
				continue // the change is already made
			}
			t.Run(o.String()+"/"+step, func(t *testing.T) {
				t.Parallel()
				s, src := o.prepare(t)
				before := snapshot(t, s)
				s.fault = func(at string) error {
					if at == step {
						return broken
					}
					return nil
				}
				if err := perform(s, o.name, src); !errors.Is(err, broken) {
					t.Fatalf("error %v, want the injected one", err)
				}
				if diff := cmp.Diff(before, snapshot(t, s)); diff != "" {
					t.Errorf("something changed:\n%s", diff)
				}
				tidy(t, s)
				s.fault = func(string) error { return nil }
				must(t, perform(s, o.name, src))
				if got := whole(t, s); got != o.after {
					t.Errorf("done again: version %q, want %q", got, o.after)
				}
			})
		}
	}
}

// TestTwoInstallsAtOnce: if several processes install the same name, one wins, the others report that it is
// installed, and the result is complete.
func TestTwoInstallsAtOnce(t *testing.T) {
	s, src := newStore(t), extension(t, t.TempDir(), "2")
	codes := make([]int, 6)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "STORE_CHILD=install", "STORE_HOME="+s.home, "STORE_SOURCE="+src)
			out, _ := cmd.CombinedOutput()
			if codes[i] = cmd.ProcessState.ExitCode(); codes[i] > 1 {
				t.Errorf("%s", out)
			}
		})
	}
	wg.Wait()
	slices.Sort(codes)
	if diff := cmp.Diff([]int{0, 1, 1, 1, 1, 1}, codes); diff != "" {
		t.Errorf("exit codes: %s", diff)
	}
	if got := whole(t, s); got != "2" {
		t.Errorf("version %q", got)
	}
	tidy(t, s)
}

// TestManyChangesAtOnce: simultaneous changes of different extensions by several stores keep each other's rules.
func TestManyChangesAtOnce(t *testing.T) {
	s := newStore(t)
	var wg sync.WaitGroup
	for i := range 12 {
		name := fmt.Sprintf("e%d", i)
		dir := t.TempDir()
		write(t, filepath.Join(dir, "gemini-extension.json"), `{"name":"`+name+`","version":"1"}`)
		wg.Go(func() {
			other, err := Open(&Options{Home: s.home, WorkDir: s.home})
			if err == nil {
				err = perform(other, "install", dir)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	rules, err := s.readEnablement()
	must(t, err)
	if n := len(slices.Collect(maps.Keys(rules.rules))); n != 12 {
		t.Errorf("%d extensions have rules, want 12: %s", n, rules.encode())
	}
}

// TestHalfWritten: the next change removes files that a killed process left half-written; in .gemini, where other
// programs write too, only old ones.
func TestHalfWritten(t *testing.T) {
	s := newStore(t)
	must(t, perform(s, "install", extension(t, t.TempDir(), "1")))
	const name = ".pollux-tmp-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	places := []string{s.own(name), s.own("records", name), filepath.Join(s.Dir(), name), filepath.Join(s.folder("x"), name), filepath.Join(s.gemini, name)}
	for _, p := range places {
		write(t, p, "half")
	}
	must(t, s.locked(context.Background(), func() error { return nil }))
	for i, p := range places {
		if left, young := exists(p), i == len(places)-1; left != young {
			t.Errorf("%s: left: %v", p, left)
		}
	}
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	must(t, s.locked(context.Background(), func() error { return nil }))
	if exists(places[len(places)-1]) {
		t.Error("an old one in .gemini is left")
	}
	settled(t, s, operation{}, "1")
}

// TestBusy: a change that waits too long for another process fails and names that process.
func TestBusy(t *testing.T) {
	s := newStore(t)
	unlock, err := s.lock(context.Background())
	must(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = s.SetEnabled(ctx, "x", User, false)
	if !errors.Is(err, errBusy) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("error %v", err)
	}
}

// TestForeignJournal: a journal that names other folders has no effect.
func TestForeignJournal(t *testing.T) {
	s := newStore(t)
	victim := t.TempDir()
	for _, text := range []string{
		`{"op":"install","name":"x","base":"../../victim","stage":"/tmp/a"}`,
		fmt.Sprintf(`{"op":"uninstall","name":"x","base":"x","stage":%q}`, victim), `{`, `[]`,
		fmt.Sprintf(`{"op":"install","name":"x","base":"x","stage":%q}`, filepath.Join(s.stagingDir(), "1")),
		fmt.Sprintf(`{"op":"uninstall","name":"../x","base":"x","stage":%q}`, filepath.Join(s.stagingDir(), "1")),
	} {
		write(t, s.journalFile(), text)
		if err := s.SetEnabled(context.Background(), "x", User, true); err == nil || !strings.Contains(err.Error(), "journal") {
			t.Errorf("%s: error %v", text, err)
		}
	}
	if !exists(victim) {
		t.Error("the foreign folder is gone")
	}
}
