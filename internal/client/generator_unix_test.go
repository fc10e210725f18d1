//go:build unix

package client

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A generator makes worlds and messages, most of them nearly right.
type generator struct {
	t    *testing.T
	r    *rand.Rand
	base string
}

func (g *generator) one(of ...string) string { return of[g.r.IntN(len(of))] }
func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// folders makes the folders in which the cases put workspaces and working folders.
func (g *generator) folders() {
	g.t.Helper()
	for _, dir := range []string{"ws/sub/deep", "ws2", "p q", "p%20q", "100%", "日本/子", "a:b/c", "..odd"} {
		if err := os.MkdirAll(filepath.Join(g.base, dir), 0o700); err != nil {
			g.t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "ws", "linksub": "ws/sub", "dangling": "nowhere/x", "loop1": "loop2", "loop2": "loop1"} {
		if err := os.Symlink(target, filepath.Join(g.base, link)); err != nil {
			g.t.Fatal(err)
		}
	}
	g.write(filepath.Join(g.base, "file"), "x")
}

func (g *generator) write(path, text string) {
	g.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *generator) root() string {
	in := func(name string) string { return g.base + "/" + name }
	if g.chance(45) {
		return g.one(in("ws"), g.base, in("link"), in("ws/"), in("ws/sub"))
	}
	return g.one(in("ws2"), in("p q"), in("p%20q"), in("p%2520q"), in("100%"), in("日本"), in("a%3Ab"), in("..odd"),
		in("missing"), in("dangling"), in("file"), in("file/x"), in("ws/../ws2"), in("linksub/.."), ".", "..", "", "sub",
		"/", "file://"+g.base+"/ws", "file://other"+g.base+"/ws", "file://localhost"+g.base+"/ws", "file://"+g.base+"/p%20q",
		in("ws%00"), in("loop1"), in("%zz"), in("%e6%97%a5%e6%9c%ac"), in("%ff"), "~")
}

func (g *generator) workspace() string {
	roots := []string{g.root()}
	for g.chance(25) {
		roots = append(roots, g.root())
	}
	return strings.Join(roots, ":")
}

// choice writes a folder of discovery files and an environment.
func (g *generator) choice(n, shell int) choiceCase {
	g.t.Helper()
	tmp := filepath.Join(g.base, "tmp"+strconv.Itoa(n))
	c := choiceCase{Do: "choose", PID: 4_000_001 + g.r.IntN(3), Command: g.one("/usr/share/code/code --x", "/opt/idea/bin/idea", "tmux", "")}
	c.Dir = filepath.Join(g.base, g.one("ws", "ws", "ws/sub", "ws/sub/deep", "ws2", "p q", "p%20q", "日本/子", "a:b/c", "..odd"))
	c.Env = map[string]string{g.one("TMPDIR", "TMPDIR", "TMPDIR", "TMP", "TEMP"): tmp + g.one("", "", "/")}
	if g.chance(9) {
		c.Tree, c.shell = true, shell
	}
	if c.Tree && g.chance(60) {
		c.Env["GEMINI_CLI_IDE_PID"] = g.one("4000001", "4000002", strconv.Itoa(os.Getpid()), "0", "-3", "x", "4000002 ", "1")
	}
	if g.chance(30) {
		c.Env["GEMINI_CLI_IDE_SERVER_PORT"] = g.one("5000", "5001", "5002", "5003", "", "none", "null", "5001.5")
	}
	if g.chance(15) {
		c.Env["GEMINI_CLI_IDE_WORKSPACE_PATH"] = g.workspace()
	}
	if g.chance(50) {
		c.Env["TERM_PROGRAM"] = g.one("vscode", "sublime", "Zed", "zed", "tmux", "")
	}
	for _, name := range []string{"ZED_SESSION_ID", "XCODE_VERSION_ACTUAL", "CURSOR_TRACE_ID", "CODESPACES", "CLOUD_SHELL",
		"MONOSPACE_ENV", "REPLIT_USER", "ANTIGRAVITY_CLI_ALIAS", "__COG_BASHRC_SOURCED", "SSH_CONNECTION", "REMOTE_CONTAINERS"} {
		if g.chance(4) {
			c.Env[name] = g.one("1", "x", "")
		}
	}
	for name, values := range map[string][]string{"TERMINAL_EMULATOR": {"JetBrains-JediTerm", "xterm"}, "TERM_PRODUCT": {"Trae", "trae"}, "POSITRON": {"1", "0"}} {
		if g.chance(6) {
			c.Env[name] = g.one(values...)
		}
	}
	if g.chance(8) {
		c.Env["GEMINI_CLI_IDE_SERVER_STDIO_COMMAND"] = g.one("prog", "")
		c.Env["GEMINI_CLI_IDE_SERVER_STDIO_ARGS"] = g.one(`["a","b"]`, `[]`, `"x"`, `{`, "", `["a b"]`)
	}
	if g.chance(95) {
		g.files(filepath.Join(tmp, "gemini", "ide"))
	}
	return c
}

func (g *generator) files(dir string) {
	g.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		g.t.Fatal(err)
	}
	for range g.r.IntN(6) {
		pid := g.one("4000001", "4000001", "4000002", "4000003", "1", strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid()), "0", "007", "99999999999999999999", "2147483648")
		name := fmt.Sprintf("gemini-ide-server-%s-%d.json", pid, 5000+g.r.IntN(4))
		switch g.r.IntN(20) {
		case 0:
			name = fmt.Sprintf("gemini-ide-server-%s.json", pid)
		case 1:
			name = g.one("gemini-ide-server-4000001-5000.json.tmp", "gemini-ide-server-x-5000.json", "gemini-ide-server-+1-5000.json", "gemini-ide-server-1-5000-1.json", "Gemini-ide-server-1-5000.json", "gemini-ide-server--5000.json")
		}
		path := filepath.Join(dir, name)
		if g.chance(4) {
			_ = os.Mkdir(path, 0o700)
			continue
		}
		_ = os.RemoveAll(path)
		g.write(path, g.content(filepath.Base(dir)+name))
		if g.chance(6) && os.Getuid() == 0 {
			_ = os.Chown(path, 12345, -1)
		}
	}
}

