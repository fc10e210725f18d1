package companion

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/guard"
	"github.com/pollux-companion/pollux/internal/proc"
)

// SPEC §11.1: a companion that an agent has started shows no diffs and takes nothing over, whichever agent it was; the CLI asks in
// its terminal. The mark is known from this process's environment, as a shell would set it.
func TestStartedByAnAgent(t *testing.T) {
	for _, m := range guard.Marks() {
		t.Run(m.Name, func(t *testing.T) {
			o, a, _ := options(t)
			first := start(t, o)
			port := first.Info().Port
			_ = first.Stop(t.Context())
			value := m.Value
			if value == "" {
				value = "x"
			}
			t.Setenv(m.Name, value)
			c := start(t, o)
			if info := c.Info(); info.Resumed || info.Port == port {
				t.Errorf("it takes over from the user's companion: %+v", info)
			}
			said := agent.Connect(t, c.Info().DiscoveryFile).Refused(a+"/f", "new\n")
			if !strings.Contains(said, "started from an agent's own shell") || !strings.Contains(said, "review this change in the terminal") {
				t.Errorf("the CLI is told %q", said)
			}
			if all := c.troubles(); len(all) == 0 || all[0].ID != "below" {
				t.Errorf("nothing says that it decides nothing: %+v", all)
			}
			_ = c.Stop(t.Context())
			os.Unsetenv(m.Name)
			if info := start(t, o).Info(); !info.Resumed || info.Port != port {
				t.Errorf("the user's next companion does not take over: %+v", info)
			}
		})
	}
}

