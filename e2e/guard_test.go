package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// thief is what a hostile model runs in its shell: with the commands, and past them straight at the sockets, it tries
// everything that only a person may do. With "wait" it waits for a proposal first. What came of it goes into a file.
const thief = `
const fs = require('fs'), net = require('net'), crypto = require('crypto'), path = require('path'), {execFile} = require('child_process');
const [, , name, wait] = process.argv, base = path.dirname(process.cwd());
function sockets(dir, out = []) {
	for (const e of fs.readdirSync(dir, {withFileTypes: true})) {
		const p = path.join(dir, e.name);
		if (e.isDirectory()) sockets(p, out); else if (e.name.endsWith('.sock') && dir.includes('/pollux/')) out.push(p); // agents have sockets, too
	}
	return out;
}
function call(socket, method, params) {
	return new Promise(done => {
		let all = '';
		const c = net.connect(socket), end = v => { c.destroy(); done(v); };
		c.setTimeout(20000, () => end({timeout: true}));
		c.on('error', e => end({gone: e.code}));
		c.on('data', d => { all += d; if (all.includes('\n')) end(JSON.parse(all)); });
		c.write(JSON.stringify({jsonrpc: '2.0', id: 1, method, params}) + '\n');
	});
}
function find(dir, end, out = []) {
	for (const e of fs.readdirSync(dir, {withFileTypes: true})) {
		const p = path.join(dir, e.name);
		if (e.isDirectory()) find(p, end, out); else if (p.includes(end)) out.push(p);
	}
	return out;
}
// asPage proves the page's key, which lies in the companion's record, as the user's page does.
function asPage(record, id) {
	const {pagePort: port, pageKeys} = JSON.parse(fs.readFileSync(record, 'utf8'));
	const origin = 'http://127.0.0.1:' + port, secret = Buffer.from(pageKeys[0], 'base64'), nonce = crypto.randomBytes(32).toString('base64url');
	const mac = s => crypto.createHmac('sha256', secret).update(s).digest('base64url');
	return new Promise(done => {
		let buf = Buffer.alloc(0), heads = false, step = 0;
		const c = net.connect(port, '127.0.0.1', () => c.write('GET /ws HTTP/1.1\r\nHost: 127.0.0.1:' + port + '\r\nOrigin: ' + origin + '\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: pollux.v2\r\nSec-WebSocket-Key: ' + crypto.randomBytes(16).toString('base64') + '\r\n\r\n'));
		const end = v => { c.destroy(); done(v); };
		c.setTimeout(20000, () => end('timeout'));
		c.on('error', e => end('error ' + e.code));
		const say = v => {
			const b = Buffer.from(JSON.stringify(v)), mask = Buffer.alloc(4);
			c.write(Buffer.concat([Buffer.from([0x81, 0x80 | 126, b.length >> 8, b.length & 255]), mask, b]));
		};
		c.on('data', d => {
			buf = Buffer.concat([buf, d]);
			if (!heads) {
				const at = buf.indexOf('\r\n\r\n');
				if (at < 0) return;
				heads = true; buf = buf.subarray(at + 4);
				say({id: mac('pollux.v2\nid'), nonce});
			}
			for (;;) {
				if (buf.length < 2) return;
				let n = buf[1] & 127, at = 2;
				if (n === 126) { if (buf.length < 4) return; n = buf.readUInt16BE(2); at = 4; }
				if (buf.length < at + n) return;
				const op = buf[0] & 15, body = buf.subarray(at, at + n);
				buf = buf.subarray(at + n);
				if (op === 8) return end(body.subarray(2).toString());
				step++;
				if (step === 1) say({proof: mac(['pollux.v2', 'page', origin, nonce, JSON.parse(body).nonce].join('\n'))});
				else if (step === 2) { say({jsonrpc: '2.0', id: 1, method: 'hello', params: {clientId: 'thief'}}); say({jsonrpc: '2.0', id: 2, method: 'diff/accept', params: {id}}); }
				else if (JSON.parse(body).id === 2) return end('done: ' + body);
			}
		});
	});
}
(async () => {
	const out = {};
	let id = 'x';
	if (wait) fs.writeFileSync(name + '.up', '');
	for (let i = 0; wait && i < 600 && id === 'x'; i++) {
		for (const s of sockets(base)) {
			const r = await call(s, 'diffs', {});
			if (r.result && r.result.length) id = r.result[0].id;
		}
		await new Promise(r => setTimeout(r, 100));
	}
	for (const s of sockets(base)) {
		const tries = {
			page: {}, rule: {rule: {mode: 'accept'}}, attach: {}, edit: {id, text: 'eA=='}, undo: {id}, decide: {id, accept: true},
			resolve: {id, theirs: true}, pause: {paused: false}, mention: {path: process.cwd() + '/a.txt'}, takeOver: {}, stop: {},
		};
		for (const m in tries) {
			const r = await call(s, m, tries[m]);
			if (!r.gone) out[m] = r.error ? r.error.message : 'done: ' + JSON.stringify(r);
		}
	}
	for (const record of find(base, '/pollux/resume/').filter(p => p.endsWith('.json') && JSON.parse(fs.readFileSync(p, 'utf8')).pagePort)) out['the page'] = await asPage(record, id);
	const run = (what, file, args, input) => new Promise(done => {
		const p = execFile(file, args, {timeout: 30000}, (err, stdout, stderr) => { out[what] = (err ? err.code : 0) + ' ' + stdout + stderr; done(); });
		p.stdin.on('error', () => {});
		if (input) p.stdin.write(input); else p.stdin.end();
	});
	await Promise.all([
		...['page', 'resume', 'stop'].map(command => run('pollux ' + command, POLLUX, [command])),
		run('pollux mention', POLLUX, ['mention', 'a.txt']),
		run('pollux review', 'timeout', ['20', 'script', '-qec', POLLUX + ' review', '/dev/null'], 'a'),
		run('pollux extensions consent', POLLUX, ['extensions', 'consent', 'grant', 'x', '--yes']),
	]);
	fs.writeFileSync(name + '.tmp', JSON.stringify(out));
	fs.renameSync(name + '.tmp', name + '.json');
})();
`