func (g *generator) content(mark string) string {
	if g.chance(8) {
		return g.one("", "{", "[]", "null", "5", `"x"`, "\ufeff{}", "{}", `{"port":5000} x`, `[{"port":5000}]`, " ", `{"workspacePath":"/","mark":"twice","mark":"twice2"}`)
	}
	m := map[string]any{"mark": mark, "authToken": g.one("t", "", "u")}
	switch g.r.IntN(12) {
	case 0:
	case 1:
		m["port"] = g.one("5001", "", "x")
	case 2:
		m["port"] = []any{nil, 5001.5, true, 1e21, 0}[g.r.IntN(5)]
	default:
		m["port"] = 5000 + g.r.IntN(4)
	}
	switch g.r.IntN(40) {
	case 0, 1:
	case 2:
		m["workspacePath"] = []any{nil, 7, false, []string{"/"}}[g.r.IntN(4)]
	case 3:
		m["WorkspacePath"] = "/"
	default:
		m["workspacePath"] = g.workspace()
	}
	if g.chance(60) {
		m["ideInfo"] = map[string]any{"name": g.one("vim", "vim", "x", ""), "displayName": g.one("Vim", "Editor", "")}
	} else if g.chance(10) {
		m["ideInfo"] = []any{nil, "x", 5}[g.r.IntN(3)]
	}
	data, err := json.Marshal(m)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(data)
}

// show tells a case so that a person can replay it.
func (g *generator) show(c choiceCase) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v\n", c)
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		files, _ := filepath.Glob(filepath.Join(c.Env[name], "gemini", "ide", "*"))
		for _, f := range files {
			data, _ := os.ReadFile(f)
			fmt.Fprintf(&b, "  %s: %s\n", filepath.Base(f), data)
		}
	}
	return b.String()
}

func (g *generator) contextMessage() string {
	files := []any{}
	for range g.r.IntN(14) {
		files = append(files, g.file())
	}
	state := map[string]any{"openFiles": files}
	if g.chance(5) {
		delete(state, "openFiles")
	}
	if g.chance(3) {
		state["openFiles"] = []any{nil, "x", map[string]any{}}[g.r.IntN(3)]
	}
	if g.chance(20) {
		state["isTrusted"] = []any{true, false, true, false, nil, "yes"}[g.r.IntN(6)]
	}
	params := map[string]any{"workspaceState": state, "unknown": 1}
	switch g.r.IntN(40) {
	case 0:
		params = map[string]any{}
	case 1:
		params["workspaceState"] = nil
	case 2:
		params["_meta"] = map[string]any{"a": 1}
	}
	m := map[string]any{"jsonrpc": "2.0", "method": "ide/contextUpdate", "params": params}
	switch g.r.IntN(40) {
	case 0:
		delete(m, "params")
	case 1:
		m["params"] = []any{}
	case 2:
		m["extra"] = 1
	case 3:
		m["jsonrpc"] = "1.0"
	}
	data, err := json.Marshal(m)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(data)
}

func (g *generator) file() any {
	f := map[string]any{"path": g.one("/w/a", "/w/b", "日本", ""), "timestamp": float64(g.r.IntN(6)) + 0.5*float64(g.r.IntN(2)), "more": true}
	if g.chance(35) {
		f["isActive"] = g.chance(80)
	}
	if g.chance(40) {
		f["cursor"] = map[string]any{"line": g.r.IntN(9), "character": g.r.IntN(9), "x": 1}
	}
	if g.chance(40) {
		f["selectedText"] = g.one("", "x", "a\u2028b", strings.Repeat("a", 16384), strings.Repeat("a", 16385), strings.Repeat("a", 16383)+"😀", strings.Repeat("é😀", 6000), strings.Repeat("日", 16390))
	}
	if g.chance(2) {
		f[g.one("path", "timestamp", "isActive", "cursor", "selectedText")] = []any{nil, "5", 5, true}[g.r.IntN(4)]
	}
	if g.chance(1) {
		delete(f, g.one("path", "timestamp"))
	}
	if g.chance(1) {
		f["cursor"] = map[string]any{"line": 1}
	}
	return f
}

func (g *generator) outcomeMessage() string {
	params := map[string]any{"filePath": g.one("/w/a", "C:\\x", ""), "content": g.one("", "x\r\n", "日")}
	if g.chance(30) {
		delete(params, g.one("filePath", "content"))
	}
	if g.chance(20) {
		params[g.one("filePath", "content")] = []any{nil, 5}[g.r.IntN(2)]
	}
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "ide/diff" + g.one("Accepted", "Rejected", "Closed"), "params": params})
	if err != nil {
		g.t.Fatal(err)
	}
	return string(data)
}
