//go:build unix

package editor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/core/text"
	"github.com/pollux-companion/pollux/internal/rpc"
)

// stubKeys are what the stub understands, a line each.
const stubKeys = `{"open": "open {path}\n", "right": "right\n", "left": "left\n", "select": "select\n", "unselect": "unselect\n", "nofile": "nofile\n",
  "edit": "edit {text}\n", "accept": "accepted\n", "reject": "rejected\n", "cancel": "cancel\n", "variable": "variable {name} {path}\n", "quit": "quit\n"}`

type object = map[string]any

// A stub is a small editor with a plugin of version 2 that has at most one fault.
type stub struct {
	fault   string
	out     io.WriteCloser
	events  chan func()
	env     map[string]string
	ready   bool
	path    string // the file with the focus, "" for none
	text    string
	at      int // the cursor, as a byte of the text
	chosen  bool
	told    string
	timer   bool
	open    []object
	edits   int
	asked   any
	waits   string // the diff that a resolveDiff waits for
	stopped bool
}

// main plays the editor until its user quits, or its terminal is gone.
func (s *stub) main() {
	s.env, s.events = map[string]string{}, make(chan func(), 100)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			command, rest, _ := strings.Cut(lines.Text(), " ")
			s.events <- func() { s.key(command, rest) }
		}
		os.Exit(0)
	}()
	s.start()
	for do := range s.events {
		do()
	}
}

// is says whether the stub has a fault.
func (s *stub) is(fault string) bool { return s.fault == fault }

func (s *stub) start() {
	s.ready, s.told = false, ""
	cmd := exec.Command("pollux", "lsp")
	in, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if s.out, err = cmd.StdinPipe(); err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	dir, _ := os.Getwd()
	folder, pid := uriOf(dir), os.Getpid()
	announcement := object{"version": 2, "context": true, "openDiff": true, "env": true, "ide": object{"name": "stub", "displayName": "Stub"}}
	switch s.fault {
	case "no name":
		delete(announcement, "ide")
	case "no process":
		pid = 1 << 30
	case "another folder":
		folder = "file:///"
	}
	if len(s.open) > 0 && !s.is("forgets diffs") {
		var shown []object
		for _, d := range s.open {
			shown = append(shown, object{"diffId": d["diffId"], "filePath": d["filePath"], "content": d["newText"]})
			d["version"], d["baseVersion"] = 1, 0
		}
		announcement["openDiffs"] = shown
	}
	s.edits = 0
	s.send(object{"id": 1, "method": "initialize", "params": object{"processId": pid, "workspaceFolders": []object{{"uri": folder, "name": "p"}}, "initializationOptions": object{"pollux": announcement}}})
	if s.is("hasty") {
		s.notify("textDocument/didOpen", object{})
	}
	go s.read(in, cmd)
}

func (s *stub) read(in io.Reader, cmd *exec.Cmd) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if s.is("bytes as they come") && err == nil && len(line) > 4000 {
			line = line[:4000]
		}
		if err != nil || s.is("small messages") && len(line) > 1<<20 {
			break
		}
		s.events <- func() { s.take(line) }
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	s.events <- func() {
		if s.ready = false; !s.stopped && !s.is("stays dead") {
			s.start()
		}
	}
}

func (s *stub) send(m object) {
	m["jsonrpc"] = "2.0"
	if s.is("no version") {
		delete(m, "jsonrpc")
	}
	data, _ := json.Marshal(m)
	_, _ = s.out.Write(append(data, '\n'))
}

func (s *stub) notify(method string, params any) { s.send(object{"method": method, "params": params}) }

func (s *stub) take(line []byte) {
	var m struct {
		ID     any
		Method string
		Params object
		Result struct {
			Capabilities struct {
				Experimental struct {
					Pollux struct{ Env map[string]string }
				}
			}
		}
		Error *rpc.Error
	}
	err := json.Unmarshal(line, &m)
	switch {
	case err != nil && s.is("malformed ends it"):
		s.out.Close()
	case err != nil:
	case m.Method == "" && m.ID == 1.0 && !s.ready:
		s.set(m.Result.Capabilities.Experimental.Pollux.Env)
		if s.ready = true; !s.is("no initialized") {
			s.notify("initialized", object{})
		}
		if s.path == "" || !s.is("no context again") {
			s.context()
		}
	case m.Method == "" && m.ID == 2.0:
		if m.Error == nil || s.is("the view goes") {
			s.forget(s.waits)
		}
	case m.Method == "":
	case m.ID == nil:
		s.notified(m.Method, m.Params)
	default:
		s.requested(m.ID, m.Method, m.Params)
	}
}