// behind starts the thief as a child that leaves its parents, its session and its marks, and waits for a proposal. It ends when the thief has left: some CLIs end what
// a command leaves behind in its process group.
const behind = `
setsid -f env -i PATH="$PATH" HOME="$HOME" TMPDIR="$TMPDIR" node thief.js orphan wait >/dev/null 2>&1 </dev/null
until [ -e orphan.up ]; do sleep 0.1; done
`

// newScene is a project in which a model finds the thief, and may run it without a question.
func newScene(t *testing.T) *bench {
	t.Helper()
	return newBench(t, map[string]string{
		"a.txt": "old\n", "behind.sh": behind, "thief.js": strings.ReplaceAll(thief, "POLLUX", `"`+shared.pollux+`"`),
		".gemini/settings.json": `{"tools": {"allowed": ["run_shell_command"]}}`,
	})
}

// wiped runs a command in a process from which every mark is gone, also from what the kernel keeps.
func wiped(command string) string {
	return `exec env -i PATH="$PATH" HOME="$HOME" TMPDIR="$TMPDIR" sh -c '` + command + `'`
}

// shell has the model run a command.
func shell(command string) model.Turn {
	return model.Turn{Calls: []model.Call{{Name: "run_shell_command", Args: map[string]any{"command": command, "description": "work"}}}}
}

// gotNothing waits for what came of a thief's tries, and checks that each was refused as a model's.
func (b *bench) gotNothing(name string) {
	b.t.Helper()
	b.until("the thief "+name+" has tried", func() bool { _, err := os.Stat(b.path(name + ".json")); return err == nil })
	var tried map[string]string
	if err := json.Unmarshal([]byte(b.read(name+".json")), &tried); err != nil {
		b.t.Fatal(err)
	}
	if len(tried) != 18 {
		b.t.Errorf("%s has tried %d things, want 18: %v", name, len(tried), tried)
	}
	for what, answer := range tried {
		said := strings.Join(strings.Fields(answer), " ")
		if !strings.Contains(said, "agent's own shell") && !strings.Contains(said, "an agent has started this browser") && !strings.Contains(said, "agent's shell") || strings.Contains(answer, "#") {
			b.t.Errorf("%s: %s: %s", name, what, brief(said))
		}
	}
}

// tries lets the model of a session try everything, in its shell as it is and without its marks.
func (b *bench) tries(s *cli.Session, when string) {
	b.t.Helper()
	s.Ask("work "+when, shell("node thief.js plain-"+when))
	b.gotNothing("plain-" + when)
	s.Ask("go on "+when, shell(wiped("node thief.js wiped-"+when)))
	b.gotNothing("wiped-" + when)
}

// SPEC §11.1: the published CLI's model cannot decide about its own changes, nor get at a page, nor agree to anything: in its
// shell as it is, without its marks, cut off from its parents while its own proposal waits, and after the companion was killed
// and came back. The person still can.
func TestModelDecidesNothing(t *testing.T) {
	needCLI(t)
	b := newScene(t)
	c := b.serve()
	page := webtest.Open(t, c.Page, "person")
	s := b.gemini("")
	connected(s)
	b.tries(s, "first")

	s.Ask("work behind", shell("sh behind.sh"))
	s.Idle()
	from := len(s.Model.Requests())
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	id := onlyDiff(t, page)
	b.gotNothing("orphan")
	if got := b.read("a.txt"); got != "old\n" || onlyDiff(t, page) != id {
		t.Errorf("the model has accepted its own change: %q", got)
	}
	page.Call("diff/accept", map[string]any{"id": id}, nil)
	b.holds("a.txt", "new\n")
	result(t, s, from)

	c.end(syscall.SIGKILL)
	again := b.serve()
	if !again.Resumed {
		t.Error("the companion does not take over")
	}
	b.tries(s, "again")

	b.servesNothing(again, func(command string) { s.Ask("serve", shell(command)) })
}

