package contract

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A Target is a companion that vectors are played against.
type Target struct {
	Addr  string // host:port of its listener for CLIs
	Token string
	Dir   string // a folder of its workspace, for {{dir}}
	// Editor does what one line of an editor step says; nil where nobody plays the user.
	Editor func(line string) error
	// Patience is how long what must come may take, 5 s when less.
	Patience time.Duration
	// Opened hears of every session that is opened; nil where nobody wants to end it.
	Opened func(session string)
}

const (
	patience = 5 * time.Second        // for what must come
	silence  = 150 * time.Millisecond // in which nothing more must come
)

// Play runs a vector and returns its steps with what really came in place of
// what is expected. The vector holds when they are equal to a.Steps.
func Play(a *Archive, target Target) ([]Step, error) {
	target.Patience = max(target.Patience, patience)
	p := &player{target: target}
	defer p.close()
	if a.Settings["connect"] != "" || a.Settings["stream"] != "" {
		if err := p.connect(a.Settings["connect"]); err != nil {
			return nil, fmt.Errorf("%s: connecting: %w", a.Name, err)
		}
	}
	if a.Settings["stream"] != "" {
		if _, err := p.request(getStream); err != nil {
			return nil, fmt.Errorf("%s: opening the stream: %w", a.Name, err)
		}
		p.events(1)
	}
	got := slices.Clone(a.Steps)
	response := ""
	for i, step := range a.Steps {
		var err error
		switch step.Kind {
		case "editor":
			err = p.edit(step.Text)
		case "request":
			response, err = p.request(step.Text)
		case "response":
			got[i].Text = response
		case "events":
			got[i].Text = p.events(strings.Count(step.Text, "data: "))
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", a.Name, step.File, err)
		}
	}
	return got, nil
}

// A player is one run of a vector: one CLI.
type player struct {
	target  Target
	first   string // the first session
	session string // the newest
	event   string // id of the last one
	streams []net.Conn
	lines   chan string // of the newest stream
}

func (p *player) close() {
	for _, c := range p.streams {
		_ = c.Close()
	}
}

const (
	heads = " HTTP/1.1\nHost: {{host}}\nAuthorization: Bearer {{token}}\nAccept: application/json, text/event-stream\n"

	getStream   = "GET /mcp" + heads + "Mcp-Session-Id: {{session}}\n\n"
	initialize  = "POST /mcp" + heads + "Content-Type: application/json\n\n" + `{"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"streamable-http-client","version":"0.61.0"}},"jsonrpc":"2.0","id":0}`
	initialized = "POST /mcp" + heads + "Content-Type: application/json\nMcp-Session-Id: {{session}}\n\n" + `{"method":"notifications/initialized","jsonrpc":"2.0"}`
)

// connect is what the CLI does first. The setting may name a protocol version.
func (p *player) connect(version string) error {
	if !strings.HasPrefix(version, "20") {
		version = "2025-06-18"
	}
	answer, err := p.request(fmt.Sprintf(initialize, version))
	if err == nil && p.session == "" {
		err = fmt.Errorf("no session in the answer:\n%s", answer)
	}
	if err != nil {
		return err
	}
	_, err = p.request(initialized)
	return err
}

