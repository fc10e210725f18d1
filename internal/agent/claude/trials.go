package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// undecided is how long an openDiff is watched that nobody decides.
const undecided = 300 * time.Millisecond

// Trials are what pollux conform tries of Claude Code's wire. They open diffs, and take them away again.
func Trials() []finding.Trial {
	return []finding.Trial{
		{Name: "CC-5/its token opens", About: "a socket opens with the lock's token, and initialize is answered", Try: lockfile.Joined(dial, func(context.Context, finding.Door, *Conn) error { return nil })},
		{Name: "CC-5/another token does not", About: "a socket that brings another token is refused with 401", Try: lockfile.OtherToken(dial)},
		{Name: "CC-5/no Origin", About: "a page in a browser is refused, whatever its origin", Try: noOrigin},
		{Name: "CC-17/tools", About: "the eleven tools are offered, and not executeCode, which a model would see", Try: lockfile.Joined(dial, offered)},
		{Name: "CC-6/first context", About: "what the user looks at comes without being asked for", Try: lockfile.Joined(dial, firstContext)},
		{Name: "CC-8/openDiff waits", About: "openDiff is answered when it is decided, and what nobody accepts is never answered as accepted", Try: lockfile.Joined(dial, waits)},
		{Name: "CC-11/a session's own", About: "closeAllDiffTabs leaves the diffs of other sessions alone", Try: lockfile.Joined(dial, ownTabs)},
		{Name: "CC-13/diagnostics", About: "getDiagnostics answers a list of files, or says by an error that nothing is known", Try: lockfile.Joined(dial, diagnosed)},
	}
}

// dial opens a session at a door, as Claude Code does.
func dial(ctx context.Context, d finding.Door) (*Conn, error) { return Dial(ctx, d.Port, d.Token, nil) }

func noOrigin(ctx context.Context, d finding.Door) error {
	ctx, cancel := context.WithTimeout(ctx, lockfile.TryWithin)
	defer cancel()
	for _, origin := range []string{"https://example.org", "null", fmt.Sprintf("http://127.0.0.1:%d", d.Port)} {
		if c, err := Dial(ctx, d.Port, d.Token, http.Header{"Origin": {origin}}); err == nil {
			c.Close()
			return fmt.Errorf("a socket opened for the origin %s", origin)
		}
	}
	return nil
}

func offered(ctx context.Context, _ finding.Door, c *Conn) error {
	names, err := lockfile.Offers(ctx, c, maps.Keys((&Dialect{}).tools()))
	if err == nil && slices.Contains(names, "executeCode") {
		err = errors.New("executeCode is offered")
	}
	return err
}

func firstContext(ctx context.Context, _ finding.Door, c *Conn) error {
	if _, err := c.Tools(ctx); err != nil { // some tell only a session that has asked
		return err
	}
	params, err := c.Context(ctx)
	if err != nil {
		return fmt.Errorf("no selection_changed has come: %w", err)
	}
	_, err = Told(params)
	return err
}

// call asks for a tool and returns the texts of its answer; failed is an answer that says that it could not.
func (c *Conn) call(ctx context.Context, tool string, args map[string]string) (texts []string, failed bool, err error) {
	id, err := c.ask(ctx, tool, args)
	if err != nil {
		return nil, false, err
	}
	return c.texts(ctx, id)
}

func (c *Conn) ask(ctx context.Context, tool string, args map[string]string) (id int, err error) {
	return c.Ask(ctx, "tools/call", map[string]any{"name": tool, "arguments": args})
}

func (c *Conn) texts(ctx context.Context, id int) (texts []string, failed bool, err error) {
	data, err := c.answer(ctx, id)
	if err != nil {
		return nil, false, err
	}
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	err = json.Unmarshal(data, &result)
	for _, block := range result.Content {
		texts = append(texts, block.Text)
	}
	return texts, result.IsError, err
}

// propose opens a diff and checks that it stays open. A companion that shows none at the moment refuses it, rightly.
func propose(ctx context.Context, d finding.Door, c *Conn, tab string) (id int, err error) {
	path := filepath.Join(d.Dir, tab+".txt")
	id, err = c.ask(ctx, "openDiff", map[string]string{argOld: path, argNew: path, argContents: "proposed\n", argTab: tab})
	if err != nil {
		return 0, err
	}
	// A read that is given up ends the socket, so a question whose answer comes at once says how it stands.
	for start := time.Now(); time.Since(start) < undecided; {
		if _, err := c.Call(ctx, "ping", map[string]any{}); err != nil {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(undecided / 10):
		}
		if c.answered(id) {
			texts, failed, err := c.texts(ctx, id)
			if err == nil && failed {
				err = finding.ErrNoDiffs
			} else if err == nil {
				err = fmt.Errorf("answered with %q before anybody has decided", texts)
			}
			return 0, err
		}
	}
	return id, nil
}

// answered says whether the answer to a request has come.
func (c *Conn) answered(id int) bool {
	return slices.ContainsFunc(c.heard, func(m message) bool { return m.Method == "" && string(m.ID) == fmt.Sprint(id) })
}

func waits(ctx context.Context, d finding.Door, c *Conn) error {
	id, err := propose(ctx, d, c, "waits")
	if err != nil {
		return err
	}
	if texts, failed, err := c.call(ctx, "close_tab", map[string]string{argTab: "waits"}); err != nil || failed {
		return fmt.Errorf("close_tab: %q, %w", texts, err)
	}
	texts, failed, err := c.texts(ctx, id)
	if err == nil && !failed && (len(texts) == 0 || texts[0] != "DIFF_REJECTED") {
		err = fmt.Errorf("a diff that was taken away is answered with %q; only an error or DIFF_REJECTED writes nothing", texts)
	}
	return err
}

func ownTabs(ctx context.Context, d finding.Door, c *Conn) error {
	id, err := propose(ctx, d, c, "own")
	if err != nil {
		return err
	}
	other, err := Dial(ctx, d.Port, d.Token, nil)
	if err != nil {
		return err
	}
	defer other.Close()
	if _, _, err := other.call(ctx, "closeAllDiffTabs", map[string]string{}); err != nil {
		return err
	}
	if _, err := c.Call(ctx, "ping", map[string]any{}); err != nil {
		return err
	}
	if c.answered(id) {
		return errors.New("another session's closeAllDiffTabs ended it")
	}
	_, _, err = c.call(ctx, "close_tab", map[string]string{argTab: "own"})
	return err
}

func diagnosed(ctx context.Context, d finding.Door, c *Conn) error {
	for _, args := range []map[string]string{{}, {argURI: "file://" + filepath.Join(d.Dir, "new.go")}} {
		texts, failed, err := c.call(ctx, "getDiagnostics", args)
		if err != nil {
			return err
		}
		if failed {
			continue
		}
		var files []struct {
			URI         string            `json:"uri"`
			Diagnostics []json.RawMessage `json:"diagnostics"`
		}
		if len(texts) != 1 {
			return fmt.Errorf("%d text blocks, where Claude Code reads one", len(texts))
		}
		if err := json.Unmarshal([]byte(texts[0]), &files); err != nil {
			return fmt.Errorf("%q: %w", texts[0], err)
		}
	}
	return nil
}
