//go:build unix

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
)

// A patient is a user's machine with a companion that is well, on which a test makes one fault.
type patient struct {
	t        *testing.T
	base     string
	c        *clienttest.Companion // nil when none runs
	env      map[string]string
	dir      string
	settings string
	uid      *int
	inside   bool // a container
	others   []string
	pid      int // of another process, whose world it is
	lacks    []string
	run      []string // the folders of control sockets
}

func newPatient(t *testing.T, change func(*clienttest.Options)) *patient {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &patient{t: t, base: base, dir: filepath.Join(base, "app"), settings: filepath.Join(base, "settings.json"), env: map[string]string{"TMPDIR": base, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": filepath.Join(base, "etc", "settings.json")}}
	p.write(p.settings, `{"ide": {"enabled": true}}`)
	p.cli("0.61.0")
	o := clienttest.Options{Base: base}
	if change != nil {
		change(&o)
	}
	if p.c, err = clienttest.Start(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.c.Stop() })
	return p
}

// cli puts a release of the CLI into PATH.
func (p *patient) cli(version string) {
	dir := filepath.Join(p.base, "bin", version)
	p.write(filepath.Join(dir, "lib", "package.json"), `{"name":"@google/gemini-cli","version":"`+version+`"}`)
	p.write(filepath.Join(dir, "lib", "bundle", "gemini.js"), "")
	_ = os.Symlink("lib/bundle/gemini.js", filepath.Join(dir, "gemini"))
	p.env["PATH"] = dir
}

func (p *patient) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) options() Options {
	w := &client.World{Dir: p.dir, UID: p.uid, Container: func() bool { return p.inside }}
	for name, value := range p.env {
		w.Environ = append(w.Environ, name+"="+value)
	}
	return Options{Agent: agent.All()[0], World: w, PID: p.pid, Lacks: p.lacks, Run: p.run, Settings: p.settings, Others: p.others}
}