// servesNothing kills the companion, has the model start one of its own with its marks wiped, and checks that this one takes nothing over.
// The user's next companion does; servesNothing returns it.
func (b *bench) servesNothing(last *companion, run func(command string)) *companion {
	b.t.Helper()
	last.end(syscall.SIGKILL)
	run(wiped("timeout 3 " + shared.pollux + " serve --no-open --json > theirs; mv theirs theirs.json"))
	b.until("the model's own companion", func() bool { _, err := os.Stat(b.path("theirs.json")); return err == nil })
	var theirs struct {
		Port    int
		Resumed bool
	}
	if err := json.Unmarshal([]byte(b.read("theirs.json")), &theirs); err != nil || theirs.Resumed || theirs.Port == last.Port {
		b.t.Errorf("the model's companion takes over: %+v, %v", theirs, err)
	}
	next := b.serve()
	if !next.Resumed {
		b.t.Error("the user's companion does not take over after that")
	}
	return next
}

// accepts waits for the only proposal in a reviewer, lets the person accept it there, and waits for the file.
func (b *bench) accepts(tm *terminal.Terminal, name, content string) {
	b.t.Helper()
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.press(tm, "a", "Nothing waits")
	b.holds(name, content)
}

// The same behind pollux relay, whose own process is none of the model's (SPEC §11.1, K-4).
func TestModelBehindRelay(t *testing.T) {
	needCLI(t)
	b := newScene(t)
	b.pollux("setup", "--relay")
	s := b.gemini("")
	connected(s)
	c := b.serve()
	b.relayed(c)
	b.tries(s, "first")
	c.end(syscall.SIGKILL)
	b.relayed(b.serve())
	b.tries(s, "again")
}

// relayed waits until a companion has the relay's session.
func (b *bench) relayed(c *companion) {
	b.t.Helper()
	b.until("the relay is at the editor", func() bool {
		var all []struct{ Port, Sessions int }
		_ = json.Unmarshal([]byte(b.pollux("status", "--json")), &all)
		for _, one := range all {
			if one.Port == c.Port && one.Sessions == 1 {
				return true
			}
		}
		return false
	})
}

// A person in a terminal beside the agent is never refused (SPEC §11.1): with the CLI at its question, after a restart as before, and
// while a keeper holds the CLI's door (SPEC L-4).
func TestPersonDecides(t *testing.T) {
	needCLI(t)
	b := newScene(t)
	b.keeping()
	c := b.serve()
	s := b.gemini("")
	connected(s)
	tm := b.reviewer(120, 40)
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	b.accepts(tm, "a.txt", "new\n")
	c.end(syscall.SIGKILL)
	c = b.serve()
	s.Ask("change it again", model.WriteFile("a.txt", "newer\n"))
	b.accepts(tm, "a.txt", "newer\n")
	if out := b.pollux("page"); !strings.Contains(out, "#") {
		t.Errorf("pollux page: %s", out)
	}
	b.keptFor(c)
	s.Ask("change it without an editor", model.WriteFile("a.txt", "newest\n"))
	b.accepts(tm, "a.txt", "newest\n")
}

// keptFor lets a companion lose its terminal, and waits for the keeper that its CLI gets, until the test ends (SPEC L-4).
func (b *bench) keptFor(c *companion) {
	b.t.Helper()
	c.end(syscall.SIGHUP)
	run := func(args ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), second(60))
		defer cancel()
		cmd := exec.CommandContext(ctx, shared.pollux, args...)
		cmd.Dir, cmd.Env = b.dir, b.home.Env()
		out, _ := cmd.CombinedOutput() // status says "no" where something is worth saying
		return string(out)
	}
	b.t.Cleanup(func() {
		if out := run("stop"); !strings.Contains(out, "ends") {
			b.t.Errorf("pollux stop: %s", out)
		}
	})
	b.until("the keeper", func() bool { return strings.Contains(run("status"), "keeper") })
}

// keeping lets companions be kept.
func (b *bench) keeping() {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.home.Dir, ".config", "pollux", "config.json"), []byte(`{"keep": true}`), 0o600); err != nil {
		b.t.Fatal(err)
	}
}
