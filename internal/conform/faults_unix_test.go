//go:build unix

package conform

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/mcp"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
)

// A fault breaks a good companion in a way seen in a real one.
type fault struct {
	caught string // the check that must fail, or the beginning of its name
	// server and file change the companion, user its user, proxy its messages, target what conform is told of it.
	server func(*mcp.Options)
	file   func(path string)
	user   func(h *hand, line string) bool
	proxy  func(*proxy)
	target func(*Target)
}

func wireFaults() map[string]fault {
	return map[string]fault{
		"one server object for all sessions": {caught: "T-3/answers of two sessions", proxy: func(p *proxy) {
			p.request = func(r *http.Request, body []byte) *http.Response {
				if bytes.Contains(body, []byte("closeDiff")) && !p.isLatest(r) {
					<-r.Context().Done() // the response goes to the other session
				}
				return nil
			}
		}},
		"an outcome goes to every session":      {caught: "F-3/outcomes of two sessions", proxy: broadcast},
		"an outcome comes twice":                {caught: "F-3a/", proxy: outcomes(func(e string) string { return e + e })},
		"not reachable from a container":        {caught: "T-8a/", target: func(t *Target) { t.With = []string{"extraHost"} }},
		"dead sessions are kept":                {caught: "T-3/dead sessions end", server: func(o *mcp.Options) { o.Grace = time.Hour }, target: func(t *Target) { t.Grace = 400 * time.Millisecond }},
		"what is missed is lost":                {caught: "T-6c", proxy: onlyAtFirst(false)},
		"ten outcomes are kept":                 {caught: "T-6/many outcomes", proxy: tenAtMost},
		"the context comes only once a session": {caught: "T-7a/", proxy: onlyAtFirst(true)},
		"no context":                            {caught: "T-7/first context", proxy: contexts(func(string) string { return "" })},
		"empty events":                          {caught: "T-7/first context", proxy: contexts(func(e string) string { return "id: 1\ndata:\n\n" + e })},
		"no keep-alive":                         {caught: "T-5/keep-alive", server: func(o *mcp.Options) { o.KeepAlive = time.Hour }, target: func(t *Target) { t.Silence = time.Second }},
		"initialized gets 200":                  {caught: "T-5/initialized gets 202", proxy: func(p *proxy) { p.request = okForInitialized }},
		"every POST becomes a session":          {caught: "T-1/no session without initialize", proxy: func(p *proxy) { p.request = endlessForAll }},
		"all interfaces":                        {caught: "T-2/loopback only", proxy: func(p *proxy) { p.address = ":0" }, target: elsewhere},
		"no authentication": {caught: "A-2a/", proxy: func(p *proxy) {
			p.request = func(r *http.Request, _ []byte) *http.Response {
				r.Header.Set("Authorization", "Bearer "+clienttest.DefaultToken)
				return nil
			}
		}},
		"no check of Host and Origin": {caught: "A-3", proxy: func(p *proxy) {
			p.request = func(r *http.Request, _ []byte) *http.Response {
				r.Header.Del("Origin")
				r.Host = "" // the proxy's own name for it
				return nil
			}
		}},
		"pages of every site may ask": {caught: "A-3/no permission for pages", proxy: func(p *proxy) {
			p.request = func(r *http.Request, _ []byte) *http.Response {
				if r.Method != http.MethodOptions {
					return nil
				}
				return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{"Access-Control-Allow-Origin": {"*"}}, Body: http.NoBody}
			}
		}},
		"a WebSocket for every page": {caught: "A-3/no WebSocket for pages", proxy: func(p *proxy) { p.upgrades = true }},
		"code is run for whoever asks": {caught: "F-1/no tool that runs code", proxy: func(p *proxy) {
			p.body = func(_ *http.Request, asked, answered []byte) []byte {
				if !bytes.Contains(asked, []byte("tools/list")) {
					return answered
				}
				return bytes.Replace(answered, []byte(`"tools":[`), []byte(`"tools":[{"name":"executeCode","inputSchema":{"type":"object","properties":{"code":{"type":"string"}}}},`), 1)
			}
		}},
		"code is run, and not offered": {caught: "F-1/no tool that runs code", proxy: func(p *proxy) {
			p.body = func(_ *http.Request, asked, answered []byte) []byte {
				if !bytes.Contains(asked, []byte(`"executeCode"`)) {
					return answered
				}
				return []byte(`{"jsonrpc":"2.0","id":` + idOf(asked) + `,"result":{"content":[{"type":"text","text":"1"}]}}`)
			}
		}},
		"tools under other names": {caught: "F-1/both tools", proxy: func(p *proxy) {
			p.body = func(_ *http.Request, _, answered []byte) []byte {
				return bytes.ReplaceAll(answered, []byte(`"name":"openDiff"`), []byte(`"name":"sublime:openDiff"`))
			}
		}},
		"names are pasted into a command": {caught: "F-2/a path is only a path", proxy: func(p *proxy) {
			p.request = func(_ *http.Request, body []byte) *http.Response {
				if path := diffPath(body, "openDiff"); path != "" {
					_ = exec.Command("sh", "-c", `test -e "`+path+`"`).Run()
				}
				return nil
			}
		}},
		"openDiff writes beside the file": {caught: "F-2/writes nothing", proxy: func(p *proxy) {
			p.request = func(_ *http.Request, body []byte) *http.Response {
				if path := diffPath(body, "openDiff"); path != "" {
					_ = os.WriteFile(path+" [New]", nil, 0o600)
				}
				return nil
			}
		}},
		"openDiff blocks until it is decided": {caught: "F-2/answers at once", proxy: func(p *proxy) {
			p.request = func(r *http.Request, body []byte) *http.Response {
				if bytes.Contains(body, []byte("openDiff")) {
					<-r.Context().Done()
				}
				return nil
			}
		}},
		"a UUID for a token":        {caught: "A-1/token", server: func(o *mcp.Options) { o.Agents[0].Token = uuid }, target: func(t *Target) { t.Token = uuid }, file: edited("authToken", uuid)},
		"a token that all can read": {caught: "D-4/mode", file: func(path string) { _ = os.Chmod(path, 0o644) }},
		"no ideInfo":                {caught: "D-3/ideInfo", file: edited("ideInfo", nil)},
	}
}

