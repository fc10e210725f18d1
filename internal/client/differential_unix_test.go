//go:build unix

package client

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/peers"
)

// A realCLI is one Node with the published CLI's client code, which answers cases in their order.
type realCLI struct {
	t   *testing.T
	pid int // of the shell that started Node
	in  *json.Encoder
	out *bufio.Reader
}

func startReal(t *testing.T) *realCLI {
	t.Helper()
	gemini := peers.Need(t, peers.Gemini)
	script, err := filepath.Abs("testdata/real.mjs")
	if err != nil {
		t.Fatal(err)
	}
	// A shell above it, as a user's CLI has.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `"$@"; exit $?`, "sh", peers.Need(t, peers.Node), script, filepath.Dir(gemini))
	cmd.Stderr = os.Stderr
	in, out := child.Start(t, cmd)
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	return &realCLI{t, cmd.Process.Pid, json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20)}
}

func (r *realCLI) ask(question, answer any) {
	r.t.Helper()
	r.askAll([]any{question}, func(_ int, line []byte) {
		if err := json.Unmarshal(line, answer); err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
	})
}

// askAll asks all at once, which saves a change between two processes for each.
func (r *realCLI) askAll(questions []any, each func(i int, line []byte)) {
	r.t.Helper()
	sent := make(chan error, 1)
	go func() {
		for _, q := range questions {
			if err := r.in.Encode(q); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range questions {
		line, err := r.out.ReadBytes('\n')
		if err != nil {
			r.t.Fatalf("Node has ended: %v", err)
		}
		each(i, line)
	}
	if err := <-sent; err != nil {
		r.t.Fatal(err)
	}
}

// answers asks all and decodes the answers.
func answers[A any](r *realCLI, questions []any) []A {
	r.t.Helper()
	all := make([]A, len(questions))
	r.askAll(questions, func(i int, line []byte) {
		if err := json.Unmarshal(line, &all[i]); err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
	})
	return all
}

// The numbers of cases. The seed is fixed: a failure can be looked at again.
const (
	choices  = 300
	contexts = 400
	outcomes = 60
	seed     = 20260101
)

// SPEC K-1, K-2: what the published CLI's own code makes of the same folders, environments and messages.
func TestAsTheRealCLI(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	t.Parallel()
	real := startReal(t)
	g := &generator{t: t, r: rand.New(rand.NewPCG(seed, seed)), base: must(filepath.EvalSymlinks(t.TempDir()))}
	g.folders()
	tally := map[string]int{}
	var cases, messages, ends []any
	for n := range choices {
		cases = append(cases, g.choice(n, real.pid))
	}
	for range contexts {
		messages = append(messages, messageCase{Do: "hear", Message: g.contextMessage()})
	}
	for range outcomes {
		ends = append(ends, messageCase{Do: "settle", Message: g.outcomeMessage()})
	}
	for n, want := range answers[chosen](real, cases) {
		c := cases[n].(choiceCase)
		tally[want.kind()]++
		got := ours(c)
		if want.Fault != "" && got.Fault != "" {
			want.Fault, got.Fault = "yes", "yes" // the words are the platform's
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("case %d (-real +ours):\n%s\n%s", n, diff, g.show(c))
		}
	}
	for n, want := range answers[heard](real, messages) {
		c := messages[n].(messageCase)
		if got := hear(c.Message); (got.Fault == "") != (want.Fault == "") || !cmp.Equal(want.Context, got.Context) {
			t.Errorf("context %d: %s\nreal %+v\nours %+v", n, c.Message, want, got)
		}
		tally["context, fault: "+strconv.FormatBool(want.Fault != "")]++
	}
	for n, want := range answers[settled](real, ends) {
		c := ends[n].(messageCase)
		if got := settle(c.Message); (got.Fault == "") != (want.Fault == "") || got.Path != want.Path || !cmp.Equal(got.Content, want.Content) {
			t.Errorf("outcome %d: %s\nreal %+v\nours %+v", n, c.Message, want, got)
		}
		tally["outcome, fault: "+strconv.FormatBool(want.Fault != "")]++
	}
	t.Run("trees", func(t *testing.T) { sameInTrees(t, real) })
	t.Run("wire", func(t *testing.T) { sameOnTheWire(t, real) })
	t.Logf("%d choices, %d contexts, %d outcomes: %v", choices, contexts, outcomes, tally)
	for _, kind := range []string{"none", "fits", "mismatch", "fault", "unsupported", "context, fault: true", "context, fault: false"} {
		if tally[kind] < 5 {
			t.Errorf("only %d cases of the kind %q: the generator proves nothing about it", tally[kind], kind)
		}
	}
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

// A choiceCase is one world: Dir and Env are the CLI's. With Tree the CLI computes its editor's process from the
// environment and from the real processes above it; else it is PID, with Command.
type choiceCase struct {
	Do      string            `json:"do"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"dir"`
	PID     int               `json:"pid"`
	Command string            `json:"command"`
	Tree    bool              `json:"tree"`
	shell   int               // what is above the real CLI
}

// chosen is what came of it.
type chosen struct {
	Fault string
	PID   int
	Mark  *string
	IDE   *struct{ Name, DisplayName string }
	Valid bool
	Error *string
	Host  string
	Stdio *struct {
		Command string
		Args    []any
	}
}

func (c *chosen) kind() string {
	switch {
	case c.Fault != "":
		return "fault"
	case c.IDE == nil:
		return "unsupported"
	case c.Mark == nil:
		return "none"
	case c.Valid:
		return "fits"
	}
	return "mismatch"
}

// ours does with this package what real.mjs does with the CLI's functions.
func ours(c choiceCase) (out chosen) {
	w := &World{Dir: c.Dir, PID: c.PID}
	for name, value := range c.Env {
		w.Environ = append(w.Environ, name+"="+value)
	}
	w.Environ = append(w.Environ, "PATH="+os.Getenv("PATH"))
	if c.Tree {
		w.PID = c.shell
	} else {
		w.Process = func(int) (Process, bool) { return Process{Parent: 1, Command: c.Command}, true }
	}
	choice := Choose(w)
	if choice.Fault != nil {
		return chosen{Fault: choice.Fault.Error()}
	}
	out.PID, out.Host = choice.Editor.PID, w.Host()
	if choice.Config != nil {
		if mark, ok := choice.Config.members["mark"].(string); ok {
			out.Mark = &mark
		}
	}
	if choice.IDE != nil {
		out.IDE = &struct{ Name, DisplayName string }{choice.IDE.Name, choice.IDE.DisplayName}
	}
	path, given, err := choice.Config.Workspace()
	if err == nil && !given {
		path, given = w.lookup("GEMINI_CLI_IDE_WORKSPACE_PATH")
	}
	mismatch, err2 := validate(w.orHere(), path, given)
	if err = errors.Join(err, err2); err != nil {
		return chosen{Fault: err.Error()}
	}
	if out.Valid = mismatch == nil; !out.Valid {
		text := mismatch.Error()
		out.Error = &text
	}
	if err := choice.Workspace(w); !cmp.Equal(err == nil, out.Valid) {
		panic(fmt.Sprintf("Workspace says %v", err))
	}
	if command := w.Getenv("GEMINI_CLI_IDE_SERVER_STDIO_COMMAND"); command != "" {
		args := []any{}
		for _, a := range stdioArgs(w) {
			args = append(args, a)
		}
		out.Stdio = &struct {
			Command string
			Args    []any
		}{command, args}
	}
	return out
}

type messageCase struct {
	Do      string `json:"do"`
	Message string `json:"message"`
}

type heard struct {
	Fault   string
	Context map[string]any
}

func hear(message string) (out heard) {
	m, err := parseMessage([]byte(message))
	if err == nil && m.bare {
		err = errors.New("no params")
	}
	var c *Context
	if err == nil {
		c, err = ParseContext(m.params)
	}
	if err != nil {
		return heard{Fault: err.Error()}
	}
	data, _ := json.Marshal(c)
	_ = json.Unmarshal(data, &out.Context)
	return out
}

type settled struct {
	Fault, Path string
	Content     *string
}

func settle(message string) settled {
	m, err := parseMessage([]byte(message))
	if err != nil || m.bare {
		return settled{Fault: "form"}
	}
	path, out, err := parseOutcome(m.method, m.params)
	if err != nil {
		return settled{Fault: err.Error()}
	}
	if strings.HasSuffix(m.method, "Closed") { // its content is parsed and not used
		var p struct{ Content *string }
		_ = json.Unmarshal(m.params, &p)
		out.Content = p.Content
	}
	return settled{Path: path, Content: out.Content}
}