// SPEC §11.1: an editor below the very agent whose diff it is decides nothing, marks or not; one beside it does.
func TestEditorBelowItsAgent(t *testing.T) {
	c := &Companion{o: Options{PID: os.Getpid()}}
	parent, ok := proc.Lookup(os.Getppid())
	if !ok {
		t.Fatal("no parent")
	}
	if err := c.mayDecide([]proc.Info{parent}); err == nil {
		t.Error("a companion below the agent decides")
	}
	self, _ := proc.Lookup(os.Getpid())
	other := proc.Info{PID: 1 << 30, Start: 1}
	for name, agents := range map[string][]proc.Info{"nobody known": nil, "pollux conform, and what it tries": {self}, "an agent elsewhere": {other}} {
		if err := c.mayDecide(agents); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is remembered of one agent says nothing of another, of the two together, or of a later process with its number.
	if err := c.mayDecide([]proc.Info{other}); err != nil {
		t.Errorf("an agent elsewhere, again: %v", err)
	}
	for name, agents := range map[string][]proc.Info{"another": {parent}, "two": {other, parent}, "the same in another order": {parent, other}} {
		if err := c.mayDecide(agents); err == nil {
			t.Errorf("%s: a companion below the agent decides", name)
		}
	}
	unknown := proc.Info{PID: 1 << 30} // since when it runs is not known, so that its number may be another's later
	if err := c.mayDecide([]proc.Info{unknown}); err != nil || slices.Contains(c.apart, unknown) {
		t.Errorf("an agent of which little is known: %v, remembered as %v", err, c.apart)
	}
}

// SPEC §11.1, A-1: a companion below an agent that was connected takes nothing over, marks or not: what that agent had open
// would be decided in it. The record waits for the user's next one.
func TestTakesNothingOverBelowItsAgent(t *testing.T) {
	o, _, _ := options(t)
	parent, ok := proc.Lookup(os.Getppid())
	if !ok {
		t.Fatal("no parent")
	}
	c := start(t, o)
	port := c.Info().Port
	_ = c.Stop(t.Context())
	write := func(of discovery.Record) {
		t.Helper()
		r := discovery.NewResume(o.Dirs.State, "pollux", o.Roots, 0)
		if err := r.Claim(); err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		rec, err := r.Load(time.Now())
		if err != nil || rec == nil {
			t.Fatalf("%v, %v", rec, err)
		}
		rec.Sessions, rec.Met, rec.Namespaces = of.Sessions, of.Met, cmp.Or(of.Namespaces, proc.Namespaces())
		if err := r.Save(*rec); err != nil {
			t.Fatal(err)
		}
	}
	other := proc.Info{PID: 1 << 30, Start: 1}
	for name, tt := range map[string]struct {
		record  discovery.Record
		resumes bool
	}{
		"its agent":              {discovery.Record{Sessions: map[string][]proc.Info{"s": {parent}}}, false},
		"its agent and another":  {discovery.Record{Sessions: map[string][]proc.Info{"r": {other}, "s": {parent}}}, false},
		"its agent, by a relay":  {discovery.Record{Sessions: map[string][]proc.Info{"s": {other, parent}}}, false},
		"its agent, no session":  {discovery.Record{Met: []proc.Info{other, parent}}, false},
		"other namespaces":       {discovery.Record{Namespaces: "pid:[1] user:[2]"}, false},
		"an agent elsewhere":     {discovery.Record{Sessions: map[string][]proc.Info{"s": {other}}, Met: []proc.Info{other}}, true},
		"the number of an ended": {discovery.Record{Sessions: map[string][]proc.Info{"s": {{PID: parent.PID, Start: parent.Start - 1}}}}, true},
		"nobody known":           {discovery.Record{Sessions: map[string][]proc.Info{"s": nil}}, true},
	} {
		write(tt.record)
		c := start(t, o)
		if info := c.Info(); (info.Port == port) != tt.resumes || tt.resumes && !info.Resumed {
			t.Errorf("%s: it takes over: %v, want %v", name, info.Port == port, tt.resumes)
		}
		if c.resume == nil || c.unsaved != nil {
			t.Errorf("%s: nothing is kept for its own next start: %v", name, c.unsaved)
		}
		_ = c.Stop(t.Context())
	}
}

// SPEC §11.1: an agent that was connected stays known when the next companion cannot have the port, because a program of that agent's listens there.
func TestKnowsAgentsAtAnotherPort(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	agents := []proc.Info{}
	for range 2 {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		p, _ := proc.Lookup(cmd.Process.Pid)
		p.Parent = 0 // which is not written down
		agents = append(agents, p)
	}
	c.met.Add(agents[0])
	c.keepSessions()
	c.mu.Lock()
	c.record.Sessions = map[string][]proc.Info{"s": agents[1:]}
	c.save("")
	c.mu.Unlock()
	port := c.Info().Port
	c.resume.Release() // as when it is killed; Stop would forget what was made up
	c.resume = nil
	_ = c.Stop(t.Context())
	ln, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	next := start(t, o)
	if known := next.knownAgents(t.Context()); next.Info().Resumed || !slices.Contains(known, agents[0]) || !slices.Contains(known, agents[1]) {
		t.Errorf("resumed: %v, known: %v, want %v", next.Info().Resumed, known, agents)
	}
}

// SPEC A-1: a companion that must not inherit has a record of its own beside the other, and the next one takes that over.
func TestOwnRecordBesideAnother(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	_ = c.Stop(t.Context())
	r := discovery.NewResume(o.Dirs.State, "pollux", o.Roots, 0)
	if err := r.Claim(); err != nil {
		t.Fatal(err)
	}
	rec, err := r.Load(time.Now())
	if err != nil || rec == nil {
		t.Fatalf("%v, %v", rec, err)
	}
	rec.Namespaces = "pid:[1] user:[2]"
	if err := r.Save(*rec); err != nil {
		t.Fatal(err)
	}
	r.Release()

	first := start(t, o)
	port := first.Info().Port
	_ = first.Stop(t.Context())
	second := start(t, o)
	if info := second.Info(); first.Info().Resumed || !info.Resumed || info.Port != port {
		t.Errorf("port %d, resumed %v; it was %d, %v", info.Port, info.Resumed, port, first.Info().Resumed)
	}
	_ = second.Stop(t.Context())
	if err := r.Claim(); err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if other, err := r.Load(time.Now()); err != nil || other == nil || other.Namespaces != rec.Namespaces {
		t.Errorf("the other record is %+v, %v", other, err)
	}

	for slot := 1; slot < discovery.Slots; slot++ {
		more := discovery.NewResume(o.Dirs.State, "pollux", o.Roots, slot)
		if err := more.Claim(); err != nil {
			t.Fatal(err)
		}
		if err := more.Save(*rec); err != nil {
			t.Fatal(err)
		}
		more.Release()
	}
	if last := start(t, o); last.unsaved == nil || last.resume != nil {
		t.Errorf("every record is another's, and nobody is told: %v", last.unsaved)
	}
}

// SPEC §11.1: a rule that a process set before anybody knew of the agent above it counts no more when that agent proposes. A person's does.
func TestRuleOfAnUnknownAgent(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	person := exec.Command("sleep", "60") // an agent that has nothing to do with who sets the rule
	if err := person.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = person.Process.Kill(); _ = person.Wait() }()
	elsewhere, _ := proc.Lookup(person.Process.Pid)
	parent, _ := proc.Lookup(os.Getppid())
	backend{c}.SetRule(review.Rule{Mode: review.AcceptAll}, os.Getpid())
	_ = c.mayDecide([]proc.Info{elsewhere})
	if len(c.reg.Rules()) != 1 {
		t.Error("a person's rule is gone")
	}
	_ = c.mayDecide([]proc.Info{parent})
	if rules := c.reg.Rules(); len(rules) != 0 {
		t.Errorf("rules left: %v", rules)
	}
	backend{c}.SetRule(review.Rule{Mode: review.AcceptAll}, os.Getpid())
	if c.meet(elsewhere, parent); len(c.reg.Rules()) != 0 { // as pollux mcp is met, which proposes by no session
		t.Error("a rule is left of an agent behind a go-between")
	}
	backend{c}.SetRule(review.Rule{Mode: review.AcceptAll}, person.Process.Pid)
	_ = c.mayDecide([]proc.Info{{PID: 1 << 30, Start: 1}})
	if len(c.reg.Rules()) != 1 {
		t.Error("a rule of later is gone")
	}
}