func (s *stub) set(env map[string]string) {
	for name, value := range env {
		if !s.is("no environment") {
			s.env[name] = value
		}
	}
}

func (s *stub) notified(method string, p object) {
	d := s.find(p["diffId"])
	switch method {
	case "pollux/didLearnToFly":
		if s.is("unknown ends it") {
			s.out.Close()
		}
	case "pollux/didChangeEnv":
		for name, value := range p["set"].(object) {
			if !s.is("environment once") {
				s.set(map[string]string{name: value.(string)})
			}
		}
		for _, name := range p["unset"].([]any) {
			if !s.is("nothing is unset") {
				delete(s.env, name.(string))
			}
		}
	case "pollux/didChangeBase", "pollux/didChangeProposal":
		if d != nil && !s.is("ignores what is newer") {
			d["newText"], d["version"] = p["content"], p["version"]
		}
	case "pollux/didChangeStatus":
		if p["weather"] != nil && s.is("members end it") || p["sharing"] == "nobody looks" && s.is("status ends it") {
			s.out.Close()
		}
	case "$/cancelRequest":
		if s.asked != nil && s.is("says yes") {
			s.send(object{"id": s.asked, "result": object{"choice": "Yes"}})
		}
		s.asked = nil
	}
}

func (s *stub) requested(id any, method string, p object) {
	d := s.find(p["diffId"])
	var result any
	failed := object(nil)
	switch {
	case method == "pollux/openDiff":
		if s.is("new files unknown") && p["isNewFile"] == true || s.is("one diff") && len(s.open) > 0 {
			failed = object{"code": -32001, "message": "busy"}
			break
		}
		s.show(p)
		if result = (object{"opened": true}); s.is("null for yes") {
			result = nil
		}
	case method == "pollux/closeDiff" && d == nil && !s.is("unknown is closed"):
		failed = object{"code": rpc.CodeInvalidParams, "message": "no such diff"}
	case method == "pollux/closeDiff" && d == nil:
		result = object{"content": ""}
	case method == "pollux/closeDiff":
		result = object{"content": s.content(d), "version": d["version"]}
		s.forget(d["diffId"].(string))
		switch s.fault {
		case "decides what is closed":
			s.notify("pollux/diffResolved", object{"diffId": d["diffId"], "outcome": "rejected"})
		case "writes the file":
			_ = os.WriteFile(d["filePath"].(string), []byte(s.content(d)), 0o600)
		}
	case method == "pollux/openDocument":
		path, _ := pathOf(p["uri"].(string))
		at := p["selection"].(object)["start"].(object)
		if result = (object{"opened": true}); !s.is("only says opened") {
			s.visit(path, int(at["line"].(float64)), int(at["character"].(float64)))
		}
	case method == "pollux/saveDocument":
		result = object{"saved": !s.is("saves nothing")}
	case method == "pollux/ask":
		s.asked = id
		return
	case s.is("null for unknown"):
	default:
		failed = object{"code": rpc.CodeNoMethod, "message": "no " + method}
	}
	if s.is("ids are numbers") {
		id, _ = id.(float64)
	}
	if failed != nil {
		s.send(object{"id": id, "error": failed})
		return
	}
	s.send(object{"id": id, "result": result})
}

func (s *stub) find(id any) object {
	for _, d := range s.open {
		if d["diffId"] == id {
			return d
		}
	}
	return nil
}

func (s *stub) show(p object) {
	for _, d := range s.open {
		if d["filePath"] == p["filePath"] {
			if s.is("the first stays") {
				p["newText"] = d["newText"]
			}
			s.forget(d["diffId"].(string))
			break
		}
	}
	s.open = append(s.open, p)
	s.context()
}

func (s *stub) forget(id string) {
	for i, d := range s.open {
		if d["diffId"] == id {
			s.open = append(s.open[:i:i], s.open[i+1:]...)
			break
		}
	}
	s.context()
}

// content is the text of a proposal, with the fault that the stub has.
func (s *stub) content(d object) string {
	t := d["newText"].(string)
	switch s.fault {
	case "LF":
		t = strings.ReplaceAll(t, "\r\n", "\n")
	case "a last newline":
		if !strings.HasSuffix(t, "\n") {
			t += "\n"
		}
	case "no mark":
		t = strings.TrimPrefix(t, "\ufeff")
	case "cut":
		t = t[:min(len(t), 1<<19)]
	}
	return t
}