func (p *patient) examine() *Report {
	p.t.Helper()
	r, err := Examine(p.t.Context(), p.options())
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// file rewrites the discovery file.
func (p *patient) file(change func(map[string]any)) {
	p.t.Helper()
	data, err := os.ReadFile(p.c.File)
	if err != nil {
		p.t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		p.t.Fatal(err)
	}
	change(m)
	if data, err = json.Marshal(m); err != nil {
		p.t.Fatal(err)
	}
	p.write(p.c.File, string(data))
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	p := newPatient(t, nil)
	p.write(filepath.Join(p.dir, "a.go"), "package a")
	p.c.Open(filepath.Join(p.dir, "a.go"))
	r := p.examine()
	if !r.Connects || r.Says != "Connected to Test Editor" {
		t.Errorf("%+v", r)
	}
	for _, f := range r.Findings {
		if foreign := f.ID == "views" && f.Level == Note; f.Level != OK && !foreign {
			t.Errorf("%s: %s: %s", f.ID, f.Level, f.What)
		}
	}
	for id, want := range map[string]string{
		"process": "taken for the editor", "temp": filepath.Join(p.base, "gemini", "ide") + " (TMPDIR)",
		"files": fmt.Sprintf("only files of your own (user %d) count", os.Getuid()), "choice": filepath.Base(p.c.File), "workspace": "the workspace has " + p.dir,
		"support": `"Test Editor", as its file says`, "host": "127.0.0.1", "proxy": "no proxy", "port": fmt.Sprint(p.c.Port), "token": "accepted",
		"handshake": "speaks MCP", "tools": "openDiff and closeDiff", "context": "a.go", "mode": p.settings, "version": "does not come back by itself",
	} {
		if f, ok := r.find(id); !ok || !strings.Contains(f.What+"\n"+strings.Join(f.Details, "\n"), want) {
			t.Errorf("%s: %+v, want %q", id, f, want)
		}
	}
	if n := len(p.c.Registry.Pending()); n != 0 {
		t.Errorf("%d diffs were left open", n)
	}
}

// A fault is made for real: the finding that names it, its level, a part of what it says and of the command that mends
// it, a part of what the CLI says, and whether that connects.
type fault struct {
	make            func(*patient)
	id              string
	level           Level
	what, mend, cli string // parts
	connects        bool
}

// faults are the faults of the search: files, folders, users, variables.
func faults() map[string]fault {
	root := os.Getuid() == 0
	return map[string]fault{
		"nothing runs":         {func(p *patient) { _ = p.c.Stop() }, "choice", Fault, "no companion can be found", "pollux serve", "not supported", false},
		"dead port":            {func(p *patient) { _ = p.c.Stop(); p.left(4_190_000, p.c.Port, p.dir) }, "port", Fault, "nobody listens", "--fix", "Failed to connect", false},
		"dead port, PID alive": {func(p *patient) { _ = p.c.Stop(); p.left(os.Getpid(), p.c.Port, p.dir) }, "port", Fault, "nobody listens", "--fix", "Failed to connect", false},
		"a dead file before a living one": {func(p *patient) {
			p.left(os.Getppid(), freePort(p.t), p.dir)
			p.env["GEMINI_CLI_IDE_PID"] = strconv.Itoa(os.Getppid())
		}, "port", Fault, "nobody listens", "--fix", "Failed to connect", false},
		"foreign uid": {func(p *patient) { uid := os.Getuid() + 1; p.uid = &uid }, "files", Warning, "1 discovery file", "sudo", "not supported", false},
		"owned by another": {func(p *patient) {
			if !root {
				uid := os.Getuid() + 1
				p.uid = &uid
				return
			}
			_ = os.Chown(p.c.File, 12345, -1)
		}, "files", Warning, "1 discovery file", "sudo rm ", "not supported", false},
		"symlinked folder": {func(p *patient) {
			_ = os.Symlink("app", filepath.Join(p.base, "link"))
			p.dir = filepath.Join(p.base, "link")
		}, "workspace", OK, "lies in the workspace", "", "Connected", true},
		"cwd outside":    {func(p *patient) { p.dir = p.base }, "workspace", Fault, "is not in the editor's workspace", "pollux serve", "Directory mismatch", false},
		"no folder open": {func(p *patient) { p.file(func(m map[string]any) { m["workspacePath"] = "" }) }, "workspace", Fault, "no folder open", "", "open a workspace folder", false},
		"wrong token":    {func(p *patient) { p.file(func(m map[string]any) { m["authToken"] = "wrong" }) }, "token", Fault, "does not know the file's token", "--fix", "Failed to connect", false},
		"no token":       {func(p *patient) { p.file(func(m map[string]any) { delete(m, "authToken") }) }, "handshake", Fault, "401", "", "Failed to connect", false},
		"other tmpdir": {func(p *patient) {
			p.env["TMPDIR"] = filepath.Join(p.base, "other")
			p.others = []string{filepath.Join(p.base, "gemini", "ide")}
		}, "choice", Fault, "not where the CLI looks", "export TMPDIR=", "not supported", false},
		"no ideInfo": {func(p *patient) { p.file(func(m map[string]any) { delete(m, "ideInfo") }) }, "support", Fault, "not supported here", "TERM_PROGRAM=vscode", "not supported", false},
		"no ideInfo in VS Code": {func(p *patient) {
			p.file(func(m map[string]any) { delete(m, "ideInfo") })
			p.env["TERM_PROGRAM"] = "vscode"
		}, "support", OK, "by the variables", "", "Connected", true},
		"proxy set":            {func(p *patient) { p.env["http_proxy"] = "http://proxy:3128" }, "proxy", Warning, "http_proxy is set", "NO_PROXY", "Connected", true},
		"proxy with exception": {func(p *patient) { p.env["http_proxy"] = "http://proxy:3128"; p.env["NO_PROXY"] = "127.0.0.1" }, "proxy", OK, "leaves 127.0.0.1 out", "", "Connected", true},
		"container":            {func(p *patient) { p.inside = true }, "port", Fault, "host.docker.internal", "REMOTE_CONTAINERS=1", "Failed to connect", false},
		"container over ssh":   {func(p *patient) { p.inside = true; p.env["SSH_CONNECTION"] = "1" }, "host", OK, "127.0.0.1", "", "Connected", true},
	}
}

// faultsOfCLI are the faults of the CLI's settings and release, and files that break the CLI.
func faultsOfCLI() map[string]fault {
	return map[string]fault{
		"IDE mode off":         {func(p *patient) { p.write(p.settings, "{}") }, "mode", Fault, "IDE mode is off", "pollux setup", "disabled", false},
		"settings broken":      {func(p *patient) { p.write(p.settings, "{") }, "mode", Fault, "cannot be read", "", "", false},
		"off on the machine":   rootsAlone(func(p *patient, file string) { p.write(file, `{"ide":{"enabled":false}}`) }, "for everybody on this machine", "disabled"),
		"the machine's broken": rootsAlone(func(p *patient, file string) { p.write(file, `{`) }, "cannot be read", ""),
		"on by the machine": {func(p *patient) {
			p.write(p.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"], `{"ide":{"enabled":true}}`)
			if os.Getuid() != 0 { // it is passed over then
				return
			}
			p.write(p.settings, `{"ide":{"enabled":false}}`)
		}, "mode", OK, "IDE mode is on", "", "Connected", true},
		"the folder's settings broken": {func(p *patient) {
			p.write(filepath.Join(p.dir, ".gemini", "settings.json"), `{"ide":`)
		}, "mode", Fault, ".gemini/settings.json cannot be read", "", "", false},
		"a file that breaks the CLI": {func(p *patient) { p.left(1, freePort(p.t), 7) }, "choice", Fault, "makes the CLI itself fail", "pollux doctor --fix", "", false},
		"a workspace that is a circle of links": {func(p *patient) {
			_ = os.Symlink("two", filepath.Join(p.base, "one"))
			_ = os.Symlink("one", filepath.Join(p.base, "two"))
			p.left(4_190_000, freePort(p.t), filepath.Join(p.base, "one"))
		}, "choice", Fault, "makes the CLI itself fail", "pollux doctor --fix", "", false},
		"a workspace with a zero byte":         {func(p *patient) { p.left(4_190_000, freePort(p.t), "/a%00b") }, "choice", Fault, "makes the CLI itself fail", "pollux doctor --fix", "", false},
		"a zero byte, and its companion lives": {func(p *patient) { p.file(func(m map[string]any) { m["workspacePath"] = "/a%00b" }) }, "choice", Fault, "makes the CLI itself fail", "rm ", "", false},
		"temp folder that nobody used":         {func(p *patient) { p.env["TMPDIR"] = filepath.Join(p.base, "none") }, "temp", Note, "does not exist", "", "not supported", false},
		"fits not":                             {func(p *patient) { p.dir = p.base }, "choice", Note, "only to say that it does not fit", "", "Directory mismatch", false},
		"a command that is none":               {func(p *patient) { p.command(filepath.Join(p.base, "none")) }, "handshake", Fault, "does not take the CLI in", "", "Failed to connect", false},
		"a command that knows no MCP":          {func(p *patient) { p.command("/bin/cat") }, "handshake", Fault, "does not take the CLI in", "", "Failed to connect", false},
		"Host refused":                         {func(p *patient) { p.forbid() }, "handshake", Fault, "(403)", "", "Failed to connect", false},
		"only one tool":                        {func(p *patient) { p.replace(`{"tools":[{"name":"openDiff","inputSchema":{"type":"object"}}]}`, "") }, "tools", Fault, "only openDiff", "", "Connected", false},
		"nothing known of the process": {func(p *patient) {
			p.pid, p.lacks = os.Getpid(), []string{"its environment is hidden (why): this shell's is used instead"}
		}, "seen", Warning, "not everything can be learned", "", "Connected", true},
		"another process": {func(p *patient) { p.pid = os.Getpid() }, "seen", OK, "as process", "", "Connected", true},
		"no JSON":         {func(p *patient) { p.write(p.c.File, "{") }, "files", OK, "1 discovery file", "", "not supported", false},
	}
}

// faultsOfFolders are the faults in a folder's settings, which count when the CLI trusts the folder.
func faultsOfFolders() map[string]fault {
	says := func(ide, trust string) func(*patient) {
		return func(p *patient) {
			p.write(filepath.Join(p.dir, ".gemini", "settings.json"), ide)
			if trust != "" { // else nobody has said
				p.write(filepath.Join(p.base, "trustedFolders.json"), fmt.Sprintf(`{%q: %q} // the CLI's`, p.dir, trust))
			}
		}
	}
	const off, on = `{"ide":{"enabled":false}}`, `{"ide":{"enabled":true}}`
	alone := func(change func(*patient)) func(*patient) {
		return func(p *patient) { p.write(p.settings, "{}"); change(p) }
	}
	unasked := func(p *patient) {
		p.write(filepath.Join(p.dir, ".gemini", "settings.json"), on)
		p.write(p.settings, `{"security":{"folderTrust":{"enabled":false}}}`)
	}
	return map[string]fault{
		"off in the folder":                      {says(off, "TRUST_FOLDER"), "mode", Fault, "switches IDE mode off", "", "disabled", false},
		"off in a folder that may be trusted":    {says(off, ""), "mode", Warning, "goes off once", "", "Connected", true},
		"off in a folder that is not trusted":    {says(off, "DO_NOT_TRUST"), "mode", OK, "IDE mode is on", "", "Connected", true},
		"on in the folder alone":                 {alone(says(on, "TRUST_FOLDER")), "mode", OK, "IDE mode is on", "", "Connected", true},
		"on in the folder, which is distrusted":  {alone(says(on, "DO_NOT_TRUST")), "mode", Fault, "does not trust this folder", "pollux setup", "disabled", false},
		"on in the folder, which may be trusted": {alone(says(on, "")), "mode", Fault, "does not trust this folder", "pollux setup", "disabled", false},
		"trusted folders that are broken": {func(p *patient) {
			p.write(filepath.Join(p.base, "trustedFolders.json"), `{"/x": "TRUST_ALL"}`)
		}, "mode", Fault, "TRUST_ALL", "", "", false},
		"on in the folder, and trust is off": {unasked, "mode", OK, "IDE mode is on", "", "Connected", true},
	}
}

// rootsAlone is a fault of the settings of the machine, which count when they are root's, as a test's are that runs as root.
func rootsAlone(write func(p *patient, file string), what, says string) fault {
	f := fault{func(p *patient) { write(p, p.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"]) }, "mode", Fault, what, "", says, false}
	if os.Getuid() != 0 {
		f.level, f.what, f.cli, f.connects = OK, "IDE mode is on", "Connected", true
	}
	return f
}

// faultsOfCompanions are the faults of the program that listens on a file's port.
func faultsOfCompanions() map[string]fault {
	return map[string]fault{
		"no tools": {func(p *patient) { p.replace(`{"tools":[]}`, "") }, "tools", Fault, "no tools", "", "Connected", false},
		"a context that does not parse": {func(p *patient) {
			p.replace("", `{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{"workspaceState":{"openFiles":[{"path":"/x"}]}}}`)
		}, "context", Fault, "disconnected at once", "conform", "Connected", false},
		"no context":    {func(p *patient) { p.replace("", "-") }, "context", Fault, "no context", "conform", "Connected", false},
		"not HTTP":      {func(p *patient) { p.listen(func(c net.Conn) { fmt.Fprint(c, "SSH-2.0\r\n") }) }, "token", Fault, "does not speak HTTP", "", "Failed to connect", false},
		"never answers": {func(p *patient) { p.listen(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) }, "port", Fault, "does not answer", "", "Failed to connect", false},
		"stale variables": {func(p *patient) {
			_ = p.c.Stop()
			p.env["GEMINI_CLI_IDE_SERVER_PORT"] = strconv.Itoa(p.c.Port)
			p.env["GEMINI_CLI_IDE_WORKSPACE_PATH"] = p.dir
			p.env["TERM_PROGRAM"] = "vscode"
		}, "port", Fault, "nobody listens", "unset GEMINI_CLI_IDE_SERVER_PORT", "Failed to connect", false},
		"stale PID":                {func(p *patient) { p.env["GEMINI_CLI_IDE_PID"] = "4190001" }, "process", Note, "has ended", "unset", "Connected", true},
		"old CLI":                  {func(p *patient) { p.cli("0.30.1") }, "version", Fault, "0.30.1", "latest", "Connected", false},
		"rather old CLI":           {func(p *patient) { p.cli("0.2.0"); p.env["GEMINI_CLI_IDE_PID"] = strconv.Itoa(os.Getpid()) }, "version", Warning, "0.2.0", "latest", "Connected", true},
		"no CLI":                   {func(p *patient) { p.env["PATH"] = "" }, "version", Note, "not in PATH", "npm install", "Connected", true},
		"neither port nor command": {func(p *patient) { p.file(func(m map[string]any) { delete(m, "port") }) }, "port", Fault, "neither a port nor a command", "", "", false},
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	unmended := map[string]bool{"never answers": true} // its process may live: nothing is swept
	commands := regexp.MustCompile(`^(pollux (serve|setup|doctor --fix|conform --pid \d+)|export \w+=(\S+|'[^']+')|unset [A-Z_ ]+|(sudo )?rm (\S+|'[^']+')|npm install -g \S+)$`)
	all := faults()
	maps.Copy(all, faultsOfCLI())
	maps.Copy(all, faultsOfFolders())
	maps.Copy(all, faultsOfCompanions())
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, nil)
			test.make(p)
			r := p.examine()
			f, ok := r.find(test.id)
			if !ok {
				t.Fatalf("no finding %q: %+v", test.id, r.Findings)
			}
			if unmended[name] && f.Mend != "" {
				t.Errorf("%q mends nothing", f.Mend)
			}
			if f.Level != test.level || !strings.Contains(f.What, test.what) || !strings.Contains(f.Mend, test.mend) {
				t.Errorf("%+v", f)
			}
			for _, f := range r.Findings {
				if f.Level != OK && (f.Why == "" && f.ID != "choice" || f.Level == Fault && f.Mend+f.Remark == "") {
					t.Errorf("it does not say why, or what to do: %+v", f)
				}
				if f.Mend != "" && !commands.MatchString(f.Mend) {
					t.Errorf("%s: %q is no command", f.ID, f.Mend)
				}
			}
			if r.Connects != test.connects || !strings.Contains(r.Says, test.cli) {
				t.Errorf("connects %v, says %q: %+v", r.Connects, r.Says, r.Findings)
			}
		})
	}
}

// left leaves a discovery file as a crash does.
func (p *patient) left(pid, port int, workspace any) {
	p.t.Helper()
	data, err := json.Marshal(map[string]any{"port": port, "workspacePath": workspace, "authToken": "t", "ideInfo": map[string]string{"name": "x", "displayName": "Left Behind"}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(filepath.Join(p.base, "gemini", "ide", discovery.FileName(pid, port)), string(data))
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listen puts something else behind the discovery file.
func (p *patient) listen(serve func(net.Conn)) {
	p.t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	p.file(func(m map[string]any) { m["port"] = l.Addr().(*net.TCPAddr).Port })
}

// command puts a command in the place of the port.
func (p *patient) command(name string) {
	p.file(func(m map[string]any) {
		delete(m, "port")
		m["stdio"] = map[string]any{"command": name}
	})
}

// forbid puts something behind the file that refuses the name by which it is called.
func (p *patient) forbid() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	p.t.Cleanup(s.Close)
	p.file(func(m map[string]any) { m["port"] = s.Listener.Addr().(*net.TCPAddr).Port })
}

// replace puts a companion behind the file that answers tools/list or greets as given.
func (p *patient) replace(tools, greeting string) {
	p.t.Helper()
	if tools == "" {
		tools = `{"tools":[{"name":"openDiff","inputSchema":{"type":"object"}},{"name":"closeDiff","inputSchema":{"type":"object"}}]}`
	}
	if greeting == "" {
		greeting = `{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{}}`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			if r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				if greeting != "-" {
					fmt.Fprintf(w, "data: %s\n\n", greeting)
				}
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			return
		}
		var m struct {
			ID     *int
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		result := tools
		if m.Method == "initialize" {
			result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, result)
	}))
	p.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	p.file(func(m map[string]any) { m["port"] = s.Listener.Addr().(*net.TCPAddr).Port })
}

// The safe repairs: a file that was left behind goes, IDE mode is switched on, and all is well then.
func TestRepair(t *testing.T) {
	t.Parallel()
	p := newPatient(t, nil)
	p.left(os.Getppid(), freePort(t), p.dir)
	p.env["GEMINI_CLI_IDE_PID"] = strconv.Itoa(os.Getppid())
	p.write(p.settings, "{\n  // mine\n}")
	r := p.examine()
	if r.Connects {
		t.Fatal("two faults, and it connects")
	}
	done, err := Repair(t.Context(), p.options(), r)
	if err != nil || len(done) != 2 {
		t.Errorf("%q, %v", done, err)
	}
	if r = p.examine(); !r.Connects {
		t.Errorf("after the repair: %+v", r.Findings)
	}
	if data, _ := os.ReadFile(p.settings); !strings.Contains(string(data), "// mine") {
		t.Errorf("the user's comment is gone: %s", data)
	}
	if _, err := os.Stat(p.c.File); err != nil {
		t.Errorf("the living one's file: %v", err)
	}
}

// A file that breaks every CLI's search goes when its companion has gone, and stays when it lives.
func TestRepairOfWhatBreaks(t *testing.T) {
	t.Parallel()
	for name, workspace := range map[string]any{"a number": 7, "a zero byte": "/a%00b"} {
		p := newPatient(t, nil)
		p.left(4_190_000, freePort(t), workspace)
		done, err := Repair(t.Context(), p.options(), p.examine())
		if err != nil || len(done) != 1 {
			t.Errorf("%s: %q, %v", name, done, err)
		}
		if r := p.examine(); !r.Connects {
			t.Errorf("%s, after the repair: %+v", name, r.Findings)
		}
	}
	p := newPatient(t, nil)
	p.file(func(m map[string]any) { m["workspacePath"] = "/a%00b" })
	if done, err := Repair(t.Context(), p.options(), p.examine()); err != nil || len(done) != 0 {
		t.Errorf("%q, %v", done, err)
	}
	if _, err := os.Stat(p.c.File); err != nil {
		t.Errorf("the living one's file: %v", err)
	}
}

// doctor is a visitor: its session is gone when it has looked, and an open diff stays as it is.
func TestDoesNotDisturb(t *testing.T) {
	t.Parallel()
	p := newPatient(t, nil)
	c := client.New(p.options().World, nil)
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.OpenDiff(ctx, filepath.Join(p.dir, "x"), "x")
		done <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); len(p.c.Registry.Pending()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no diff")
		}
	}
	if r := p.examine(); !r.Connects {
		t.Errorf("%+v", r.Findings)
	}
	if n := len(p.c.Registry.Pending()); n != 1 {
		t.Errorf("%d diffs are open", n)
	}
	if s := c.Status(); s.State != client.Connected {
		t.Errorf("the CLI lost its connection: %+v", s)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What status shows: the living, the dead, the strange, and not what is another user's.
func TestSurvey(t *testing.T) {
	t.Parallel()
	p := newPatient(t, nil)
	p.left(4_190_002, freePort(t), "/nowhere")
	p.left(4_190_003, p.c.Port, "/nowhere")
	p.write(filepath.Join(p.base, "gemini", "ide", "gemini-ide-server-7-7.json"), "{")
	folders := []string{filepath.Join(p.base, "gemini", "ide")}
	got := map[int]Health{}
	for _, c := range Survey(t.Context(), nil, folders, p.dir) {
		got[c.PID] = c.Health
		if c.Here != (c.PID == os.Getpid()) {
			t.Errorf("%+v", c)
		}
	}
	want := map[int]Health{os.Getpid(): Healthy, 4_190_002: Dead, 4_190_003: Stranger, 7: Unreadable}
	for pid, health := range want {
		if got[pid] != health {
			t.Errorf("%d: %q, want %q", pid, got[pid], health)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%+v", got)
	}
}

// find returns the finding of a step; ok is false when there is none.
func (r *Report) find(id string) (f Finding, ok bool) {
	for _, f := range r.Findings {
		if f.ID == id {
			return f, true
		}
	}
	return Finding{}, false
}
