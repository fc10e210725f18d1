// Package conform tests any companion against the contract with Gemini CLI, and with the other agents that it serves.
// It plays the vectors of package contract step by step, and runs probes for what a vector cannot express. Each is a
// named check with its number in the specification and the evidence. Steps that need a user in front of the editor
// are done by a driver, or reported as left out.
package conform

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/contract"
)

// A Result is the outcome of a check.
type Result string

// The results.
const (
	Pass Result = "pass"
	Fail Result = "fail"
	Skip Result = "skip" // needs a person, a driver, or a setting
)

// A Check is one requirement that was tested.
type Check struct {
	// Name is stable: the vector, its step and the part of it ("F-4a/response 3/body"), or the probe's ("T-2/loopback only").
	Name   string `json:"name"`
	Number string `json:"number"` // "F-4"
	About  string `json:"about"`  // the requirement
	Result Result `json:"result"`
	// Evidence is what was seen. A failed check adds what was expected, a skipped one what is missing. A passed probe
	// has none.
	Evidence string `json:"evidence,omitempty"`
}

// A Target is the companion to test.
type Target struct {
	Addr  string // host:port of its listener for CLIs
	Token string
	// Dir is a folder of its workspace. Conform makes a folder of its own in it, and removes that.
	Dir string
	// File is its discovery file; "" skips the checks of it.
	File string
	// Driver plays the user; nil means nobody.
	Driver Driver
	// With names the companion's settings and its editor's abilities: writeFile, extraHost, legacyDiffClosed, and nul
	// (a zero byte within text).
	With []string
	// Silence is how long a stream may be silent (SPEC T-5: 60 s), and Grace how long an abandoned session may live
	// (SPEC T-3: 30 s); 0 skips these slow checks.
	Silence, Grace time.Duration
	// Wait bounds the response to a request; 0 means 5 s.
	Wait time.Duration
	// End is how long the companion may take to end; 0 means 3 s: the second that SPEC L-1 allows, and extra for a
	// busy machine.
	End time.Duration
	// Command is the companion's process, nil when conform did not start it.
	Command *Process
	// Others are the agents to test besides Gemini CLI. The companion must serve them.
	Others []Other
	// Only selects the checks whose name begins with it; "" selects all.
	Only string

	// reachable replaces this machine's addresses in tests.
	reachable func() ([]net.IP, error)
}

// Settings lists the values of Target.With.
func Settings() []string { return []string{"writeFile", "extraHost", "legacyDiffClosed", "nul"} }

// A run is the state of one Run.
type run struct {
	t    Target
	ctx  context.Context //nolint:containedctx // of the run
	dir  string          // conform's own folder in the workspace
	http *http.Client
	each func(Check)
	all  []Check
	open []string // sessions to end
	// refuses is why the companion shows no diffs now, "" when it does.
	refuses string
	moved   bool // the driver has done something since the last reset, or the user before the start
}

// Run tests everything and returns all checks. each (may be nil) receives every check when it is made.
func Run(ctx context.Context, t Target, each func(Check)) ([]Check, error) {
	if t.Wait == 0 {
		t.Wait = 5 * time.Second
	}
	if t.End == 0 {
		t.End = endWithin
	}
	dir, err := os.MkdirTemp(t.Dir, "pollux-conform-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("no folder in the companion's workspace: %w", err)
	}
	defer os.RemoveAll(dir)
	r := &run{t: t, ctx: ctx, dir: dir, each: each, moved: t.Driver != nil, http: plain()}
	defer r.http.CloseIdleConnections()
	if err := r.alive(); err != nil {
		return nil, err
	}
	archives, err := contract.All()
	if err != nil {
		return nil, err
	}
	r.look()
	for _, a := range archives {
		target, ok := r.targetOf(a)
		if !ok {
			continue // tests the inside of a companion of this repository, or an agent that it does not serve
		}
		if err := r.try(a.Name, func() { r.archive(a, target) }); err != nil {
			return r.all, err
		}
	}
	for _, p := range probes() {
		if err := r.try(p.name, func() { r.probe(p) }); err != nil {
			return r.all, err
		}
	}
	r.others()
	return r.all, ctx.Err()
}

// try makes the checks of one name. When some fail because the companion has fallen silent, the others would wait
// in vain, each for itself, and the run ends.
func (r *run) try(name string, checks func()) error {
	if r.ctx.Err() != nil || !r.wanted(name) {
		return nil
	}
	before := len(r.all)
	checks()
	if slices.ContainsFunc(r.all[before:], func(c Check) bool { return c.Result == Fail }) {
		if err := r.alive(); errors.Is(err, errSilent) {
			return fmt.Errorf("after %s: %w", name, err)
		}
	}
	r.end()
	return nil
}

// plain returns a client that follows no redirects and changes nothing.
func plain() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errSilent: the system accepts connections for a process that somebody has suspended.
var errSilent = errors.New("takes connections and answers none to its end; is it suspended?")

