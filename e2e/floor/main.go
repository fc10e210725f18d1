// Command floor is what pollux is measured against: the smallest companion there could be, which checks the
// token, swallows the body and writes the same bytes. With the argument pipe it asks an editor on its standard
// input and output before it answers a call, and tells every stream what the editor says unasked.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

func main() {
	s := &server{want: []byte("Bearer " + rand.Text()), streams: map[http.ResponseWriter]bool{}, answers: make(chan []byte)}
	if s.piped = len(os.Args) > 1 && os.Args[1] == "pipe"; s.piped {
		go s.hear(bufio.NewReader(os.Stdin))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = http.Serve(ln, s) }()
	dir := filepath.Join(os.TempDir(), "gemini", "ide")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	file := filepath.Join(dir, fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), port))
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"port":%d,"authToken":%q}`, port, s.want[len("Bearer "):]), 0o600); err != nil {
		panic(err)
	}
	select {}
}

// A server answers a call at once, or with what the editor says to it.
type server struct {
	want    []byte
	piped   bool
	asking  sync.Mutex // one call asks the editor at a time
	answers chan []byte

	mu      sync.Mutex // guards streams
	streams map[http.ResponseWriter]bool
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), s.want) != 1 {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodGet {
		s.stream(w, r)
		return
	}
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	if body, known := s.read(r); known {
		answer = s.ask(body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer)
}

// read swallows a body, and returns what the editor has to hear of.
func (s *server) read(r *http.Request) (body []byte, call bool) {
	if !s.piped {
		_, _ = io.Copy(io.Discard, r.Body)
		return nil, false
	}
	body = make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err == nil && bytes.HasPrefix(body, []byte(`{"method":"tools/call"`))
}

// ask passes a call to the editor and returns what it answers.
func (s *server) ask(body []byte) []byte {
	s.asking.Lock()
	defer s.asking.Unlock()
	_, _ = os.Stdout.Write(append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...))
	return <-s.answers
}

// hear reads what the editor says: answers have a result, all else is told to every stream.
func (s *server) hear(in *bufio.Reader) {
	for {
		head, err := in.ReadString('\n')
		length, err2 := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "Content-Length:")))
		if _, err3 := in.Discard(2); err != nil || err2 != nil || err3 != nil {
			return
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		if bytes.Contains(body[:min(len(body), 64)], []byte(`"result"`)) {
			s.answers <- body
			continue
		}
		event := append(append([]byte("data: "), body...), "\n\n"...)
		s.mu.Lock()
		for w := range s.streams {
			_, _ = w.Write(event)
			_ = http.NewResponseController(w).Flush()
		}
		s.mu.Unlock()
	}
}

// stream holds an event stream until the peer goes.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.mu.Lock()
	_, _ = w.Write([]byte("data: {}\n\n"))
	_ = http.NewResponseController(w).Flush()
	s.streams[w] = true
	s.mu.Unlock()
	<-r.Context().Done()
	s.mu.Lock()
	delete(s.streams, w)
	s.mu.Unlock()
}
