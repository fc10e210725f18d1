//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
)

var (
	kills = flag.Int("kills", 60, "how many times TestChaos kills the companion")
	seed  = flag.Uint64("seed", 0, "the random numbers of TestChaos; 0 takes new ones")
)

// TestChaos kills companions with SIGKILL at random moments while a CLI proposes, takes back and listens, and a person edits and
// decides; the CLI's stream breaks as well, and CLIs die with their diffs open. A third of the kills goes to pollux serve with
// a reviewer, the others to pollux lsp, its editor, or both; the editor is a small one of the test's, or Neovim. An oracle that was told every answer holds the companion to it: what a CLI was
// told is open is open or decided; what the user wrote and decided, once the companion has said so, is so for good and reaches
// the CLI once, to the byte; and an editor that lives on keeps what its user typed (SPEC L-3, T-6, F-3, F-6).
func TestChaos(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed %d", *seed)
	for name, start := range map[string]func(*chaos) func() chaosLife{"reviewer": withReviewer, "editor": withEditor, "Neovim": withNeovim} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &chaos{t: t, b: newBench(t, nil), random: rand.New(rand.NewPCG(*seed, 1)), diffs: map[string]*fate{}}
			x.run((*kills+2)/3, start(x))
		})
	}
}

// A chaosLife is one life of a companion.
type chaosLife struct {
	port    int
	token   string
	resumed bool
	user    func(context.Context) // edits and decides
	kill    func()
}

// withReviewer starts companions without an editor of their own.
func withReviewer(x *chaos) func() chaosLife {
	return func() chaosLife {
		c := x.b.serve()
		return chaosLife{c.Port, tokenOf(x.t, c), c.Resumed, x.review, func() { c.end(syscall.SIGKILL) }}
	}
}

func (x *chaos) run(kills int, start func() chaosLife) {
	t := x.t
	x.ctx, x.cancel = context.WithCancel(t.Context())
	defer x.cancel()
	c := start()
	x.way = elsewhere(t, c.port)
	x.newCLI(c)
	for n := range kills {
		x.life(c)
		again := start()
		if !again.resumed || again.port != c.port {
			t.Fatalf("kill %d: port %d, resumed %v; it was %d", n, again.port, again.resumed, c.port)
		}
		c = again
		x.holds()
		if x.n(10) == 0 {
			x.killCLI()
			x.newCLI(c)
		}
		if t.Failed() {
			t.Fatalf("after %d kills", n+1)
		}
	}
	x.finish()
	x.mu.Lock()
	defer x.mu.Unlock()
	t.Logf("%d kills (%d of pollux alone, %d of an editor alone, %d of both), %d broken streams, %d CLIs killed: %d diffs opened, %d edits, %d decisions and %d taken back that were confirmed, %d outcomes heard; none vanished, none twice, none altered",
		kills, kills-x.editors-x.both, x.editors, x.both, x.broken, x.killed, x.opened, x.edits, x.decisions, x.withdrawn, x.heard)
}

// chaos is the oracle, and what acts.
type chaos struct {
	t      *testing.T
	b      *bench
	ctx    context.Context
	cancel context.CancelFunc
	way    string // the address to which CLIs connect
	cli    *chaosCLI

	mu     sync.Mutex // guards the below
	random *rand.Rand
	diffs  map[string]*fate // by path

	leaving bool // an editor was killed, whose companion rejects what is open

	opened, edits, decisions, withdrawn, heard, broken, killed, editors, both int
}

// A fate is what the oracle knows of one diff.
type fate struct {
	cli            *chaosCLI
	path, proposed string
	asked          bool     // openDiff may have been heard
	told           bool     // openDiff was answered
	text           string   // the last edit that was confirmed
	texts          []string // edits since, which may have been heard
	decided        *string  // the decision that was confirmed: "" is a rejection
	tried          []string // decisions that may have been heard
	heard          []string
	takenBack      bool      // closeDiff was answered
	final          string    // with this text
	gone           time.Time // since when it is known to be over
	takingBack     bool      // closeDiff may have been heard
}

func (x *chaos) n(n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.random.IntN(n)
}

// life lets everybody act for a random while.
func (x *chaos) life(c chaosLife) {
	ctx, cancel := context.WithCancel(x.ctx)
	var all sync.WaitGroup
	all.Go(func() { x.propose(ctx) })
	all.Go(func() { c.user(ctx) })
	all.Go(x.disturb)
	time.Sleep(time.Duration(x.n(300_000)) * time.Microsecond) // the CLI's process is known after 100 ms, and nothing decided before
	defer all.Wait()
	defer cancel() // after the kill: nobody is asked to stop before it
	c.kill()
}

func (x *chaos) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	size := 1 + x.random.IntN(200)
	switch x.random.IntN(10) {
	case 0:
		size = 40_000
	case 1:
		size = 5_000
	}
	line := fmt.Sprintf("ä %d \u2028\r\n", x.random.Uint64())
	return strings.Repeat(line, 1+size/len(line))
}

// reviewer finds the companion.
func (x *chaos) reviewer(ctx context.Context) (*control.Client, error) {
	run := filepath.Join(x.b.home.Dir, ".local", "state", "pollux", "run")
	return control.Find(ctx, []string{run}, x.b.dir)
}

