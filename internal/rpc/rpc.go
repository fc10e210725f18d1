// Package rpc frames JSON-RPC messages on a byte stream, and bounds everything that the other side controls.
//
// It reads two framings, because editors use both: Content-Length headers as in LSP, and one JSON value per line. The
// first byte of a message decides which it is. Answers use the framing received last.
package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds that apply whatever Options say; sizes in bytes.
const (
	// MaxBody bounds one message (SPEC A-4).
	MaxBody = 64 << 20
	// maxHeader bounds all header lines of a message together.
	maxHeader = 8 << 10
	// maxBlank bounds the white space between two messages.
	maxBlank = 4 << 10
	// writeTimeout bounds how long a peer may leave a message unread, if the stream supports deadlines.
	writeTimeout = 10 * time.Second
)

// ErrFraming means bytes that are not a message in either framing, or that exceed the bounds. The stream cannot be
// used afterwards.
var ErrFraming = errors.New("not a JSON-RPC message")

// A Framing is how messages are separated on a stream.
type Framing int32

const (
	// Lines: one JSON value per line, without line ends inside.
	Lines Framing = iota
	// Headers: Content-Length headers, as in LSP.
	Headers
)

// Options configure a Channel; nil means the zero value.
type Options struct {
	// First is the framing for messages sent before the first one is received.
	First Framing
	// MaxBody bounds a received message in bytes; 0 or a larger value means the package's MaxBody.
	MaxBody int
}

// A Channel carries whole messages. It implements jrpc2's channel.Channel: one goroutine may send while another
// receives, and any goroutine may call Close.
type Channel struct {
	r       *bufio.Reader
	w       io.WriteCloser
	maxBody int
	framing atomic.Int32
	out     bytes.Buffer // for sendPieces, so that a small message is one write
}

// NewChannel frames messages over r and w. Close closes w; for a connection this must end a waiting Recv.
func NewChannel(r io.Reader, w io.WriteCloser, o *Options) *Channel {
	c := &Channel{r: bufio.NewReader(r), w: w, maxBody: MaxBody}
	if o != nil {
		c.framing.Store(int32(o.First))
		if o.MaxBody > 0 && o.MaxBody < MaxBody {
			c.maxBody = o.MaxBody
		}
	}
	return c
}

// oneWrite is the size in bytes up to which a piece is copied, to be written together with its neighbours. A larger one is written
// by itself.
const oneWrite = 64 << 10

// Send writes one message, a single JSON value, and returns once it is written.
func (c *Channel) Send(msg []byte) error { return c.sendPieces(msg) }

// sendPieces is Send for a message in pieces.
func (c *Channel) sendPieces(pieces ...[]byte) error {
	c.out.Reset()
	headers := Framing(c.framing.Load()) == Headers
	if headers {
		fmt.Fprintf(&c.out, "Content-Length: %d\r\n\r\n", message(pieces).size())
	}
	for _, piece := range pieces {
		if !headers {
			piece = oneLine(piece)
		}
		if len(piece) <= oneWrite {
			c.out.Write(piece)
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
		if err := c.write(piece); err != nil {
			return err
		}
	}
	if !headers {
		c.out.WriteByte('\n')
	}
	return c.flush()
}

// flush writes what has gathered in out.
func (c *Channel) flush() error {
	defer c.out.Reset()
	return c.write(c.out.Bytes())
}

func (c *Channel) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if d, ok := c.w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(writeTimeout)) // files have no deadlines
	}
	_, err := c.w.Write(b)
	return err
}

// oneLine returns msg without line ends. In JSON they are only white space, because strings escape them.
func oneLine(msg []byte) []byte {
	if bytes.IndexByte(msg, '\n') < 0 && bytes.IndexByte(msg, '\r') < 0 {
		return msg
	}
	line := bytes.Clone(msg)
	for i, b := range line {
		if b == '\n' || b == '\r' {
			line[i] = ' '
		}
	}
	return line
}

// Recv reads the next JSON-RPC 2.0 message or batch. It returns io.EOF when the stream ends between two messages.
func (c *Channel) Recv() ([]byte, error) {
	msg, err := c.Next()
	if err != nil {
		return nil, err
	}
	if err := check(msg); err != nil {
		return nil, err
	}
	return msg, nil
}

// Next reads the bytes of the next message, valid or not.
func (c *Channel) Next() ([]byte, error) {
	first, err := c.skipBlank()
	if err != nil {
		return nil, err
	}
	if first == '{' || first == '[' {
		c.framing.Store(int32(Lines))
		return c.line()
	}
	if first != 'C' && first != 'c' { // Content-Length or Content-Type
		return nil, fmt.Errorf("%w: it starts with the byte %q", ErrFraming, first)
	}
	c.framing.Store(int32(Headers))
	n, err := c.header()
	if err != nil {
		return nil, unexpected(err)
	}
	return c.body(n)
}

// Close ends the stream.
func (c *Channel) Close() error { return c.w.Close() }

func (c *Channel) skipBlank() (byte, error) {
	for range maxBlank {
		b, err := c.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return b, c.r.UnreadByte()
	}
	return 0, fmt.Errorf("%w: %d blanks", ErrFraming, maxBlank)
}

func (c *Channel) line() ([]byte, error) {
	var msg []byte
	for {
		part, err := c.r.ReadSlice('\n')
		if len(msg)+len(part) > c.maxBody {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrFraming, c.maxBody)
		}
		msg = append(msg, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(msg, "\r\n"), nil
		case errors.Is(err, io.EOF):
			return msg, nil // the last line may lack its line end
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// header reads the header lines, including the final empty one, and returns the announced length.
func (c *Channel) header() (int, error) {
	length, read := -1, 0
	for {
		line, err := c.r.ReadSlice('\n')
		read += len(line)
		if errors.Is(err, bufio.ErrBufferFull) || read > maxHeader {
			return 0, fmt.Errorf("%w: headers of more than %d bytes", ErrFraming, read)
		}
		if err != nil {
			return 0, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return 0, fmt.Errorf("%w: a header without a colon", ErrFraming)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
		if err != nil || length >= 0 && int(n) != length {
			return 0, fmt.Errorf("%w: the length %.20q", ErrFraming, value)
		}
		length = int(n)
	}
	switch {
	case length < 0:
		return 0, fmt.Errorf("%w: no Content-Length", ErrFraming)
	case length > c.maxBody:
		return 0, fmt.Errorf("%w: %d bytes announced, at most %d are taken", ErrFraming, length, c.maxBody)
	}
	return length, nil
}

// body reads n bytes. Memory grows with the bytes that arrive, not with the announced length.
func (c *Channel) body(n int) ([]byte, error) {
	buf := make([]byte, min(n, 128<<10))
	for read := 0; ; {
		if _, err := io.ReadFull(c.r, buf[read:]); err != nil {
			return nil, unexpected(err)
		}
		if read = len(buf); read == n {
			return buf, nil
		}
		next := make([]byte, min(n, 16*read))
		copy(next, buf)
		buf = next
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
