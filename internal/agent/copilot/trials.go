package copilot

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// undecided is how long an open_diff is watched that nobody decides.
const undecided = 300 * time.Millisecond

// Trials are what pollux conform tries of Copilot CLI's wire. They open diffs, and take them away again.
func Trials() []finding.Trial {
	return []finding.Trial{
		{Name: "GC-1/its token opens", About: "a session opens at the private socket with the lock's token", Try: lockfile.Joined(Dial, func(context.Context, finding.Door, *Conn) error { return nil })},
		{Name: "GC-1/another token does not", About: "a request that brings another token is refused with 401", Try: lockfile.OtherToken(Dial)},
		{Name: "GC-5/tools", About: "the four tools are offered", Try: lockfile.Joined(Dial, offered)},
		{Name: "GC-5/first context", About: "what the user looks at comes without being asked for", Try: lockfile.Joined(Dial, firstContext)},
		{Name: "GC-3/open_diff waits", About: "open_diff is answered when it is decided, and what nobody accepts is never answered as accepted", Try: lockfile.Joined(Dial, waits)},
	}
}

func offered(ctx context.Context, _ finding.Door, c *Conn) error {
	_, err := lockfile.Offers(ctx, c, maps.Keys((&Dialect{}).tools()))
	return err
}

func firstContext(ctx context.Context, _ finding.Door, c *Conn) error {
	params, err := c.Context(ctx)
	if err != nil {
		return fmt.Errorf("no selection_changed has come: %w", err)
	}
	_, err = Told(params)
	return err
}

// A reply is the answer of a tool.
type reply struct {
	IsError bool
	Content []struct{ Text string }
}

func (c *Conn) tool(ctx context.Context, name string, args map[string]string) (r reply, err error) {
	data, err := c.Call(ctx, "tools/call", map[string]any{"name": name, "arguments": args})
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func waits(ctx context.Context, d finding.Door, c *Conn) error {
	const tab = "[pollux] waits"
	type answer struct {
		reply
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		r, err := c.tool(ctx, toolOpen, map[string]string{argPath: filepath.Join(d.Dir, "waits.txt"), argContents: "proposed\n", argTab: tab})
		answers <- answer{r, err}
	}()
	select {
	case a := <-answers:
		if a.err == nil && a.IsError {
			return finding.ErrNoDiffs
		}
		return fmt.Errorf("answered with %v before anybody has decided (%w)", a.Content, a.err)
	case <-time.After(undecided):
	}
	if r, err := c.tool(ctx, toolClose, map[string]string{argTab: tab}); err != nil || r.IsError {
		return fmt.Errorf("close_diff: %v, %w", r.Content, err)
	}
	a := <-answers
	if a.err == nil && !a.IsError && (len(a.Content) == 0 || !strings.Contains(a.Content[0].Text, `"REJECTED"`)) {
		return fmt.Errorf("a diff that was taken away is answered with %v; only an error or REJECTED writes nothing", a.Content)
	}
	return nil
}
