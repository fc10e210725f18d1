package conform

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/client"
)

func userProbes() []probe {
	return []probe{
		{"F-8/does not write", "the companion does not write the file on acceptance: the CLI does, and fails when it is written", (*run).doesNotWrite},
		{"F-3/closed view", "closing the view by hand rejects, or the CLI waits for ever", (*run).closedView},
		{"C-6/no file has the focus", "a settings page or terminal in front leaves no file active", (*run).noFile},
		{"F-3/outcomes of two sessions", "each session hears of its own diffs, and of no other's", (*run).ownOutcomes},
		{"F-8/saving the file", "who saves the file itself, while a diff of it waits, saves the file and decides nothing", (*run).savesFile},
		{"F-8/unsaved text", "what the user has typed into the file and not saved is still there after a diff of it", (*run).keepsUnsaved},
		{"C-3/times", "a file's time is that of its last focus, in milliseconds", (*run).times},
		{"C-7/trust", "isTrusted is the editor's own, and left out where it has none", (*run).trusts},
		{"T-6/many outcomes", "fifteen outcomes that came while no stream was up arrive, each once and in order", (*run).manyOutcomes},
	}
}

// driven makes the driver do some lines; without a driver the probe is skipped.
func (r *run) driven(lines ...string) error {
	if r.t.Driver == nil {
		return skip("it needs a driver, or a person in front of the editor")
	}
	for _, line := range lines {
		if err := r.t.Driver.Do(r.ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) doesNotWrite() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	return r.with("accepted\n", func(_ *client.Link, heard chan event, path string) error {
		if err := r.driven(`{"accept":null}`); err != nil {
			return err
		}
		if _, err := r.next(heard, wire.NotifyAccepted); err != nil {
			return err
		}
		if err := r.pause(contextDelay); err != nil {
			return err
		}
		if data, err := os.ReadFile(path); err == nil {
			_ = os.Remove(path)
			return fmt.Errorf("it has written %d bytes", len(data))
		}
		return nil
	})
}

func (r *run) closedView() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	return r.with("x\n", func(_ *client.Link, heard chan event, _ string) error {
		if err := r.driven(`{"close":true}`); err != nil {
			return err
		}
		_, err := r.next(heard, wire.NotifyRejected)
		return err
	})
}

func (r *run) noFile() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	path := filepath.Join(r.dir, "focus.txt")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		return err
	}
	defer os.Remove(path)
	quoted, _ := json.Marshal(path)
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	if err := r.driven(fmt.Sprintf(`{"report":{"Active":%s,"Front":true}}`, quoted)); err != nil {
		return err
	}
	if err := r.comesTo(heard, func(c *client.Context) bool { return active(c) == path }); err != nil {
		return fmt.Errorf("the file is never active: %w", err)
	}
	if err := r.driven(`{"report":{"Active":"","Front":true}}`); err != nil {
		return err
	}
	if err := r.comesTo(heard, func(c *client.Context) bool { return active(c) == "" }); err != nil {
		return fmt.Errorf("the file stays active: %w", err)
	}
	return nil
}

func active(c *client.Context) string {
	if c.Workspace == nil || len(c.Workspace.Files) == 0 || !c.Workspace.Files[0].IsActive() {
		return ""
	}
	return c.Workspace.Files[0].Path
}

// comesTo waits for a context that satisfies fits.
func (r *run) comesTo(heard chan event, fits func(*client.Context) bool) error {
	for {
		e, err := r.next(heard, wire.NotifyContext)
		if err != nil {
			return err
		}
		c, err := client.ParseContext(e.params)
		if err != nil {
			return err
		}
		if fits(c) {
			return nil
		}
	}
}

