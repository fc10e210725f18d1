package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp/jsonrpc"
)

// stopWait is how long a started companion has to end after its input is closed.
const stopWait = 2 * time.Second

// A stdioSession is one MCP session with a program started for it. Goroutines: one reads the program's output; close
// ends the program and awaits it.
type stdioSession struct {
	owner owner
	cmd   *exec.Cmd
	in    io.WriteCloser
	done  chan struct{} // closed when the output has ended
	book  book

	mu     sync.Mutex // guards the fields below, and writes to in
	ready  bool
	closed bool
}

func openStdio(ctx context.Context, way Way, version string, o owner) (session, error) {
	cmd := exec.Command(way.Command, way.Args...) //nolint:noctx // it outlives the call that starts it
	cmd.Dir, cmd.Stderr = way.Dir, os.Stderr
	cmd.Env = way.Env
	if cmd.Env == nil {
		cmd.Env = stdioEnv((*World)(nil).orHere())
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &stdioSession{owner: o, cmd: cmd, in: in, done: make(chan struct{})}
	go s.read(out)
	if err := s.start(ctx, version); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stdioSession) start(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, defaultLimit)
	defer cancel()
	data, err := s.request(ctx, jsonrpc.MethodInitialize, initialize{
		ProtocolVersion: protocol, ClientInfo: implementation{"stdio-client", version},
	})
	if err != nil {
		return err
	}
	if _, err := parseInitialize(data); err != nil {
		return err
	}
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	note, _ := encode(outgoing{Method: jsonrpc.MethodInitialized, JSONRPC: "2.0"})
	return s.send(ctx, note)
}

func (s *stdioSession) request(ctx context.Context, method string, params any) ([]byte, error) {
	return s.book.ask(ctx, method, params, s.send)
}

func (s *stdioSession) send(_ context.Context, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("Not connected")
	}
	_, err := s.in.Write(append(message, '\n'))
	return err
}

// read takes the program's output, one message per line, until it ends.
func (s *stdioSession) read(out io.Reader) {
	defer close(s.done)
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := readLine(in, maxAnswer)
		if err != nil {
			s.book.end(errors.New("Connection closed"))
			if s.stands() {
				s.owner.ended()
			}
			return
		}
		m, err := parseMessage(line)
		if err != nil {
			s.fault(&messageError{err})
			continue
		}
		s.mu.Lock()
		ready := s.ready
		s.mu.Unlock()
		handleMessage(m, ready, &s.book, s.owner.notified, s.fault, func(reply []byte) { _ = s.send(context.Background(), reply) })
	}
}

// stands reports whether faults and the end of the program count: only after the CLI has connected, and before it
// closes the session itself.
func (s *stdioSession) stands() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready && !s.closed
}

func (s *stdioSession) fault(err error) {
	s.owner.faulted(err, s.stands())
}

func (s *stdioSession) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.in.Close()
	s.mu.Unlock()
	select {
	case <-s.done:
	case <-time.After(stopWait):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	_ = s.cmd.Wait()
}

func (s *stdioSession) leave(context.Context) {}

// splitBatch returns the messages of a body.
func splitBatch(data []byte) []json.RawMessage {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil {
			return list
		}
	}
	return []json.RawMessage{data}
}
