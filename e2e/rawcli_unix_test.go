//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A rawCLI is one session of a CLI over HTTP, for tests that decide about each request and each break of the stream themselves.
type rawCLI struct {
	client  *http.Client // its connections stay open, as a CLI's
	url     string
	host    string // the companion's own name
	token   string
	session string
	last    string // Last-Event-ID
}

const initializes = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`

// newRawCLI returns one that speaks through way to the companion at port.
func newRawCLI(way string, port int, token string) *rawCLI {
	return &rawCLI{client: &http.Client{Transport: &http.Transport{}}, url: "http://" + way + "/mcp", host: fmt.Sprintf("127.0.0.1:%d", port), token: token}
}

func (w *rawCLI) request(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Host = w.host
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	if method == http.MethodGet && w.last != "" {
		req.Header.Set("Last-Event-Id", w.last)
	}
	return w.client.Do(req)
}

// do sends a request and reads the whole answer; the error is none of the companion's.
func (w *rawCLI) do(ctx context.Context, method, body string) (*http.Response, []byte, error) {
	res, err := w.request(ctx, method, body)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res, data, err
}

// join opens the session.
func (w *rawCLI) join(ctx context.Context) error {
	res, data, err := w.do(ctx, http.MethodPost, initializes)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	if err == nil {
		w.session = res.Header.Get("Mcp-Session-Id")
	}
	return err
}

// tool calls a tool; failed says that its text is an error's.
func (w *rawCLI) tool(ctx context.Context, name string, args map[string]any) (text string, failed bool, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return "", false, err
	}
	res, data, err := w.do(ctx, http.MethodPost, string(body))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
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
		err = errors.New(answer.Error.Message)
	}
	if len(answer.Result.Content) > 0 {
		text = answer.Result.Content[0].Text
	}
	return text, answer.Result.IsError, err
}

// listen reads a stream of events until it breaks, and keeps the id of the last whole one for the next stream, as the CLI's library
// does. The status is 0 when there was no answer.
func (w *rawCLI) listen(ctx context.Context, each func(data string)) (status int) {
	res, err := w.request(ctx, http.MethodGet, "")
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return res.StatusCode
	}
	var id, data string
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return res.StatusCode
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "":
			if data != "" {
				each(data)
			}
			if id != "" {
				w.last = id
			}
			id, data = "", ""
		}
	}
}
