//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A chaosCLI is one session of a CLI's.
type chaosCLI struct {
	x       *chaos
	url     string
	host    string // the companion's own name
	session string
	token   string
	dead    bool // killed for good; guarded by x.mu
	drop    context.CancelFunc
	last    string // Last-Event-ID
	ended   chan struct{}
}

func tokenOf(t *testing.T, c *companion) string {
	t.Helper()
	data, err := os.ReadFile(c.DiscoveryFile)
	var file struct{ AuthToken string }
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.AuthToken
}

func (x *chaos) newCLI(c chaosLife) {
	cli := &chaosCLI{x: x, url: "http://" + x.way + "/mcp", host: fmt.Sprintf("127.0.0.1:%d", c.port), ended: make(chan struct{})}
	cli.token = c.token // that of this start: an older one opens no session (SPEC A-1)
	header, _, err := cli.post(x.ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	if err != nil {
		x.t.Fatal(err)
	}
	cli.session = header.Get("Mcp-Session-Id")
	x.cli = cli
	go cli.listen()
}

// killCLI ends the CLI with its diffs open; nobody may hear of them any more.
func (x *chaos) killCLI() {
	x.mu.Lock()
	x.cli.dead = true
	x.killed++
	x.cli.drop()
	x.mu.Unlock()
	<-x.cli.ended
}

func (cli *chaosCLI) request(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, cli.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Host = cli.host
	req.Header.Set("Authorization", "Bearer "+cli.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if cli.session != "" {
		req.Header.Set("Mcp-Session-Id", cli.session)
	}
	if method == http.MethodGet && cli.last != "" {
		req.Header.Set("Last-Event-Id", cli.last)
	}
	return http.DefaultClient.Do(req)
}

func (cli *chaosCLI) post(ctx context.Context, body string) (http.Header, []byte, error) {
	res, err := cli.request(ctx, http.MethodPost, body)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	return res.Header, data, err
}

// listen keeps a stream open, and comes back with what it has read as the CLI's library does.
func (cli *chaosCLI) listen() {
	defer close(cli.ended)
	for cli.x.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(cli.x.ctx)
		cli.x.mu.Lock()
		dead := cli.dead
		cli.drop = cancel // by who has the lock
		cli.x.mu.Unlock()
		if dead {
			cancel()
			return
		}
		if res, err := cli.request(ctx, http.MethodGet, ""); err == nil {
			cli.read(res)
		}
		cancel()
		time.Sleep(time.Duration(cli.x.n(20)) * time.Millisecond)
	}
}

func (cli *chaosCLI) read(res *http.Response) {
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		if cli.x.ctx.Err() == nil && res.StatusCode != http.StatusServiceUnavailable {
			cli.x.t.Errorf("the stream: %s", res.Status)
		}
		return
	}
	var id, data string
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "":
			if data != "" {
				cli.notified(data)
			}
			if id != "" {
				cli.last = id
			}
			id, data = "", ""
		}
	}
}

func (cli *chaosCLI) notified(data string) {
	var m struct {
		Method string
		Params struct{ FilePath, Content string }
	}
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		cli.x.t.Errorf("%s: %v", data, err)
	}
	if m.Method != accepted && m.Method != rejected {
		return
	}
	cli.x.mu.Lock()
	defer cli.x.mu.Unlock()
	f := cli.x.diffs[m.Params.FilePath]
	if f == nil {
		cli.x.t.Errorf("an outcome of nothing: %s", data)
		return
	}
	word := ""
	if m.Method == accepted {
		word = m.Params.Content
	}
	f.heard, f.gone = append(f.heard, word), time.Now()
	cli.x.heard++
	switch {
	case f.cli != cli:
		cli.x.t.Errorf("%s: heard by another session", f.path)
	case len(f.heard) > 1:
		cli.x.t.Errorf("%s: heard twice: %q", f.path, f.heard)
	case f.takenBack:
		cli.x.t.Errorf("%s: heard after it was taken back", f.path)
	case f.decided != nil && *f.decided != word:
		cli.x.t.Errorf("%s: decided %q, heard %q", f.path, brief(*f.decided), brief(word))
	case f.decided == nil && !slices.Contains(f.tried, word):
		cli.x.t.Errorf("%s: heard %q, which nobody decided", f.path, brief(word))
	}
}

// propose is the CLI: it opens diffs and takes some back.
func (x *chaos) propose(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(x.n(5000)) * time.Microsecond)
		x.mu.Lock()
		open := 0
		var mine []*fate
		for _, f := range x.diffs {
			if f.cli == x.cli && f.asked && len(f.heard) == 0 && !f.takenBack {
				open++
				if f.told && !f.takingBack {
					mine = append(mine, f)
				}
			}
		}
		x.mu.Unlock()
		switch {
		case len(mine) > 0 && x.n(6) == 0:
			x.takeBack(ctx, mine[x.n(len(mine))])
		case open < 20:
			x.openOne(ctx)
		}
	}
}

func (x *chaos) tool(ctx context.Context, cli *chaosCLI, name string, args map[string]any) (text string, isError bool, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return "", false, err
	}
	_, data, err := cli.post(ctx, string(body))
	if err != nil {
		return "", false, err
	}
	var answer struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error *struct{ Message string }
	}
	if err = json.Unmarshal(data, &answer); err == nil && answer.Error != nil {
		err = fmt.Errorf("%s", answer.Error.Message)
	}
	if len(answer.Result.Content) > 0 {
		text = answer.Result.Content[0].Text
	}
	return text, answer.Result.IsError, err
}

func (x *chaos) openOne(ctx context.Context) {
	proposed := x.text()
	x.mu.Lock()
	f := &fate{cli: x.cli, path: x.b.path(fmt.Sprintf("f%d.txt", len(x.diffs))), proposed: proposed, text: proposed, asked: true}
	x.diffs[f.path] = f
	if x.leaving {
		f.tried = []string{""}
	}
	x.mu.Unlock()
	text, refused, err := x.tool(ctx, f.cli, "openDiff", map[string]any{"filePath": f.path, "newContent": proposed})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err != nil: // it may be open or not
	case refused && (x.leaving || strings.Contains(text, "no editor page is open")):
		f.asked = false // the reviewer is not there yet, or the editor has gone
	case refused:
		x.t.Errorf("openDiff: %s", text)
	default:
		f.told = true
		x.opened++
	}
}

func (x *chaos) takeBack(ctx context.Context, f *fate) {
	x.mu.Lock()
	f.takingBack = true
	x.mu.Unlock()
	text, missing, err := x.tool(ctx, f.cli, "closeDiff", map[string]any{"filePath": f.path, "suppressNotification": true})
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if missing {
		if len(f.heard) == 0 && f.decided == nil && len(f.tried) == 0 {
			x.t.Errorf("%s: vanished: closeDiff says %s", f.path, text)
		}
		return
	}
	f.takenBack, f.gone = true, time.Now()
	x.withdrawn++
	var got struct{ Content, FinalContent *string }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		x.t.Errorf("closeDiff: %v", err)
		return
	}
	final := got.Content
	if final == nil {
		final = got.FinalContent
	}
	if final == nil || *final != f.text && !slices.Contains(f.texts, *final) && !slices.Contains(f.tried, *final) && (f.decided == nil || *f.decided != *final) {
		x.t.Errorf("%s: altered: taken back with %q, it was %q", f.path, brief(text), brief(f.text))
	}
}