func diffFaults() map[string]fault {
	return map[string]fault{
		"closeDiff answers with the raw text":  {caught: "F-4/text that is JSON", proxy: func(p *proxy) { p.body = rawText }},
		"closeDiff does not answer with JSON":  {caught: "F-4/unedited", proxy: func(p *proxy) { p.body = rawText }},
		"closeDiff answers with the old text":  {caught: "F-4/unedited", proxy: closed(func(string) string { return `{"finalContent":""}` })},
		"closeDiff forgets edits":              {caught: "F-4a/", proxy: closed(func(string) string { return `{"finalContent":"x\n"}` })},
		"large answers are cut":                {caught: "F-4/large text", proxy: func(p *proxy) { p.body = cutAnswer }},
		"large texts are cut in a character":   {caught: "F-4/large text", proxy: closed(func(text string) string { return replaceIn(text, text[100:], "é"[:1]+`"}`) })},
		"line ends are changed":                {caught: "F-6/line ends", proxy: closed(func(text string) string { return strings.ReplaceAll(text, `\r\n`, `\n`) })},
		"characters are composed anew":         {caught: "F-6/line ends", proxy: closed(func(text string) string { return strings.ReplaceAll(text, "e\u0301", "é") })},
		"acceptance forgets edits":             {caught: "F-3b/", proxy: outcomes(func(e string) string { return strings.Replace(e, `"content":"y\n"`, `"content":"x\n"`, 1) })},
		"the path is written anew":             {caught: "F-5a/", proxy: outcomes(func(e string) string { return strings.ReplaceAll(e, "/./", "/") })},
		"diffs are known by their base name":   {caught: "F-7/same name in two folders", proxy: baseNames},
		"a closed tab says nothing":            {caught: "F-3/closed view", user: func(_ *hand, line string) bool { return strings.Contains(line, "close") }},
		"the file is saved on accept":          {caught: "F-8/does not write", user: savesOnAccept},
		"saving the file itself does nothing":  {caught: "F-8/saving the file", user: func(_ *hand, line string) bool { return strings.Contains(line, `"save"`) }},
		"saving the file itself accepts":       {caught: "F-8/saving the file", user: func(h *hand, line string) bool { return strings.Contains(line, `"save"`) && acceptsAll(h) }},
		"a diff takes the place of the buffer": {caught: "F-8/unsaved text", user: losesBuffer},
	}
}

