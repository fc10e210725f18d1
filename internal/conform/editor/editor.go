// Package editor tests the plugin of any editor against the protocol between editors and pollux. It plays the companion
// that the plugin starts, and with the keys of the editor also the user. Each requirement is a named check with its
// number (docs/conform.md lists them) and what was seen.
package editor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/rpc"
	"github.com/pollux-companion/pollux/internal/words"
)

// Options say what to test.
type Options struct {
	// Command is the editor with its arguments. It runs in a workspace of its own, in a terminal whose screen nobody reads.
	Command []string
	// Keys are what a user of this editor types; nil means that nobody does.
	Keys Keys
	// Wait is how long the plugin may take for anything; 0 means 10 s, twice what pollux gives it, for a busy machine.
	Wait time.Duration
	// Only selects the checks whose name begins with it; "" selects all.
	Only string
	// Program is the pollux that the stand-in for pollux calls with PlugArgs; "" means this program.
	Program string

	// start is how long the plugin may take to start a pollux, unless three times Wait is more; 0 means 30 s.
	start time.Duration
}

// silence is how long a message must not come; longer than a plugin may hold one back.
const silence = 400 * time.Millisecond

// A play is the state of one Run. The goroutine of Run owns it, except for the fields below mu.
type play struct {
	o    Options
	ctx  context.Context //nolint:containedctx // of the run
	ed   *process
	dir  string // the workspace
	link *link  // the plugin's connection now
	each func(conform.Check)
	all  []conform.Check
	hi   hello // the first announcement; written once, below mu
	n    int   // of diffs and files made so far

	mu      sync.Mutex // guards the fields below
	diffs   map[string]*diff
	closing map[string]string // the diffs of closeDiff requests that wait, by the request
	files   map[string]string // texts of files, by path
	faults  map[string][]string
	last    string // the last context
	refuse  bool   // the next decision is refused as out of date
	mute    bool   // shutdown is not answered
}

// A check is one requirement; do returns what was wrong, or a skipError.
type check struct {
	name, about string
	do          func(*play) error
}

type skipError string

func (e skipError) Error() string { return string(e) }

// A refusedError is a diff that the plugin refused to show, in a way that the protocol allows.
type refusedError struct{ err *rpc.Error }

func (e *refusedError) Error() string {
	return fmt.Sprintf("it refuses the diff: %d %s", e.err.Code, e.err.Message)
}

// Run tests everything and returns all checks. each (may be nil) receives every check when it is made.
func Run(ctx context.Context, o Options, each func(conform.Check)) ([]conform.Check, error) {
	o.start = cmp.Or(o.start, 30*time.Second)
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	p := &play{o: o, ctx: ctx, each: each, diffs: map[string]*diff{}, closing: map[string]string{}, files: map[string]string{}, faults: map[string][]string{}}
	if err := p.start(); err != nil {
		return nil, err
	}
	defer p.ed.end()
	for _, c := range checks() {
		if !strings.HasPrefix(c.name, o.Only) {
			continue
		}
		err := c.do(p)
		if ctx.Err() != nil {
			return p.all, ctx.Err()
		}
		p.note(c, err)
		if err := p.clear(); err != nil {
			return p.all, fmt.Errorf("after %s: %w", c.name, err)
		}
	}
	return p.all, nil
}

func checks() (all []check) {
	for _, list := range [][]check{startChecks(), messageChecks(), contextChecks(), diffChecks(), userChecks(), otherChecks(), lifeChecks(), faultChecks(), endChecks()} {
		all = append(all, list...)
	}
	return all
}

func (p *play) note(c check, err error) {
	number, _, _ := strings.Cut(c.name, "/")
	made := conform.Check{Name: c.name, Number: number, About: c.about, Result: conform.Pass}
	var skip skipError
	var refused *refusedError
	switch {
	case err == nil:
	case errors.As(err, &skip):
		made.Result, made.Evidence = conform.Skip, skip.Error()
	case errors.As(err, &refused) && (refused.err.Code == codeEncoding || refused.err.Code == codeTooBig):
		made.Evidence = refused.Error()
	default:
		made.Result, made.Evidence = conform.Fail, words.Shorten(err.Error(), 600)
	}
	p.all = append(p.all, made)
	if p.each != nil {
		p.each(made)
	}
}

// clear takes back what a check has left open, and waits for a plugin whose pollux has ended.
func (p *play) clear() error {
	if p.ed.over {
		return nil
	}
	if p.link.gone() {
		if err := p.again(); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.refuse = false
	var open []string
	for id, d := range p.diffs {
		if d.open {
			open = append(open, id)
		}
	}
	p.mu.Unlock()
	for _, id := range open {
		_, _ = p.closeDiff(id)
	}
	return nil
}

// start starts the editor, and waits for the plugin's first message.
func (p *play) start() (err error) {
	if p.ed, err = startEditor(p.o); err != nil {
		return err
	}
	p.dir = p.ed.dir
	if err = p.again(); err != nil {
		p.ed.end()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hi = p.link.hello
	return nil
}

// again waits for the plugin to start a pollux, and to say hello.
func (p *play) again() error {
	deadline := time.NewTimer(max(3*p.o.Wait, p.o.start))
	defer deadline.Stop()
	for {
		select {
		case conn := <-p.ed.conns:
			l, err := newLink(conn, p)
			if err != nil {
				continue // it was no pollux lsp
			}
			p.mu.Lock()
			p.last = ""
			clear(p.closing)
			p.mu.Unlock()
			p.link = l
			if err := l.greeted(p.o.Wait); err != nil {
				return err
			}
			return nil
		case <-p.ed.done:
			return fmt.Errorf("the editor has ended; its screen ends with %q", p.ed.screen())
		case <-deadline.C:
			return fmt.Errorf("the plugin starts no pollux: let it start %q from PATH, or the program in $%s; the editor's screen ends with %q", "pollux lsp", commandEnv, p.ed.screen())
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}

// file writes a file into the workspace.
func (p *play) file(name, content string) (path string, err error) {
	path = filepath.Join(p.dir, name)
	p.mu.Lock()
	p.files[path] = content
	p.mu.Unlock()
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// fault records what was wrong with a message; the check of that name reports it.
func (p *play) fault(name, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults[name]) < 5 {
		p.faults[name] = append(p.faults[name], fmt.Sprintf(format, args...))
	}
}

func (p *play) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

// quoted returns a value as JSON, cut.
func quoted(v any) string {
	data, _ := json.Marshal(v)
	return words.Shorten(string(data), 200)
}