// alive returns an error when there is nothing to test: nobody listens, or, with errSilent, what listens does not answer
// a plain request in time.
func (r *run) alive() error {
	conn, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(r.ctx, "tcp", r.t.Addr)
	if err != nil {
		return fmt.Errorf("nobody listens at %s: %w", r.t.Addr, err)
	}
	defer conn.Close()
	deadline := time.Now().Add(r.t.Wait)
	_ = conn.SetDeadline(deadline)
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", r.t.Addr)
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil && time.Now().After(deadline) { //nolint:bodyclose // the connection is closed here
		return fmt.Errorf("for %v the program at %s %w", r.t.Wait, r.t.Addr, errSilent)
	}
	return nil
}

// look finds out whether the companion shows diffs now. A companion without an editor rightly refuses them.
func (r *run) look() {
	l, _, err := r.link()
	if err != nil {
		return // the checks will report what is wrong
	}
	defer r.leave(l)
	var refused *refusedError
	if err := r.openDiff(l, filepath.Join(r.dir, "look.txt"), "x"); errors.As(err, &refused) {
		r.refuses = refused.why
	}
}

func (r *run) wanted(name string) bool { return strings.HasPrefix(name, r.t.Only) }

// shortToken is the length in bytes below which a token is not searched for in other text: a short token may occur
// there by chance.
const shortToken = 8

func (r *run) note(c Check) {
	if c.Number == "" {
		c.Number = number(c.Name)
	}
	tokens := []string{r.t.Token}
	for _, o := range r.t.Others {
		tokens = append(tokens, o.Door.Token)
	}
	for _, token := range tokens {
		if len(token) >= shortToken {
			c.Evidence = strings.ReplaceAll(c.Evidence, token, "{{token}}")
		}
	}
	r.all = append(r.all, c)
	if r.each != nil {
		r.each(c)
	}
}

// number returns the specification's number in a name: "F-4" of "F-4a/response 3".
func number(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return strings.TrimRight(name, "abcdefghijklmnopqrstuvwxyz")
}

// end deletes a check's sessions, with their diffs, and its files.
func (r *run) end() {
	for _, id := range r.open {
		ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://"+r.t.Addr+"/mcp", nil)
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+r.t.Token)
			req.Header.Set("Mcp-Session-Id", id)
			if res, err := r.http.Do(req); err == nil {
				res.Body.Close()
			}
		}
		cancel()
	}
	r.open = nil
	left, _ := os.ReadDir(r.dir)
	for _, e := range left {
		_ = os.RemoveAll(filepath.Join(r.dir, e.Name()))
	}
}

// archive plays one vector.
func (r *run) archive(a *contract.Archive, target contract.Target) {
	if why := r.unplayable(a); why != "" {
		r.leaveOut(a, why)
		return
	}
	if r.t.Driver != nil && (r.moved || a.NeedsEditor()) {
		r.moved = a.NeedsEditor()
		target.Editor = r.drive
		if err := r.t.Driver.Do(r.ctx, `{"reset":true}`); err != nil && !errors.Is(err, ErrUnsupported) {
			r.leaveOut(a, "the driver could not reset the editor: "+err.Error())
			return
		}
	}
	got, err := contract.Play(a, target)
	switch {
	case errors.Is(err, ErrUnsupported):
		r.leaveOut(a, "the driver cannot: "+err.Error())
	case err != nil:
		r.note(Check{Name: a.Name + "/play", About: a.About, Result: Fail, Evidence: err.Error()})
	default:
		for i, step := range a.Steps {
			r.compare(a, step, got[i])
		}
	}
}

// unplayable says why a vector cannot be played here, "" if it can.
func (r *run) unplayable(a *contract.Archive) string {
	for name := range a.Settings {
		if name == "without" {
			if slices.Contains(r.t.With, a.Settings[name]) {
				return "it needs a companion without the setting " + a.Settings[name]
			}
			continue
		}
		if name == "grace" {
			return "it needs a companion whose sessions end sooner than a user's do, after " + a.Settings[name]
		}
		if name != "connect" && name != "stream" && name != "agent" && !slices.Contains(r.t.With, name) {
			return "it needs a companion with the setting " + name + " (--with " + name + ")"
		}
	}
	if r.refuses != "" {
		for _, s := range a.Steps {
			if s.Kind == "response" && strings.Contains(s.Text, `"result":{"content":[]}`) || strings.Contains(s.Text, `"accept"`) {
				return noDiffs
			}
		}
	}
	if a.NeedsEditor() && r.t.Driver == nil {
		return "it needs a driver, or a person in front of the editor"
	}
	return ""
}

// noDiffs is why checks that need an open diff are skipped. One probe fails and reports the companion's own reason.
const noDiffs = "the companion shows no diffs at the moment: open its editor"

// leaveOut reports the checks of a vector that is not played as skipped.
func (r *run) leaveOut(a *contract.Archive, why string) {
	for _, s := range a.Steps {
		if s.Expects() {
			r.note(Check{Name: a.Name + "/" + s.File, About: a.About, Result: Skip, Evidence: why})
		}
	}
}
