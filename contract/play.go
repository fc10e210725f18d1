package contract

import (
	"bufio"
	"bytes"
	"cmp"
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
	Token string // of the vector's agent
	Dir   string // a folder of its workspace, for {{dir}}
	Root  string // the workspace's folder, for {{root}}; Dir when empty
	// Dial connects to a private socket; nil connects to Addr.
	Dial func(context.Context) (net.Conn, error)
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
	p := &player{target: target, manner: mannerOf(a.Agent()), late: map[string]chan reply{}}
	defer p.close()
	if a.Settings["connect"] != "" || a.Settings["stream"] != "" {
		if err := p.connect(a.Settings["connect"]); err != nil {
			return nil, fmt.Errorf("%s: connecting: %w", a.Name, err)
		}
	}
	if a.Settings["stream"] != "" {
		if _, err := p.request("GET /mcp" + p.heads() + getStream); err != nil {
			return nil, fmt.Errorf("%s: opening the stream: %w", a.Name, err)
		}
		p.events(1)
	}
	got := slices.Clone(a.Steps)
	response, lastLook := "", 0
	for i, step := range a.Steps {
		if step.Kind == "messages" {
			lastLook = i
		}
	}
	for i, step := range a.Steps {
		var err error
		switch step.Kind {
		case "editor":
			err = p.edit(step.Text)
		case "request":
			if name := "response" + strings.TrimPrefix(step.File, "request"); i+1 < len(a.Steps) && a.Steps[i+1].File != name {
				err = p.ask(name, step.Text)
			} else {
				response, err = p.request(step.Text)
			}
		case "response":
			if late := p.late[step.File]; late != nil {
				response, err = p.answered(<-late)
			}
			got[i].Text = response
		case "send":
			err = p.send(step.Text)
		case "messages":
			got[i].Text = p.messages(strings.Count(step.Text, "\n"), i == lastLook)
		case "events":
			got[i].Text = p.events(strings.Count(step.Text, "data: "))
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", a.Name, step.File, err)
		}
	}
	return got, nil
}

// A manner is how one agent's CLIs connect.
type manner struct {
	host, scheme    string // of the headers Host and Authorization
	client, version string // of initialize
	leaves          bool   // it ends its session before it goes
	socket          bool   // it speaks over a WebSocket from the start
	asks            bool   // it opens a connection for each question
}

// mannerOf returns an agent's manner; "" is Gemini CLI.
func mannerOf(agent string) manner {
	usual := manner{host: "{{host}}", scheme: "Bearer", client: "streamable-http-client", version: "2025-06-18"}
	special, ok := map[string]manner{
		"claude":  {socket: true},
		"copilot": {host: "localhost", scheme: "Nonce", client: "copilot-cli", version: "2025-11-25", leaves: true},
		"codex":   {asks: true},
	}[agent]
	if ok {
		return special
	}
	return usual
}

// A player is one run of a vector: one CLI.
type player struct {
	target  Target
	manner  manner
	first   string // the first session
	session string // the newest
	event   string // id of the last one
	streams []net.Conn
	lines   chan string           // of the newest stream
	late    map[string]chan reply // of requests that wait, by the file of their response
	wire    wire                  // of the newest socket
	heard   chan string           // its messages
	told    string                // the newest context
}

func (p *player) close() {
	if p.manner.leaves && p.session != "" {
		_, _ = p.request("DELETE /mcp" + p.heads() + "Mcp-Session-Id: {{session}}\n\n")
	}
	for _, c := range p.streams {
		_ = c.Close()
	}
}

const (
	getStream   = "Mcp-Session-Id: {{session}}\n\n"
	initialize  = "Content-Type: application/json\n\n" + `{"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"%s","version":"0.61.0"}},"jsonrpc":"2.0","id":0}`
	initialized = "Content-Type: application/json\nMcp-Session-Id: {{session}}\n\n" + `{"method":"notifications/initialized","jsonrpc":"2.0"}`
)

// heads are the first headers of each request.
func (p *player) heads() string {
	return " HTTP/1.1\nHost: " + p.manner.host + "\nAuthorization: " + p.manner.scheme + " {{token}}\nAccept: application/json, text/event-stream\n"
}

// connect is what the CLI does first. The setting may name a protocol version.
func (p *player) connect(version string) error {
	if p.manner.socket {
		return p.join()
	}
	if !strings.HasPrefix(version, "20") {
		version = p.manner.version
	}
	answer, err := p.request("POST /mcp" + p.heads() + fmt.Sprintf(initialize, version, p.manner.client))
	if err == nil && p.session == "" {
		err = fmt.Errorf("no session in the answer:\n%s", answer)
	}
	if err != nil {
		return err
	}
	_, err = p.request("POST /mcp" + p.heads() + initialized)
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
		"{{dir}}", p.target.Dir, "{{root}}", cmp.Or(p.target.Root, p.target.Dir), "{{event}}", p.event, "{{empty}}", "").Replace(s)
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

// A reply is what came on the connection of one request.
type reply struct {
	conn net.Conn
	in   *bufio.Reader
	res  *http.Response
	err  error
}

func (p *player) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.target.Patience)
	defer cancel()
	if p.target.Dial != nil {
		return p.target.Dial(ctx)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.target.Addr)
}

// request sends a request on a connection of its own. The answer of a stream or a socket is its head alone, and it goes on.
func (p *player) request(text string) (string, error) {
	conn, err := p.dial()
	if err != nil {
		return "", err
	}
	return p.answered(p.exchange(conn, p.raw(text), strings.Fields(text)[0]))
}

// ask sends a request whose response a later step reads.
func (p *player) ask(response, text string) error {
	conn, err := p.dial()
	if err != nil {
		return err
	}
	p.streams = append(p.streams, conn)
	late, raw := make(chan reply, 1), p.raw(text)
	p.late[response] = late
	go func() { late <- p.exchange(conn, raw, strings.Fields(text)[0]) }()
	return nil
}

func (p *player) exchange(conn net.Conn, raw []byte, method string) reply {
	r := reply{conn: conn, in: bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(p.target.Patience))
	if _, r.err = conn.Write(raw); r.err == nil {
		//nolint:bodyclose // it is the connection, which answered closes or keeps
		r.res, r.err = http.ReadResponse(r.in, &http.Request{Method: method})
	}
	return r
}

// answered reads a reply, and what it says of the session.
func (p *player) answered(r reply) (string, error) {
	if r.err != nil {
		_ = r.conn.Close()
		return "", r.err
	}
	if id := r.res.Header.Get("Mcp-Session-Id"); id != "" {
		if p.first == "" {
			p.first = id
		}
		if p.session != id && p.target.Opened != nil {
			p.target.Opened(id)
		}
		p.session = id
	}
	switch {
	case r.res.StatusCode == http.StatusSwitchingProtocols:
		p.upgraded(r.conn, r.in)
		return p.answer(r.res, nil), nil
	case r.res.StatusCode == http.StatusOK && r.res.Header.Get("Content-Type") == "text/event-stream":
		_ = r.conn.SetDeadline(time.Time{})
		p.streams = append(p.streams, r.conn)
		p.lines = make(chan string, 1024)
		go readLines(r.res.Body, p.lines)
		return p.answer(r.res, nil), nil
	}
	defer r.conn.Close()
	body, err := io.ReadAll(r.res.Body)
	return p.answer(r.res, body), err
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
	pairs := []string{p.target.Dir, "{{dir}}"}
	if p.target.Addr != "" {
		pairs = append(pairs, p.target.Addr, "{{host}}")
	}
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