func (p *player) edit(text string) error {
	for line := range strings.Lines(text) {
		if p.target.Editor == nil {
			return fmt.Errorf("nobody plays the user")
		}
		if err := p.target.Editor(p.fill(strings.TrimSpace(line))); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

func (p *player) fill(s string) string {
	_, port, _ := net.SplitHostPort(p.target.Addr)
	s = strings.NewReplacer("{{host}}", p.target.Addr, "{{port}}", port, "{{token}}", p.target.Token,
		"{{short}}", p.target.Token[:max(0, len(p.target.Token)-1)], "{{session}}", p.session, "{{first}}", p.first,
		"{{dir}}", p.target.Dir, "{{event}}", p.event, "{{empty}}", "").Replace(s)
	return times().ReplaceAllStringFunc(s, func(m string) string {
		parts := times().FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		return strings.Repeat(parts[2], n)
	})
}

// shorten writes a character that comes a thousand times or more as fill reads it.
func shorten(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		_, size := utf8.DecodeRuneInString(s)
		one, n := s[:size], 1
		for strings.HasPrefix(s[n*size:], one) {
			n++
		}
		if n >= 1000 {
			fmt.Fprintf(&b, "{{%d %s}}", n, one)
		} else {
			b.WriteString(s[:n*size])
		}
		s = s[n*size:]
	}
	return b.String()
}

// raw is the request's bytes: CR LF in the head, the body without its last
// line feed, its length added where the head does not tell.
func (p *player) raw(text string) []byte {
	head, body, _ := strings.Cut(p.fill(text), "\n\n")
	body = strings.TrimSuffix(body, "\n")
	head = strings.ReplaceAll(strings.TrimSuffix(head, "\n"), "\n", "\r\n") + "\r\n"
	if body != "" && !strings.Contains(head, "Transfer-Encoding") && !strings.Contains(head, "Content-Length") {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return []byte(head + "\r\n" + body)
}

// request sends a request on a connection of its own. The answer of a stream is
// its head alone; the stream goes on.
func (p *player) request(text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.target.Patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target.Addr)
	if err != nil {
		return "", err
	}
	_ = conn.SetDeadline(time.Now().Add(p.target.Patience))
	if _, err := conn.Write(p.raw(text)); err != nil {
		_ = conn.Close()
		return "", err
	}
	in := bufio.NewReader(conn)
	//nolint:bodyclose // it is the connection, which is closed below or with the stream
	res, err := http.ReadResponse(in, &http.Request{Method: strings.Fields(text)[0]})
	if err != nil {
		_ = conn.Close()
		return "", err
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		if p.first == "" {
			p.first = id
		}
		if p.session != id && p.target.Opened != nil {
			p.target.Opened(id)
		}
		p.session = id
	}
	if res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") == "text/event-stream" {
		_ = conn.SetDeadline(time.Time{})
		p.streams = append(p.streams, conn)
		p.lines = make(chan string, 1024)
		go readLines(res.Body, p.lines)
		return p.answer(res, nil), nil
	}
	defer conn.Close()
	body, err := io.ReadAll(res.Body)
	return p.answer(res, body), err
}

func readLines(r io.Reader, lines chan<- string) {
	defer close(lines)
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		lines <- line
	}
}

// answer writes a response as archives show it.
func (p *player) answer(res *http.Response, body []byte) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", res.Proto, res.Status)
	res.Header.Del("Date")
	if res.Close {
		res.Header.Set("Connection", "close")
	}
	lines := []string{}
	for name, values := range res.Header {
		for _, value := range values {
			if name == "Content-Length" {
				continue // it changes with the names in the body, and the body was read by it
			}
			lines = append(lines, name+": "+value)
		}
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, "\n"))
	b.WriteByte('\n')
	if len(body) > 0 {
		fmt.Fprintf(&b, "\n%s\n", bytes.TrimRight(body, "\n"))
	}
	return p.tidy(b.String())
}

var (
	stamp  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"timestamp":[0-9]{13}\b`) })
	lifeID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^id: [A-Z0-9]{8}-`) })
	times  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{([0-9]{1,6}) ([^{}]+)\}\}`) })
)

// tidy puts names in place of what differs from run to run.
func (p *player) tidy(s string) string {
	pairs := []string{p.target.Dir, "{{dir}}", p.target.Addr, "{{host}}"}
	switch token := p.target.Token; {
	case len(token) >= 8:
		pairs = append(pairs, token, "{{token}}")
	case token != "": // it is a part of words; it is meant only where one belongs
		pairs = append(pairs, "Bearer "+token, "Bearer {{token}}", `"`+token+`"`, `"{{token}}"`)
	}
	if p.session != "" {
		pairs = append(pairs, p.session, "{{session}}", p.first, "{{first}}")
	}
	s = strings.NewReplacer(pairs...).Replace(s)
	s = stamp().ReplaceAllString(s, `"timestamp":{{ms}}`)
	return shorten(lifeID().ReplaceAllString(s, "id: {{life}}-"))
}

// events waits for n events of the stream, and then whether another one comes.
func (p *player) events(n int) string {
	var b strings.Builder
	wait := p.target.Patience
	if n == 0 {
		wait = silence
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				b.WriteString("(end)\n")
				return p.tidy(b.String())
			}
			b.WriteString(line)
			if id, isID := strings.CutPrefix(line, "id: "); isID {
				p.event = strings.TrimSpace(id)
			}
			if strings.HasPrefix(line, "data: ") {
				if n--; n <= 0 {
					timer.Reset(silence)
				}
			}
		case <-timer.C:
			return p.tidy(b.String())
		}
	}
}
