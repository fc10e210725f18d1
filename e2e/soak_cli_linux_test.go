package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A soakCLI is one session of an agent's, with a stream.
type soakCLI struct {
	s        *soak
	client   *http.Client
	url      string
	host     string // the companion's own name
	token    string
	session  string
	last     string // Last-Event-ID
	outcomes chan string
	quit     chan struct{} // closed when the agent goes
	over     chan struct{} // closed when its stream is not read any more
}

// join opens a session; nil when there is no companion just now.
func (s *soak) join(way string) *soakCLI {
	c := &soakCLI{s: s, client: &http.Client{Transport: &http.Transport{}, Timeout: second(60)}, url: "http://" + way + "/mcp", outcomes: make(chan string, 100), quit: make(chan struct{}), over: make(chan struct{})}
	s.mu.Lock()
	c.host, c.token = fmt.Sprintf("127.0.0.1:%d", s.port), s.token
	s.mu.Unlock()
	res, _, err := c.do(http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	if err != nil {
		c.client.CloseIdleConnections()
		if !s.many {
			s.t.Errorf("no session: %v", err)
		}
		return nil
	}
	c.session = res.Header.Get("Mcp-Session-Id")
	go c.listen()
	return c
}

func (c *soakCLI) request(method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.s.ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Host = c.host
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if method == http.MethodGet && c.last != "" {
		req.Header.Set("Last-Event-Id", c.last)
	}
	return c.client.Do(req)
}

func (c *soakCLI) do(method, body string) (*http.Response, []byte, error) {
	res, err := c.request(method, body)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	return res, data, err
}

// leave ends the session, or just goes.
func (c *soakCLI) leave(polite bool) {
	close(c.quit)
	if polite {
		_, _, _ = c.do(http.MethodDelete, "")
	}
	c.client.CloseIdleConnections()
	<-c.over
}

// listen reads the stream, and opens it again when it breaks.
func (c *soakCLI) listen() {
	defer close(c.over)
	stream := *c.client
	stream.Timeout = 0
	for {
		res, err := (&soakCLI{s: c.s, client: &stream, url: c.url, host: c.host, token: c.token, session: c.session, last: c.last}).request(http.MethodGet, "")
		if err == nil {
			done := make(chan struct{})
			go func() {
				select {
				case <-c.quit:
					res.Body.Close()
				case <-done:
				}
			}()
			c.read(res.Body)
			close(done)
			res.Body.Close()
		}
		select {
		case <-c.quit:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *soakCLI) read(body io.Reader) {
	in := bufio.NewReader(body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			c.last = id
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
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
}

// propose opens a diff and waits until it is decided, or takes it back. It is false when the session cannot go on: in the last of
// many lives its companion may have ended for good, or forgotten it.
func (c *soakCLI) propose(path string, n int64) bool {
	text := strings.Repeat(fmt.Sprintf("line %d\n", n), 1+int(n%97)*40)
	if n%200 == 0 {
		text = strings.Repeat(text, 1+(1<<20)/len(text))
	}
	if err := c.tool("openDiff", map[string]any{"filePath": path, "newContent": text}); err != nil {
		return c.broken("openDiff", err)
	}
	if strings.Contains(path, "back") {
		if err := c.tool("closeDiff", map[string]any{"filePath": path}); err != nil {
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

func (c *soakCLI) tool(name string, args map[string]any) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return err
	}
	_, data, err := c.do(http.MethodPost, string(body))
	if err == nil && strings.Contains(string(data[:min(len(data), 1000)]), `"isError":true`) {
		err = fmt.Errorf("%s", data)
	}
	return err
}