// SPEC §11.1: what takes in the children of ended processes may be the user's own session. An agent that is above the companion, behind a
// go-between, counts as long as the go-between lives, and is not remembered.
func TestAgentAboveTheCompanion(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	relay := exec.Command("sleep", "60")
	if err := relay.Start(); err != nil {
		t.Fatal(err)
	}
	between, _ := proc.Lookup(relay.Process.Pid)
	parent, _ := proc.Lookup(os.Getppid())
	counts := func() bool {
		return slices.ContainsFunc(c.knownAgents(t.Context()), func(p proc.Info) bool { return p.PID == parent.PID })
	}
	c.meet(between, parent)
	if !counts() {
		t.Error("it does not count while its go-between lives")
	}
	_ = relay.Process.Kill()
	_ = relay.Wait()
	if counts() || c.met.Has(parent) {
		t.Error("the user's own session stays an agent")
	}
	if c.meet(between, between); !c.met.Has(between) {
		t.Error("an agent elsewhere is not remembered")
	}
}

// A companion knows an agent by its session as soon as it asks, and says so to the other commands.
func TestAgentsOfACompanion(t *testing.T) {
	o, a, _ := options(t)
	c := start(t, o)
	cli := agent.Connect(t, c.Info().DiscoveryFile)
	agents := backend{c}.Agents(t.Context())
	if len(agents.Processes) == 0 && proc.TellsPeers() == nil || len(agents.Unknown) > 0 {
		t.Errorf("%+v", agents)
	}
	if err := control.MayDecide(t.Context(), o.Dirs.Run); proc.TellsPeers() == nil && (err == nil || err.Error() != control.ErrFromAgent.Error()) {
		t.Errorf("this process is the agent, and may decide: %v", err)
	}
	if said := cli.Refused(a+"/f", "new\n"); !strings.Contains(said, "no editor page is open") {
		t.Errorf("a companion of the same process is not below it: %q", said)
	}
}

// SPEC A-1, L-1: a record with 4,000 sessions whose agents have ended costs the next start little.
// Each agent used to be looked for among all processes above the companion, which took three seconds together.
func TestManyEndedSessionsCostNoStart(t *testing.T) {
	o, _, _ := options(t)
	c := start(t, o)
	old := &discovery.Record{Sessions: map[string][]proc.Info{}}
	for i := range 4000 {
		old.Sessions[strconv.Itoa(i)] = []proc.Info{{PID: 1<<30 + i, Start: 1}} // above every number of a process
	}
	best := func(do func()) time.Duration {
		took := time.Hour
		for range 5 {
			begun := time.Now()
			do()
			took = min(took, time.Since(begun))
		}
		return took
	}
	one := best(func() { guard.Descends(os.Getpid(), old.Sessions["0"]) })
	all := best(func() {
		if err := c.mayInherit(old); err != nil {
			t.Fatal(err)
		}
	})
	if t.Logf("4,000 sessions take %v, one look at the processes above takes %v", all, one); all > 400*one {
		t.Error("that is too long")
	}
}