// review is the user: edits and decisions.
func (x *chaos) review(ctx context.Context) {
	client, err := x.reviewer(ctx)
	if err != nil {
		return // killed already
	}
	defer client.Close()
	if client.Attach(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		time.Sleep(time.Duration(x.n(3000)) * time.Microsecond)
		asked := time.Now()
		diffs, err := client.Diffs(ctx)
		if err != nil {
			return
		}
		if len(diffs) == 0 {
			continue
		}
		d := diffs[x.n(len(diffs))]
		if f := x.seen(d, asked); f != nil {
			x.act(ctx, client, d.ID, f, x.n(10))
		}
	}
}

// seen finds the diff that the companion has shown since asked, and holds it against what was known then.
func (x *chaos) seen(d control.Diff, asked time.Time) *fate {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.diffs[d.Path]
	switch {
	case f == nil:
		x.t.Errorf("a diff of nothing: %s", d.Path)
	case f.gone.After(asked):
	case f.decided != nil:
		x.t.Errorf("%s: open again after it was decided", d.Path)
	case f.takenBack:
		x.t.Errorf("%s: open again after it was taken back", d.Path)
	case len(f.heard) > 0:
		x.t.Errorf("%s: open again after its outcome was heard", d.Path)
	default:
		return f
	}
	return nil
}

func (x *chaos) act(ctx context.Context, client *control.Client, id string, f *fate, what int) {
	text := x.text()
	switch {
	case what < 6:
		x.try(func() { f.texts = append(f.texts, text) })
		if _, err := client.Edit(ctx, id, text, nil); err == nil {
			x.try(func() { f.text, f.texts = text, nil; x.edits++ })
		}
		return
	case what < 7:
		x.try(func() { f.tried = append(f.tried, "") })
		x.decide(ctx, client, f, control.Decision{ID: id}, "")
	case what < 8:
		x.try(func() { f.tried = append(f.tried, text) })
		x.decide(ctx, client, f, control.Decision{ID: id, Accept: true, Content: &text}, text)
	default: // as it stands
		text, _, err := client.Text(ctx, id)
		if err != nil {
			return
		}
		x.try(func() {
			if text != f.text && !slices.Contains(f.texts, text) {
				x.t.Errorf("%s: altered: it is %q and was %q", f.path, brief(text), brief(f.text))
			}
			f.tried = append(f.tried, text)
		})
		x.decide(ctx, client, f, control.Decision{ID: id, Accept: true}, text)
	}
}

func (x *chaos) try(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

func (x *chaos) decide(ctx context.Context, client *control.Client, f *fate, d control.Decision, word string) {
	open, err := client.Diffs(ctx)
	if i := slices.IndexFunc(open, func(o control.Diff) bool { return o.ID == d.ID }); err == nil && i >= 0 {
		d.Seen = control.Seen{Version: open[i].Version, Base: open[i].Base}
	}
	if client.Decide(ctx, d) != nil {
		return // it was taken back meanwhile, or nobody knows
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f.decided, f.gone = &word, time.Now()
	x.decisions++
}

// disturb breaks the CLI's stream now and then.
func (x *chaos) disturb() {
	time.Sleep(time.Duration(x.n(30_000)) * time.Microsecond)
	switch x.n(12) {
	case 0, 1, 2:
		x.mu.Lock()
		x.broken++
		x.cli.drop()
		x.mu.Unlock()
	}
}

// holds compares what a companion has just brought back with what is known.
func (x *chaos) holds() {
	client, err := x.reviewer(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	for _, trouble := range client.Status.Troubles { // a kill damages nothing
		if slices.Contains([]string{"lost", "journal", "record"}, trouble.ID) {
			x.t.Errorf("the companion says: %s", trouble.What)
		}
	}
	asked := time.Now()
	diffs, err := client.Diffs(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	open := map[string]string{}
	for _, d := range diffs {
		x.seen(d, asked)
		text, _, err := client.Text(x.ctx, d.ID)
		if err != nil {
			x.t.Fatal(err)
		}
		open[d.Path] = text
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.diffs {
		text, is := open[f.path]
		switch {
		case is && text != f.text && !slices.Contains(f.texts, text):
			x.t.Errorf("%s: altered: it is %q and was %q", f.path, brief(text), brief(f.text))
		case !is && f.told && f.decided == nil && len(f.tried) == 0 && !f.takingBack && len(f.heard) == 0 && !f.cli.dead:
			x.t.Errorf("%s: vanished", f.path)
		case is:
			f.text, f.texts = text, nil // what may have been heard was, or not
		}
		if is {
			f.tried, f.takingBack = nil, false
		}
	}
}

// finish decides what is open, and waits until the CLI has heard of everything.
func (x *chaos) finish() {
	client, err := x.reviewer(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	missing := func() (list []string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, f := range x.diffs {
			if f.told && !f.takenBack && len(f.heard) == 0 && !f.takingBack && !f.cli.dead {
				list = append(list, f.path)
			}
		}
		return list
	}
	for deadline := time.Now().Add(second(90)); len(missing()) > 0; time.Sleep(20 * time.Millisecond) {
		asked := time.Now()
		diffs, err := client.Diffs(x.ctx)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, d := range diffs {
			if f := x.seen(d, asked); f != nil {
				x.act(x.ctx, client, d.ID, f, 9)
			}
		}
		if time.Now().After(deadline) {
			x.t.Errorf("never heard: %v", missing())
			break
		}
	}
	x.cancel()
	<-x.cli.ended
}