func contextFaults() map[string]fault {
	all := map[string]fault{
		"a settings page leaves the file active": {caught: "C-6/no file has the focus", user: func(_ *hand, line string) bool { return strings.Contains(line, `"Active":""`) }},
		"isTrusted is always true":               {caught: "C-7/trust", proxy: files(func(ws map[string]any, _ []map[string]any) { ws["isTrusted"] = true })},
		"isTrusted is true, whatever the editor says": {caught: "C-7a/", proxy: files(func(ws map[string]any, _ []map[string]any) { ws["isTrusted"] = true }),
			user: func(h *hand, _ string) bool { h.trusts = true; return false }},
		"null where nothing is selected": {caught: "C-3/times", proxy: files(func(_ map[string]any, list []map[string]any) {
			for _, f := range list {
				f["selectedText"] = nil
			}
		})},
		"the active file drops out of ten": {caught: "C-3a/", proxy: files(func(ws map[string]any, list []map[string]any) {
			if len(list) == 10 {
				ws["openFiles"] = list[1:]
			}
		})},
		"all times are alike": {caught: "C-3/times", proxy: files(func(_ map[string]any, list []map[string]any) {
			for _, f := range list {
				f["timestamp"] = float64(time.Now().UnixMilli())
			}
		})},
		"times are in seconds": {caught: "C-3/times", proxy: files(func(_ map[string]any, list []map[string]any) {
			for _, f := range list {
				f["timestamp"] = f["timestamp"].(float64) / 1000
			}
		})},
		"times are of the first focus":      {caught: "C-3/times", proxy: firstTimes},
		"a selection stays for ever":        {caught: "C-4d/", proxy: staleSelection},
		"a selection is whole lines":        {caught: "C-4d/", proxy: selections(func(string) string { return "one two\\n" })},
		"a selection is without bounds":     {caught: "C-5a/", proxy: selections(func(s string) string { return s + strings.Repeat("a", 4000) })},
		"a selection is cut in a character": {caught: "C-5b/", proxy: selections(func(s string) string { return s[:min(len(s), 16448)] })},
		"a selection is cut in a pair":      {caught: "C-5b/", proxy: selections(func(s string) string { return strings.Replace(s, "😀", `\ud83d`, 1) })},
		"a selection is cut at a thousand":  {caught: "C-5a/", proxy: selections(func(s string) string { return s[:min(len(s), 1024)] })},
		"columns count from 0":              {caught: "C-4c/", proxy: columns(func(before string) int { return utf16Len(before) })},
		"columns count bytes":               {caught: "C-4c/", proxy: columns(func(before string) int { return len(before) + 1 })},
		"columns count characters":          {caught: "C-4c/", proxy: columns(func(before string) int { return len([]rune(before)) + 1 })},
		"columns count those of the screen": {caught: "C-4c/", proxy: columns(screenColumn)},
	}
	return all
}

// Every class of fault found in real companions is caught.
func TestSeededFaults(t *testing.T) {
	t.Parallel()
	var tests sync.WaitGroup
	room := make(chan struct{}, 12) // these tests mostly wait
	for _, faults := range []map[string]fault{wireFaults(), diffFaults(), contextFaults()} {
		for name, f := range faults {
			tests.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				t.Run(name, f.try)
			})
		}
	}
	tests.Wait()
}

const uuid = "123e4567-e89b-12d3-a456-426614174000"

func (f *fault) try(t *testing.T) {
	c, target := start(t, clienttest.Options{Change: f.server})
	target.Driver = &hand{c: c, change: f.user, buffers: map[string]string{}}
	target.Wait = 1500 * time.Millisecond
	if f.proxy != nil {
		p := &proxy{gets: map[string]int{}, address: "127.0.0.1:0"}
		f.proxy(p)
		target.Addr = p.start(t, c.Addr)
	}
	if f.file != nil {
		f.file(c.File)
	}
	if f.target != nil {
		f.target(&target)
	}
	target.Only = strings.TrimRight(f.caught, "/")
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if strings.HasPrefix(c.Name, f.caught) && c.Result == Fail {
			if c.Evidence == "" {
				t.Errorf("caught without evidence: %+v", c)
			}
			return
		}
	}
	t.Errorf("%s was not caught: %+v", f.caught, all)
}