// inFront creates a file and opens it for a user who has nothing open.
func (r *run) inFront(name, content string) (path string, err error) {
	if err := r.driven(`{"reset":true}`); err != nil {
		return "", err
	}
	path = filepath.Join(r.dir, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// line builds one of the driver's lines about a file.
func line(what, path, content string) string {
	data, _ := json.Marshal(map[string]any{what: map[string]string{"path": path, "content": content}})
	return string(data)
}

func (r *run) savesFile() error {
	path, err := r.inFront("saved.txt", "old\n")
	if err != nil {
		return err
	}
	quoted, _ := json.Marshal(path)
	if err := r.driven(fmt.Sprintf(`{"report":{"Active":%s,"Cursor":{"line":0,"character":0},"Front":true}}`, quoted)); err != nil {
		return err
	}
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	if err := r.openDiff(l, path, "proposed\n"); err != nil {
		return err
	}
	if err := r.driven(line("save", path, "the user's\n")); err != nil {
		return err
	}
	if err := r.pause(contextDelay); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err == nil && string(data) != "the user's\n" {
		err = fmt.Errorf("after the user has saved it, the file holds %q", data)
	}
	if err != nil {
		return err
	}
	if method := outcome(heard); method != "" {
		return fmt.Errorf("saving the file itself has sent %s", method)
	}
	if _, _, _, err := r.closeDiff(l, path); err != nil {
		return fmt.Errorf("the diff is gone: %w", err)
	}
	return nil
}

// outcome returns the method of an outcome that has arrived, "" for none.
func outcome(heard chan event) string {
	for {
		select {
		case e := <-heard:
			if e.method != wire.NotifyContext {
				return e.method
			}
		default:
			return ""
		}
	}
}

func (r *run) ownOutcomes() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	names, both := []string{"first.txt", "second.txt"}, []chan event{}
	for _, name := range names {
		l, heard, err := r.link()
		if err != nil {
			return err
		}
		defer r.leave(l)
		if _, err := r.next(heard, wire.NotifyContext); err != nil { // the stream is open
			return err
		}
		if err := r.openDiff(l, filepath.Join(r.dir, name), "x"); err != nil {
			return err
		}
		both = append(both, heard)
	}
	if err := r.driven(`{"accept":null}`, `{"reject":true}`); err != nil {
		return err
	}
	for i, heard := range both {
		e, err := r.next(heard, wire.NotifyAccepted, wire.NotifyRejected)
		if err != nil {
			return fmt.Errorf("session %d: %w", i+1, err)
		}
		if filepath.Base(e.path()) != names[i] {
			return fmt.Errorf("session %d hears of %s", i+1, filepath.Base(e.path()))
		}
	}
	if err := r.pause(contextDelay); err != nil {
		return err
	}
	for i, heard := range both {
		if method := outcome(heard); method != "" {
			return fmt.Errorf("session %d hears another outcome, %s", i+1, method)
		}
	}
	return nil
}

func (r *run) keepsUnsaved() error {
	for _, decision := range []string{`{"reject":true}`, `{"accept":null}`, ""} {
		path, err := r.inFront("unsaved.txt", "old\n")
		if err != nil {
			return err
		}
		if err := r.driven(line("type", path, "old\nmine\n")); err != nil {
			return err
		}
		err = r.withPath(path, "proposed\n", func(l *client.Link, heard chan event) error {
			if decision == "" {
				_, _, _, err := r.closeDiff(l, path)
				return err
			}
			if err := r.driven(decision); err != nil {
				return err
			}
			_, err := r.next(heard, wire.NotifyAccepted, wire.NotifyRejected)
			return err
		})
		if err != nil {
			return err
		}
		if err := r.driven(line("holds", path, "old\nmine\n")); err != nil {
			return fmt.Errorf("after a diff (%s): %w", cmp.Or(decision, "closed by the CLI"), err)
		}
	}
	return nil
}

func (r *run) times() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	last := 0.0
	for _, name := range []string{"one.txt", "two.txt", "one.txt"} {
		path := filepath.Join(r.dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			return err
		}
		quoted, _ := json.Marshal(path)
		if err := r.driven(fmt.Sprintf(`{"report":{"Active":%s,"Cursor":{"line":0,"character":0},"Front":true}}`, quoted)); err != nil {
			return err
		}
		at, others := 0.0, 0.0
		err := r.comesTo(heard, func(c *client.Context) bool {
			if active(c) != path {
				return false
			}
			at = c.Workspace.Files[0].Timestamp
			for _, f := range c.Workspace.Files[1:] {
				others = max(others, f.Timestamp)
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("%s is never active: %w", name, err)
		}
		if now := float64(time.Now().UnixMilli()); at < now-86_400_000 || at > now+86_400_000 {
			return fmt.Errorf("the time %.0f is not of today, in milliseconds", at)
		}
		if at <= others || at < last {
			return fmt.Errorf("the file in front has the time %.0f, where another one has %.0f, and it %.0f before", at, others, last)
		}
		last = at
	}
	return nil
}

// trusts checks the trust field: absent for an editor without workspace trust, correct for one with it.
func (r *run) trusts() error {
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	says := func(want string) error {
		last := "another"
		err := r.comesTo(heard, func(c *client.Context) bool { last = trust(c); return last == want })
		if err != nil {
			return fmt.Errorf("isTrusted is %s where the editor's is %s: %w", cmp.Or(last, "left out"), cmp.Or(want, "none"), err)
		}
		return nil
	}
	err = r.driven(`{"trust":false}`)
	switch {
	case errors.Is(err, ErrUnsupported):
		return says("")
	case err != nil:
		return err
	}
	if err := says("false"); err != nil {
		return err
	}
	if err := r.driven(`{"trust":null}`); err != nil {
		return err
	}
	return says("")
}

// manyOutcomes decides diffs in a session without a stream.
func (r *run) manyOutcomes() error {
	if err := r.driven(`{"reset":true}`); err != nil {
		return err
	}
	id, _, err := r.rawSession()
	if err != nil {
		return err
	}
	const n = 15
	for i := range n {
		path, _ := json.Marshal(filepath.Join(r.dir, fmt.Sprintf("%02d.txt", i)))
		answer, err := r.ask(id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"filePath":%s,"newContent":"x"}}}`, i+1, wire.ToolOpenDiff, path))
		if err != nil {
			return err
		}
		if strings.Contains(answer, `"isError":true`) {
			return &refusedError{clip(answer)}
		}
		if err := r.driven(`{"reject":true}`); err != nil {
			return err
		}
	}
	events, err := r.stream(id, n+1)
	if err != nil {
		return err
	}
	outcomes, _ := split(parseEvents(events))
	for i, e := range outcomes {
		if want := fmt.Sprintf("%02d.txt", i); filepath.Base(e.path()) != want {
			return fmt.Errorf("outcome %d is of %s", i+1, filepath.Base(e.path()))
		}
	}
	if len(outcomes) != n {
		return fmt.Errorf("%d of %d outcomes have come", len(outcomes), n)
	}
	return nil
}

// stream reads a session's stream until n messages have come, and checks that no more follow.
func (r *run) stream(session string, n int) (string, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.t.Addr+"/mcp", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+r.t.Token)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", session)
	res, err := r.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	end := context.AfterFunc(ctx, func() { res.Body.Close() })
	defer end()
	var b strings.Builder
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		b.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "data: ") {
			if n--; n == 0 { // nothing more may come
				time.AfterFunc(contextDelay, cancel)
			}
		}
	}
	return b.String(), nil
}
