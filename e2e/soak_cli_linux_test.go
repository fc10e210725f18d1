package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// A soakCLI is one session of an agent's, with a stream.
type soakCLI struct {
	*rawCLI
	s        *soak
	ctx      context.Context // ends when the agent goes
	end      context.CancelFunc
	outcomes chan string
	over     chan struct{} // closed when its stream is not read any more
}

// join opens a session; nil when there is no companion just now.
func (s *soak) join(way string) *soakCLI {
	s.mu.Lock()
	c := &soakCLI{rawCLI: newRawCLI(way, s.port, s.token), s: s, outcomes: make(chan string, 100), over: make(chan struct{})}
	s.mu.Unlock()
	c.ctx, c.end = context.WithCancel(s.ctx)
	ctx, done := context.WithTimeout(c.ctx, second(60))
	defer done()
	if err := c.rawCLI.join(ctx); err != nil {
		c.end()
		c.client.CloseIdleConnections()
		if !s.many {
			s.t.Errorf("no session: %v", err)
		}
		return nil
	}
	go c.stay()
	return c
}

// leave ends the session, or just goes.
func (c *soakCLI) leave(polite bool) {
	c.end()
	if polite {
		ctx, done := context.WithTimeout(c.s.ctx, second(60))
		_, _, _ = c.do(ctx, http.MethodDelete, "")
		done()
	}
	c.client.CloseIdleConnections()
	<-c.over
}

// stay reads the stream, and opens it again when it breaks.
func (c *soakCLI) stay() {
	defer close(c.over)
	for c.ctx.Err() == nil {
		c.listen(c.ctx, c.notified)
		select {
		case <-c.ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *soakCLI) notified(data string) {
	var m struct {
		Method string
		Params struct{ FilePath string }
	}
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		c.s.t.Errorf("%s: %v", data, err)
	}
	if m.Method == accepted || m.Method == rejected {
		c.outcomes <- m.Params.FilePath
	}
}

// propose opens a diff and waits until it is decided, or takes it back. It is false when the session cannot go on: in the last of
// many lives its companion may have ended for good, or forgotten it.
func (c *soakCLI) propose(path string, n int64) bool {
	text := strings.Repeat(fmt.Sprintf("line %d\n", n), 1+int(n%97)*40)
	if n%200 == 0 {
		text = strings.Repeat(text, 1+(1<<20)/len(text))
	}
	if err := c.call("openDiff", map[string]any{"filePath": path, "newContent": text}); err != nil {
		return c.broken("openDiff", err)
	}
	if strings.Contains(path, "back") {
		if err := c.call("closeDiff", map[string]any{"filePath": path}); err != nil {
			return c.broken("closeDiff", err)
		}
		c.s.diffs.Add(1)
		return true
	}
	for end := time.After(second(60)); ; {
		select {
		case heard := <-c.outcomes:
			if heard == path {
				c.s.diffs.Add(1)
				return true
			}
		case <-end:
			return c.broken("openDiff", errors.New("no decision in a minute"))
		}
	}
}

// broken reports an error in one life, where nothing may fail.
func (c *soakCLI) broken(what string, err error) bool {
	if !c.s.many && c.s.ctx.Err() == nil {
		c.s.t.Errorf("%s: %v", what, err)
	}
	return false
}

func (c *soakCLI) call(tool string, args map[string]any) error {
	ctx, done := context.WithTimeout(c.ctx, second(60))
	defer done()
	text, failed, err := c.tool(ctx, tool, args)
	if failed {
		err = errors.New(text)
	}
	return err
}