func (s *stub) visit(path string, line, character int) {
	data, _ := os.ReadFile(path)
	s.path, s.text, s.chosen = path, string(data), false
	s.at = max(0, offset(s.text, place{&line, &character}))
	s.context()
}

// context tells what the user looks at, a moment later.
func (s *stub) context() {
	if s.is("each key") {
		s.tell()
		return
	}
	if !s.timer {
		s.timer = true
		time.AfterFunc(50*time.Millisecond, func() { s.events <- func() { s.timer = false; s.tell() } })
	}
}

func (s *stub) position(at int) object {
	before := s.text[:at]
	last := before[strings.LastIndex(before, "\n")+1:]
	units := text.UTF16Len(last)
	switch s.fault {
	case "bytes":
		units = len(last)
	case "characters":
		units = len([]rune(last))
	case "short lines":
		units = min(units, 5000)
	}
	return object{"line": strings.Count(before, "\n"), "character": units}
}

func (s *stub) tell() {
	if !s.ready {
		return
	}
	c := object{"textDocument": nil, "openDocuments": []string{}}
	if s.path != "" && len(s.open) == 0 {
		uri := uriOf(s.path)
		if s.is("names as they are") {
			uri = "file://" + s.path
		}
		c = object{"textDocument": object{"uri": uri}, "position": s.position(s.at), "openDocuments": []string{uri}}
		if line, _, _ := strings.Cut(s.text, "\n"); s.chosen {
			chosen := line
			if s.is("selects too much") {
				chosen += " and more"
			}
			c["selection"] = object{"start": s.position(0), "end": s.position(len(line)), "text": chosen}
		}
	}
	data, _ := json.Marshal(c)
	if string(data) != s.told || s.is("repeats itself") {
		s.told = string(data)
		s.notify("pollux/didChangeContext", c)
	}
}

func (s *stub) key(command, rest string) {
	switch command {
	case "open":
		if !s.is("opens in silence") {
			s.visit(rest, 0, 0)
		}
	case "right", "left":
		if _, size := nextRune(s.text[s.at:]); command == "right" {
			s.at += size
		} else if s.at > 0 {
			s.at -= lastRune(s.text[:s.at])
		}
		s.context()
	case "select", "unselect":
		s.chosen = command == "select" || s.is("selects for ever")
		s.context()
	case "nofile":
		if s.path = ""; !s.is("everything is a file") {
			s.context()
		}
	case "variable":
		name, path, _ := strings.Cut(rest, " ")
		_ = os.WriteFile(path, []byte(s.env[name]+"\n"), 0o600)
	case "cancel":
		if s.asked != nil {
			s.send(object{"id": s.asked, "result": object{"choice": map[bool]any{false: nil, true: "Yes"}[s.is("says yes")]}})
			s.asked = nil
		}
	case "quit":
		s.stopped = true
		s.send(object{"id": 3, "method": "shutdown"})
		if s.is("waits for ever") {
			return
		}
		s.notify("exit", nil)
		os.Exit(0)
	default:
		if len(s.open) > 0 {
			s.decide(s.open[0], command, rest)
		}
	}
}

// decide edits, accepts or rejects the diff at hand.
func (s *stub) decide(d object, command, rest string) {
	before := d["newText"]
	if command == "edit" {
		if d["readOnly"] != "" && !s.is("edits what is fixed") {
			return
		}
		d["newText"], d["before"] = rest+before.(string), before
		if s.edits++; !s.is("edits in silence") {
			s.notify("pollux/didChangeDiff", object{"diffId": d["diffId"], "version": s.edits, "from": d["version"], "content": d["newText"]})
		}
		return
	}
	params := object{"diffId": d["diffId"], "version": d["version"], "baseVersion": d["baseVersion"], "outcome": command}
	if command == "accepted" {
		if params["content"] = s.content(d); s.is("accepts the first text") && d["before"] != nil {
			params["content"] = d["before"]
		}
	}
	s.waits = d["diffId"].(string)
	s.send(object{"id": 2, "method": "pollux/resolveDiff", "params": params})
	switch s.fault {
	case "decides twice":
		s.send(object{"id": 2, "method": "pollux/resolveDiff", "params": params})
	case "accepts into the file":
		_ = os.WriteFile(d["filePath"].(string), []byte(fmt.Sprint(d["newText"])), 0o600)
	}
}
