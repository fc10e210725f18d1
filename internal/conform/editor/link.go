package editor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/rpc"
)

// A message is one of the plugin's.
type message struct {
	Version string           `json:"jsonrpc"`
	ID      json.RawMessage  `json:"id"`
	Method  string           `json:"method"`
	Params  json.RawMessage  `json:"params"`
	Result  *json.RawMessage `json:"result"`
	Error   *rpc.Error       `json:"error"`
	at      time.Time
}

// A link is one connection of the plugin, from the start of its pollux to the end of that.
//
// Goroutine: the reader, from newLink until the connection ends.
type link struct {
	p       *play
	conn    net.Conn
	ch      *rpc.Channel
	headers bool // LSP framing
	args    []string
	hello   hello
	writing sync.Mutex

	mu      sync.Mutex // guards the fields below
	heard   []message
	changed chan struct{} // closed with each message and at the end
	err     error         // why the connection has ended; set once
	count   int
}

// newLink reads what the stand-in says first, and then the plugin's messages.
func newLink(conn net.Conn, p *play) (*link, error) {
	_ = conn.SetReadDeadline(time.Now().Add(p.o.Wait))
	in := bufio.NewReader(conn)
	line, err := in.ReadBytes('\n')
	l := &link{p: p, conn: conn, changed: make(chan struct{})}
	if err == nil {
		err = json.Unmarshal(line, &l.args)
	}
	if err == nil && (len(l.args) == 0 || l.args[0] != "lsp") {
		err = fmt.Errorf("pollux %q", l.args)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	go l.read(in)
	return l, nil
}

func (l *link) read(in *bufio.Reader) {
	first, err := in.Peek(1)
	l.mu.Lock()
	l.headers = err == nil && (first[0] == 'C' || first[0] == 'c')
	l.ch = rpc.NewChannel(in, l.conn, nil)
	l.mu.Unlock()
	for {
		raw, err := l.ch.Next()
		if err != nil {
			if errors.Is(err, rpc.ErrFraming) {
				l.p.fault(everyMessage, "%v", err)
			}
			l.end(err)
			return
		}
		m := message{at: time.Now()}
		if err := json.Unmarshal(raw, &m); err != nil {
			l.p.fault(everyMessage, "a message that is no JSON object: %.200q", raw)
			continue
		}
		l.p.judge(l, m)
		l.mu.Lock()
		l.heard = append(l.heard, m)
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
		l.p.answer(l, m)
	}
}

func (l *link) end(err error) {
	l.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("the plugin has ended its pollux (%w)", err)
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func (l *link) gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil
}

// mark is the place behind everything heard so far.
func (l *link) mark() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.heard)
}

// since returns the messages behind a mark.
func (l *link) since(mark int) []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]message(nil), l.heard[mark:]...)
}

// wait returns the first message behind a mark that fits.
func (l *link) wait(mark int, within time.Duration, what string, fits func(message) bool) (message, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		l.mu.Lock()
		list, changed, ended := l.heard[mark:], l.changed, l.err
		l.mu.Unlock()
		for _, m := range list {
			if fits(m) {
				return m, nil
			}
		}
		mark += len(list)
		if ended != nil {
			return message{}, ended
		}
		select {
		case <-changed:
		case <-timer.C:
			return message{}, fmt.Errorf("within %v there comes no %s", within, what)
		case <-l.p.ctx.Done():
			return message{}, l.p.ctx.Err()
		}
	}
}

// frame returns the bytes of a message in the plugin's own framing.
func (l *link) frame(body []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.headers {
		return append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
	}
	return append(body, '\n')
}

// write writes bytes as they are. A plugin that does not read for a minute is given up.
func (l *link) write(data []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(max(l.p.o.Wait, time.Minute)))
	_, err := l.conn.Write(data)
	return err
}

func (l *link) send(m map[string]any) error {
	m["jsonrpc"] = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return l.write(l.frame(body))
}

func (l *link) notify(method string, params any) error {
	return l.send(map[string]any{"method": method, "params": params})
}

// id makes the id of a request: numbers, as pollux does.
func (l *link) id() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	return l.count
}

// call asks the plugin. The error is an *rpc.Error when the plugin has answered with one.
func (l *link) call(method string, params any) (json.RawMessage, error) {
	id, mark := l.id(), l.mark()
	if err := l.send(map[string]any{"id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	return l.answerTo(strconv.Itoa(id), mark, method)
}

// answerTo waits for the answer to a request.
func (l *link) answerTo(id string, mark int, method string) (json.RawMessage, error) {
	m, err := l.wait(mark, l.p.o.Wait, "answer to "+method, func(m message) bool { return m.Method == "" && string(m.ID) == id })
	switch {
	case err != nil:
		return nil, err
	case m.Error != nil:
		return nil, m.Error
	case m.Result == nil:
		return json.RawMessage("null"), nil
	}
	return *m.Result, nil
}

// code returns the code of an error that the plugin has answered with, 0 for none.
func code(err error) int {
	var e *rpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// lives makes sure that the plugin still answers.
func (l *link) lives() error {
	_, err := l.call("pollux/conform", map[string]any{})
	if code(err) == rpc.CodeNoMethod {
		return nil
	}
	if err == nil {
		return errors.New("it answers a request that it cannot know, as if it had done it")
	}
	return fmt.Errorf("afterwards: %w", err)
}
