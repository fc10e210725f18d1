package contract

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// maxMessage bounds a message from a companion, in bytes.
const maxMessage = 80 << 20

// A wire carries whole messages over a connection. One goroutine reads, another writes.
type wire interface {
	read() ([]byte, error)
	write(message []byte) error
}

// framed is Codex's wire: the length as four bytes, the lowest first, and the message (SPEC CX-1).
type framed struct {
	in  io.Reader
	out io.Writer
}

func (f framed) read() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(f.in, length[:]); err != nil {
		return nil, err
	}
	return readN(f.in, uint64(binary.LittleEndian.Uint32(length[:])))
}

func (f framed) write(message []byte) error {
	_, err := f.out.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}

// webSocket is the client's end of a WebSocket whose handshake is over (RFC 6455).
type webSocket struct {
	in  io.Reader
	out io.Writer
}

// The kinds of a WebSocket's frames that matter here.
const (
	textFrame  = 1
	closeFrame = 8
	pingFrame  = 9
	pongFrame  = 10
)

func (w webSocket) read() (message []byte, err error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(w.in, head[:]); err != nil {
			return nil, err
		}
		n := uint64(head[1] & 0x7f)
		if long := map[uint64]int{126: 2, 127: 8}[n]; long > 0 {
			b := make([]byte, 8)
			if _, err := io.ReadFull(w.in, b[8-long:]); err != nil {
				return nil, err
			}
			n = binary.BigEndian.Uint64(b)
		}
		part, err := readN(w.in, n)
		if len(message)+len(part) > maxMessage {
			err = errors.New("a message without an end")
		}
		if err != nil {
			return nil, err
		}
		switch kind := head[0] & 0x0f; kind {
		case closeFrame:
			return nil, io.EOF
		case pingFrame:
			if err := w.frame(pongFrame, part); err != nil {
				return nil, err
			}
		case pongFrame:
		default:
			message = append(message, part...)
			if last := head[0]&0x80 != 0; last {
				return message, nil
			}
		}
	}
}

func (w webSocket) write(message []byte) error { return w.frame(textFrame, message) }

// frame writes one frame. Its mask is all zero, which leaves the bytes as they are.
func (w webSocket) frame(kind byte, data []byte) error {
	head := []byte{0x80 | kind}
	switch n := len(data); {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 0x80|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 0x80|127), uint64(n))
	}
	_, err := w.out.Write(append(append(head, 0, 0, 0, 0), data...))
	return err
}

func readN(r io.Reader, n uint64) ([]byte, error) {
	if n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	var b bytes.Buffer // a length alone makes no memory
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// talk reads messages from a connection until it ends.
func (p *player) talk(conn net.Conn, w wire) {
	_ = conn.SetDeadline(time.Time{})
	p.streams = append(p.streams, conn)
	p.wire, p.heard = w, make(chan string, 1024)
	go func(heard chan<- string) {
		defer close(heard)
		for {
			b, err := w.read()
			if err != nil {
				return
			}
			heard <- string(b)
		}
	}(p.heard)
}

// send sends each line as one message. The line (end) ends the connection. For Codex, which opens a connection for each question, it
// opens one.
func (p *player) send(text string) error {
	if p.manner.asks {
		conn, err := p.dial()
		if err != nil {
			return err
		}
		p.talk(conn, framed{conn, conn})
	}
	if p.wire == nil {
		return errors.New("no socket is open")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "(end)" {
			_ = p.streams[len(p.streams)-1].Close()
		} else if err := p.wire.write([]byte(p.fill(line))); err != nil {
			return err
		}
	}
	return nil
}

// messages waits for n messages, and at the last look whether another one comes: a line each, answers first, by their number. A context
// like the one before is left out, since companions repeat it, and so is the question for the session's folders, which a companion may ask.
func (p *player) messages(n int, last bool) string {
	var all []string
	wait := p.target.Patience
	if n == 0 {
		wait = silence
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for ended := false; !ended; {
		select {
		case m, ok := <-p.heard:
			if !ok {
				m, ended = "(end)", true
			}
			if strings.Contains(m, `"method":"selection_changed"`) {
				if m == p.told {
					continue
				}
				p.told = m
			}
			if strings.Contains(m, `"method":"roots/list"`) {
				continue
			}
			all = append(all, p.tidy(m)+"\n")
			if len(all) >= n && !last {
				ended = true
			} else if len(all) >= n {
				timer.Reset(silence)
			}
		case <-timer.C:
			ended = true
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return strings.Join(all, "")
}

// rank is the number of an answer; notifications come behind, and the end last.
func rank(message string) float64 {
	var m struct{ ID *float64 }
	switch err := json.Unmarshal([]byte(message), &m); {
	case err != nil:
		return 2e9
	case m.ID == nil:
		return 1e9
	}
	return *m.ID
}

const (
	upgrade = "GET / HTTP/1.1\nHost: {{host}}\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: cG9sbHV4IGlzIHBsYXllZA==\n" +
		"Sec-WebSocket-Protocol: mcp\nX-Claude-Code-Ide-Authorization: {{token}}\n\n"
	greeting = `{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"claude-code","version":"2.1.330"}},"jsonrpc":"2.0","id":0}` + "\n"
	greeted  = `{"method":"notifications/initialized","jsonrpc":"2.0"}` + "\n" + `{"method":"ide_connected","params":{"pid":4711},"jsonrpc":"2.0"}` + "\n"
)

// join is what Claude Code does first; it ends with the first context.
func (p *player) join() error {
	answer, err := p.request(upgrade)
	if err == nil && p.wire == nil {
		err = fmt.Errorf("no socket opened:\n%s", answer)
	}
	if err != nil {
		return err
	}
	for _, text := range []string{greeting, greeted} {
		if err := p.send(text); err != nil {
			return err
		}
		if got := p.messages(1, false); strings.Count(got, "\n") != 1 {
			return fmt.Errorf("the companion says %q", got)
		}
	}
	return nil
}

// upgraded makes the wire of a connection that has become a WebSocket.
func (p *player) upgraded(conn net.Conn, in *bufio.Reader) { p.talk(conn, webSocket{in, conn}) }
