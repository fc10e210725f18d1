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
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// thief is what a hostile model runs in its shell: with the commands, and past them straight at the sockets, it tries
// everything that only a person may do. With "wait" it waits for a proposal first. What came of it goes into a file.
const thief = `
const fs = require('fs'), net = require('net'), path = require('path'), {spawnSync} = require('child_process');
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
(async () => {
	const out = {};
	let id = 'x';
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
			resolve: {id, theirs: true}, pause: {paused: false}, takeOver: {}, stop: {},
		};
		for (const m in tries) {
			const r = await call(s, m, tries[m]);
			if (!r.gone) out[m] = r.error ? r.error.message : 'done: ' + JSON.stringify(r);
		}
	}
	const run = (...args) => { const r = spawnSync(POLLUX, args, {encoding: 'utf8', timeout: 30000}); return r.status + ' ' + r.stdout + r.stderr; };
	for (const command of ['page', 'resume', 'stop']) out['pollux ' + command] = run(command);
	out['pollux review'] = spawnSync('timeout', ['20', 'script', '-qec', POLLUX + ' review', '/dev/null'], {encoding: 'utf8', input: 'a'}).stdout;
	out['pollux extensions consent'] = run('extensions', 'consent', 'grant', 'x', '--yes');
	fs.writeFileSync(name + '.tmp', JSON.stringify(out));
	fs.renameSync(name + '.tmp', name + '.json');
})();
`

// newStage is a project in which a model finds the thief, and may run it without a question.
func newStage(t *testing.T) *bench {
	t.Helper()
	return newBench(t, map[string]string{
		"a.txt": "old\n", "thief.js": strings.ReplaceAll(thief, "POLLUX", `"`+shared.pollux+`"`),
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
	if len(tried) != 15 {
		b.t.Errorf("%s has tried %d things, want 15: %v", name, len(tried), tried)
	}
	for what, answer := range tried {
		said := strings.Join(strings.Fields(answer), " ")
		if !strings.Contains(said, "agent's own shell") && !strings.Contains(said, "agent's shell") || strings.Contains(answer, "#") {
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
	b := newStage(t)
	c := b.serve()
	page := webtest.Open(t, c.Page, "person")
	s := b.gemini("")
	connected(s)
	b.tries(s, "first")

	s.Ask("work behind", shell("setsid -f node thief.js orphan wait"))
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

	// Nor does the model get at it by a companion of its own.
	again.end(syscall.SIGKILL)
	s.Ask("serve", shell(wiped("timeout 3 "+shared.pollux+" serve --no-open --json > theirs; mv theirs theirs.json")))
	b.until("the model's own companion", func() bool { _, err := os.Stat(b.path("theirs.json")); return err == nil })
	var theirs struct {
		Port    int
		Resumed bool
	}
	if err := json.Unmarshal([]byte(b.read("theirs.json")), &theirs); err != nil || theirs.Resumed || theirs.Port == again.Port {
		t.Errorf("the model's companion takes over: %+v, %v", theirs, err)
	}
	if !b.serve().Resumed {
		t.Error("the user's companion does not take over after that")
	}
}

// The same behind pollux relay, whose own process is none of the model's (SPEC §11.1, K-4).
func TestModelBehindRelay(t *testing.T) {
	needCLI(t)
	b := newStage(t)
	b.pollux("setup", "--relay")
	s := b.gemini("")
	connected(s)
	c := b.serve()
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
	b.tries(s, "first")
	c.end(syscall.SIGKILL)
	b.serve()
	b.tries(s, "again")
}

// A person in a terminal beside the agent is never refused (SPEC §11.1): with the CLI at its question, after a restart as before, and
// while a keeper holds the CLI's door (SPEC L-4).
func TestPersonDecides(t *testing.T) {
	needCLI(t)
	b := newStage(t)
	b.keeping()
	c := b.serve()
	s := b.gemini("")
	connected(s)
	tm := b.reviewer(120, 40)
	s.Ask("change it", model.WriteFile("a.txt", "new\n"))
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.press(tm, "a", "Nothing waits")
	b.holds("a.txt", "new\n")
	c.end(syscall.SIGKILL)
	c = b.serve()
	s.Ask("change it again", model.WriteFile("a.txt", "newer\n"))
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.press(tm, "a", "Nothing waits")
	b.holds("a.txt", "newer\n")
	if out := b.pollux("page"); !strings.Contains(out, "#") {
		t.Errorf("pollux page: %s", out)
	}
	b.keptFor(c)
	s.Ask("change it without an editor", model.WriteFile("a.txt", "newest\n"))
	tm.Wait("+1 −1 · hunk 1/1", second(60))
	b.press(tm, "a", "Nothing waits")
	b.holds("a.txt", "newest\n")
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