// Without a fault, every check that catches one passes.
func TestNoFault(t *testing.T) {
	t.Parallel()
	checks := map[string]bool{}
	for _, faults := range []map[string]fault{wireFaults(), diffFaults(), contextFaults()} {
		for _, f := range faults {
			if f.caught != "T-8a/" { // needs a companion that serves containers
				checks[f.caught] = true
			}
		}
	}
	var tests sync.WaitGroup
	room := make(chan struct{}, 8)
	for name := range checks {
		tests.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			t.Run(name, func(t *testing.T) { tryGood(t, name) })
		})
	}
	tests.Wait()
}

func tryGood(t *testing.T, name string) {
	o := clienttest.Options{Token: strings.Repeat("Zx-9", 11)}
	if name == "T-3/dead sessions end" || name == "T-5/keep-alive" {
		o.Change = quick
	}
	c, target := start(t, o)
	target.Driver = &hand{c: c, buffers: map[string]string{}, trusts: strings.HasPrefix(name, "C-7a")}
	target.Silence, target.Grace, target.Wait = 10*time.Second, time.Second, 60*time.Second
	target.Only = strings.TrimRight(name, "/")
	elsewhere(&target)
	all, err := Run(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, c := range all {
		if c.Result == Fail {
			t.Errorf("%s: %s\n%s", c.Name, c.About, c.Evidence)
		}
		if c.Result == Pass {
			passed++
		}
	}
	if passed == 0 {
		t.Errorf("nothing passes: %+v", all)
	}
}

// elsewhere gives every machine further addresses besides 127.0.0.1. A companion that listens on all addresses
// answers at one of them.
func elsewhere(t *Target) {
	t.reachable = func() ([]net.IP, error) { return []net.IP{net.IPv4(127, 0, 0, 2), net.IPv6loopback}, nil }
}

// Which addresses of a machine can be reached from outside.
func TestOthers(t *testing.T) {
	address := func(ip string) net.Addr { return &net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(8, 32)} }
	all := []net.Addr{address("127.0.0.1"), address("192.0.2.7"), address("::1"), address("fe80::1"), address("2001:db8::7"), &net.UnixAddr{}, address("169.254.1.1")}
	got := others(all)
	if len(got) != 2 || got[0].String() != "192.0.2.7" || got[1].String() != "2001:db8::7" {
		t.Errorf("%v", got)
	}
	if own := others(all[:1]); len(own) != 0 {
		t.Errorf("%v", own)
	}
}

func okForInitialized(_ *http.Request, body []byte) *http.Response {
	if bytes.Contains(body, []byte("notifications/initialized")) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
	}
	return nil
}

func endlessForAll(r *http.Request, body []byte) *http.Response {
	if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && !bytes.Contains(body, []byte("initialize")) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}, "Mcp-Session-Id": {"new"}}, Body: io.NopCloser(strings.NewReader(": hello\n\n"))}
	}
	return nil
}

func savesOnAccept(h *hand, line string) bool {
	if strings.Contains(line, "accept") {
		for _, d := range h.c.Registry.Pending() {
			_ = os.WriteFile(d.Proposal().Path, []byte(d.Proposal().New), 0o600)
		}
	}
	return false
}

func acceptsAll(h *hand) bool {
	for _, d := range h.c.Registry.Pending() {
		_ = h.c.Registry.Accept(d.ID(), d.Now().Seen, nil)
	}
	return false
}

func losesBuffer(h *hand, line string) bool {
	if strings.Contains(line, "accept") || strings.Contains(line, "reject") {
		for _, d := range h.c.Registry.Pending() {
			h.buffers[d.Proposal().Path] = d.Proposal().New
		}
	}
	return false
}

// A rule of this repository: the manual's table names exactly these faults, each with the check that catches it.
func TestFaultsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/conform.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(data), "## What it catches")
	if !ok {
		t.Fatal("docs/conform.md has no chapter What it catches")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	want := map[string]bool{}
	for _, faults := range []map[string]fault{wireFaults(), diffFaults(), contextFaults()} {
		for name, f := range faults {
			want[fmt.Sprintf("| %s | `%s` |", name, strings.TrimRight(f.caught, "/"))] = true
		}
	}
	for name, f := range processFaults() {
		want[fmt.Sprintf("| %s | `%s` |", name, f.caught)] = true
	}
	for row := range want {
		if !strings.Contains(table, row) {
			t.Errorf("docs/conform.md lacks the row\n%s", row)
		}
	}
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, "` |") && !want[line] {
			t.Errorf("no such fault is tried:\n%s", line)
		}
	}
}
