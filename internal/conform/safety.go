package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/proc"
)

func safetyProbes() []probe {
	return []probe{
		{"F-1/no tool that runs code", "the port is for diffs: whoever reaches it must not be able to run anything", (*run).noCode},
		{"A-3/no permission for pages", "a page in a browser is refused also when it asks beforehand (OPTIONS), and no answer permits it to read", (*run).preflight},
		{"A-3/no WebSocket for pages", "browsers let any page open a WebSocket to any port: who asks from a page, or without the token, gets none", (*run).webSocket},
		{"F-2/a path is only a path", "a name with the signs of a shell or of Ex commands runs nothing", (*run).trapPath},
		{"A-1/token not printed", "what a companion prints ends up in logs and scroll-backs", (*run).tokenPrinted},
		{"A-1/token not in arguments", "everybody on the machine may list the arguments of processes", (*run).tokenInArguments},
	}
}

// runsCode matches names of tools, or of their arguments, that run code.
var runsCode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(exec|eval|shell|terminal|command|script|code|expression|lisp|lua|statement)`)
})

// noCode checks the tools on offer, and calls tools that other companions have without listing them.
func (r *run) noCode() error {
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	l, err := r.tools(&list)
	if err != nil {
		return err
	}
	defer r.leave(l)
	for _, t := range list.Tools {
		if t.Name == wire.ToolOpenDiff || t.Name == wire.ToolCloseDiff {
			continue
		}
		if runsCode().MatchString(t.Name) {
			return fmt.Errorf("it offers the tool %q", t.Name)
		}
		for name := range t.InputSchema.Properties {
			if runsCode().MatchString(name) {
				return fmt.Errorf("its tool %q takes %q", t.Name, name)
			}
		}
	}
	for _, name := range []string{"executeCode", "execute_code", "eval", "runCommand"} {
		m, err := r.tool(l, name, map[string]any{"code": "1", "command": "true", "expression": "1"})
		if err == nil && m["isError"] != true {
			return fmt.Errorf("it runs the tool %q, though it does not list it", name)
		}
	}
	return nil
}

func (r *run) preflight() error {
	for _, method := range []string{http.MethodOptions, http.MethodPost, http.MethodGet} {
		ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+r.t.Addr+"/mcp", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Origin", "https://page.example")
		if method == http.MethodOptions {
			req.Header.Set("Access-Control-Request-Method", http.MethodPost)
			req.Header.Set("Access-Control-Request-Headers", "authorization, content-type, mcp-session-id")
		}
		res, err := r.http.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Private-Network"} {
			if value := res.Header.Get(name); value != "" {
				return fmt.Errorf("%s is answered with %s: %s", method, name, value)
			}
		}
		if res.StatusCode < 400 {
			return fmt.Errorf("%s of another site's page, without the token, is answered with %s", method, res.Status)
		}
	}
	return nil
}

// webSocket requests a WebSocket as a page of another site does; such a page can send a token only in the
// subprotocol.
func (r *run) webSocket() error {
	for _, path := range []string{"/", "/mcp", "/stream", "/ws"} {
		for _, origin := range []string{"https://page.example", ""} {
			ctx, cancel := context.WithTimeout(r.ctx, r.t.Wait)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.t.Addr+path, nil)
			if err != nil {
				return err
			}
			for name, value := range map[string]string{
				"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
				"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "mcp",
			} {
				req.Header.Set(name, value)
			}
			if origin != "" { // with the token, as if the page had found it
				req.Header.Set("Origin", origin)
				req.Header.Set("Authorization", "Bearer "+r.t.Token)
			}
			res, err := r.http.Do(req)
			if err != nil {
				return err
			}
			res.Body.Close()
			if res.StatusCode < 400 {
				return fmt.Errorf("GET %s with Upgrade: websocket and Origin %q is answered with %s", path, origin, res.Status)
			}
		}
	}
	return nil
}

// trapPath opens diffs with names that would create a file if run as code.
func (r *run) trapPath() error {
	sprung := filepath.Join(r.dir, "sprung")
	l, _, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	for _, name := range traps(sprung) {
		path := filepath.Join(r.dir, name)
		var refused *refusedError
		if err := r.openDiff(l, path, "x\n"); err != nil && !errors.As(err, &refused) {
			return err
		} else if err == nil {
			if _, _, _, err := r.closeDiff(l, path); err != nil {
				return err
			}
		}
		if err := r.pause(contextDelay / 5); err != nil {
			return err
		}
		if _, err := os.Stat(sprung); err == nil {
			return fmt.Errorf("the name %q was run as a command", name)
		}
	}
	return nil
}

// traps returns file names that create the file sprung when a program pastes them into a command. They cannot contain
// a slash.
func traps(sprung string) []string {
	octal := strings.ReplaceAll(sprung, "/", `\057`)
	words := strings.Split(sprung, "/")
	for i, w := range words {
		words[i] = "'" + w + "'"
	}
	ex := "call writefile([],join([" + strings.Join(words, ",") + "],nr2char(47)))"
	return []string{
		"a$(touch $(printf '" + octal + "'))", // for a shell, even between double quotes
		"a';touch $(printf '" + octal + "');'",
		"a`touch $(printf \"" + octal + "\")`",
		"a|" + ex, // for Vim
		"a\n" + ex,
	}
}

func (r *run) tokenPrinted() error {
	if err := r.started(); err != nil {
		return err
	}
	if r.t.Command.said.holds(r.t.Token) {
		return errors.New("the token stands in what it has printed")
	}
	return nil
}

func (r *run) tokenInArguments() error {
	pids := []int{}
	if r.t.Command != nil {
		pids = append(pids, r.t.Command.cmd.Process.Pid)
	}
	if pid, _, ok := discovery.ParseName(filepath.Base(r.t.File)); ok {
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		return skip("its process is not known: name the companion by --pid, or let conform start it")
	}
	for _, pid := range pids {
		if line, ok := proc.Command(pid); ok && len(r.t.Token) >= shortToken && strings.Contains(line, r.t.Token) {
			return fmt.Errorf("the token stands in the arguments of process %d", pid)
		}
	}
	return nil
}

// A recording keeps the end of a process's output, and passes the output on. Several goroutines may write to it.
type recording struct {
	to io.Writer

	mu   sync.Mutex // guards last
	last []byte
}

// recorded bounds a recording, in bytes.
const recorded = 4 << 20

// Write passes p on.
func (w *recording) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.last = append(w.last, p...)
	if n := len(w.last) - recorded; n > recorded {
		w.last = append([]byte(nil), w.last[n:]...)
	}
	w.mu.Unlock()
	return w.to.Write(p)
}

func (w *recording) holds(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(text) >= shortToken && bytes.Contains(w.last, []byte(text))
}

// tail returns the end of the output, short enough for an error message.
func (w *recording) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := bytes.TrimSpace(w.last)
	return strings.ToValidUTF8(string(last[max(0, len(last)-400):]), "")
}
