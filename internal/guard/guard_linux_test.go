package guard

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/proc"
)

// waitsVariable makes the test's program say its number and wait until its standard input ends.
const waitsVariable = "POLLUX_TEST_WAITS"

func TestMain(m *testing.M) {
	if os.Getenv(waitsVariable) != "" {
		fmt.Println(os.Getpid())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// plain is an environment without marks.
func plain(extra ...string) []string { return append([]string{"PATH=" + os.Getenv("PATH")}, extra...) }

// started runs a script and returns the process that it names: the first number that it prints.
func started(t *testing.T, env []string, script string, args ...string) int {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-c", script, "bash"}, args...)...)
	cmd.Env, cmd.Dir = env, t.TempDir()
	in, err := cmd.StdinPipe() // what is started ends when this does
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	return number(t, out)
}

func number(t *testing.T, out io.Reader) int {
	t.Helper()
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, err2 := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || err2 != nil {
		t.Fatalf("%q: %v, %v", line, err, err2)
	}
	return pid
}

// betweens is a folder with a program called pollux, and with what it runs for each command: what a go-between does is not the
// question here.
func betweens(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(bash)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pollux"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"relay": waits, "mcp": waits, "extensions": waits, "ext": waits, "review": waits, "wrapper": "./pollux relay\ntrue\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// waits is a script's end: the process stays until the test ends, under its own number.
const waits = `echo $$; read`

// infos describes processes as a companion that has seen them connect.
func infos(t *testing.T, pids ...int) []proc.Info {
	t.Helper()
	var all []proc.Info
	for _, pid := range pids {
		p, ok := proc.Lookup(pid)
		if !ok {
			t.Fatalf("no process %d", pid)
		}
		all = append(all, p)
	}
	return all
}

// SPEC §11.1: each agent's mark tells, in the process itself and in one above it that has hidden it from its children; a
// person's terminal has none, whatever else its environment holds.
func TestMarks(t *testing.T) {
	for _, m := range Marks() {
		value := m.Value
		if value == "" {
			value = "x"
		}
		mark := m.Name + "=" + value
		if got := Look(started(t, plain(mark), waits), nil); got != Marked {
			t.Errorf("%s: %v", mark, got)
		}
		if got := Look(started(t, plain(mark), fmt.Sprintf("env -u %s bash -c '%s'; true", m.Name, waits)), nil); got != Marked {
			t.Errorf("%s, removed for a child: %v", mark, got)
		}
	}
	for _, env := range [][]string{nil, {"GEMINI_CLI="}, {"AGENT=https://proxy"}, {"AGENT="}, {"GEMINI_CLI_HOME=/home/u", "GEMINI_API_KEY=x"}, {"QWEN_CODE_IDE_SERVER_PORT=1"}, {"MY_GEMINI_CLI=1"}} {
		if got := Look(started(t, plain(env...), waits), nil); got != Person {
			t.Errorf("%q: %v", env, got)
		}
	}
}

// SPEC §11.1: whatever an agent started is below it, also when it was wiped of every mark, has left its parents but not its
// session, or stands in a chain of shells; what stands beside the agent, or above it, is a person's.
func TestBelow(t *testing.T) {
	const wiped = `exec env -i PATH="$PATH" bash -c '` + waits + `'`
	us := infos(t, os.Getpid())
	for name, script := range map[string]string{
		"a child":                     waits,
		"wiped":                       wiped,
		"a child's child":             "bash -c '" + waits + "'; true",
		"five shells down":            `bash -c "bash -c \"bash -c 'echo \\$\\$; read'; true\"; true"; true`,
		"in a session of its own":     "setsid --wait bash -c '" + waits + "'",
		"in a subshell of a subshell": "( ( echo $BASHPID; read ) ; true )",
	} {
		pid := started(t, plain(), script)
		if got := Look(pid, us); got != Below {
			t.Errorf("%s: %v", name, got)
		}
		if !Descends(pid, us) {
			t.Errorf("%s does not descend", name)
		}
		if got := Look(pid, nil); got != Person {
			t.Errorf("%s, and no agent known: %v", name, got)
		}
	}
	agent := infos(t, started(t, plain(), waits))
	if got := Look(os.Getpid(), agent); got != Person {
		t.Errorf("the one that started the agent: %v", got)
	}
	if got := Look(started(t, plain(), waits), agent); got != Person {
		t.Errorf("a terminal beside the agent: %v", got)
	}
	if got := Look(agent[0].PID, agent); got != Below {
		t.Errorf("the agent itself: %v", got)
	}
	if Descends(agent[0].PID, agent) {
		t.Error("the agent descends from itself")
	}
	reused := agent[0]
	reused.Start--
	if got := Look(agent[0].PID, []proc.Info{reused}); got != Person {
		t.Errorf("a process with the number of an agent that has ended: %v", got)
	}
	if got := Look(1<<30, nil); got != Unseen {
		t.Errorf("no process: %v", got)
	}
	if got := Look(0, nil); got != Unseen {
		t.Errorf("a peer that the system does not name: %v", got)
	}
}

// A child that was cut off from its parents is still in its agent's session; with a session of its own, its mark is left.
func TestOrphans(t *testing.T) {
	// The parent of this process has ended, and the leader of its session may not be the agent. It gets a session of its own, because
	// the tests' session may have no leader left.
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, []byte(`(bash -c '`+waits+`' <&0 &) ; read`), 0o600); err != nil {
		t.Fatal(err)
	}
	pid := started(t, plain(), "setsid --wait bash "+cut)
	p, _ := proc.Lookup(pid)
	leader, ok := proc.Leader(pid)
	if !ok {
		t.Fatal("no session")
	}
	if got := Look(pid, infos(t, leader)); got != Below {
		t.Errorf("a child of process %d in the session of process %d: %v", p.Parent, leader, got)
	}
	// A child in a session of its own, whose parent is the one that was cut off.
	apart := filepath.Join(t.TempDir(), "apart")
	if err := os.WriteFile(apart, []byte(`(bash -c 'setsid --wait bash -c "echo \$\$; read" <&0; true' <&0 &) ; read`), 0o600); err != nil {
		t.Fatal(err)
	}
	pid = started(t, plain(), "setsid --wait bash "+apart)
	p, _ = proc.Lookup(pid)
	leader, ok = proc.Leader(p.Parent)
	if own, _ := proc.Leader(pid); !ok || own != pid || leader == own {
		t.Fatalf("process %d leads session %d, its parent %d is in session %d", pid, own, p.Parent, leader)
	}
	agent := infos(t, leader)
	if got := Look(pid, agent); got != Below {
		t.Errorf("a child in a session of its own, of process %d in the session of process %d: %v", p.Parent, leader, got)
	}
	if !Descends(pid, agent) {
		t.Error("it does not descend from the leader")
	}
	marked := started(t, plain("GEMINI_CLI=1"), `setsid -f bash -c '`+waits+`' <&0; read`)
	if got := Look(marked, nil); got != Marked {
		t.Errorf("cut off, with its mark: %v", got)
	}
}

// SPEC §11.1: a model's child that has left its parents by whichever tool keeps the mark, as that tool hands its environment on, also
// where the process itself has none any more.
func TestLeftWithMark(t *testing.T) {
	dir := t.TempDir()
	here := filepath.Join(dir, "here")
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The process says who it is in a file, and ends when that is gone.
	stays := write("stays", "#!/bin/bash\necho $$ > "+here+".tmp; mv "+here+".tmp "+here+"; while [ \"$(cat "+here+" 2>/dev/null)\" = $$ ]; do sleep 0.05; done\n")
	socket := filepath.Join(dir, "t")
	for name, script := range map[string]string{
		"nohup":                  "nohup " + stays + " >/dev/null 2>&1 & ",
		"setsid":                 "setsid -f " + stays,
		"a double fork":          "( ( " + stays + " & ) & )",
		"disown":                 stays + " & disown",
		"a terminal of script's": "setsid -f script -qec " + stays + " /dev/null </dev/null >/dev/null 2>&1",
		"a new tmux":             "tmux -f /dev/null -S " + socket + " new-session -d " + stays,
		"hidden from its child":  "setsid -f bash -c 'env -u GEMINI_CLI " + stays + "; true'",
		"wiped for its child":    "setsid -f bash -c 'env -i " + stays + "; true'",
		"coproc":                 "coproc " + stays,
		"xargs":                  "echo x | setsid -f xargs -n1 " + stays,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a new tmux" {
				peers.Need(t, peers.Tmux)
			}
			cmd := exec.Command("bash", "-c", script)
			cmd.Env, cmd.Dir = plain("GEMINI_CLI=1", "SHELL=/bin/sh"), dir
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			pid := 0
			for deadline := time.Now().Add(time.Minute); pid == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if data, err := os.ReadFile(here); err == nil {
					pid, _ = strconv.Atoi(strings.TrimSpace(string(data)))
				}
			}
			if got := Look(pid, nil); got != Marked {
				t.Errorf("process %d: %v", pid, got)
			}
			_ = os.Remove(here) // and it ends
		})
	}
}

// SPEC §11.1: however many processes deep. One with more ancestors than are looked at is nobody's terminal.
func TestDeep(t *testing.T) {
	us := infos(t, os.Getpid())
	for depth, agents := range map[int][]proc.Info{100: us, maxClimb: nil} {
		pid := started(t, plain(), fmt.Sprintf(`echo 'if [ $1 = 0 ]; then echo $$; read x; else sh deeper $(($1-1)); true; fi' >deeper; exec sh deeper %d`, depth))
		if got := Look(pid, agents); got != Below {
			t.Errorf("%d processes down: %v", depth, got)
		}
		if got := Descends(pid, us); !got {
			t.Errorf("%d processes down: this process has not started it", depth)
		}
	}
	if got := Look(started(t, plain(), waits), nil); got != Person {
		t.Errorf("a person: %v", got)
	}
}

// SPEC §11.1: behind a go-between of pollux's stands the agent that started it, also through shells that run a command or a script.
func TestBehind(t *testing.T) {
	cd := "cd " + betweens(t) + "; "
	us := os.Getpid()
	for name, tt := range map[string]struct {
		script string
		above  bool // this process is found behind
	}{
		"relay":                 {cd + "exec ./pollux relay --tmp /tmp", true},
		"mcp":                   {cd + "exec ./pollux mcp --ide", true},
		"extensions serve":      {cd + "exec ./pollux extensions serve", true},
		"through a shell":       {cd + "./pollux relay; true", true},
		"through a script":      {cd + "bash wrapper; true", true},
		"a tool's run":          {cd + "exec ./pollux ext run x t", false},
		"a file called mcp":     {cd + "exec ./pollux review mcp relay", false},
		"no go-between":         {cd + "exec ./pollux review", false},
		"another program":       {waits, false},
		"another, called mcp":   {"exec -a mcp bash -c '" + waits + "' mcp", false},
		"a shell below a shell": {"bash -c '" + waits + "'; true", false},
	} {
		found := Behind(started(t, plain(), tt.script))
		if len(found) == 0 {
			t.Errorf("%s: nothing", name)
			continue
		}
		if last := found[len(found)-1].PID; (last == us) != tt.above {
			t.Errorf("%s: %v, this is process %d", name, found, us)
		}
	}
	// Cut off from its agent, it has none that is known: least of all the process that has taken it in, which is above every terminal.
	cut := started(t, plain(), cd+"(setsid -f ./pollux relay <&0) ; true")
	for end := time.Now().Add(30 * time.Second); Behind(cut) != nil; time.Sleep(time.Millisecond) { // setsid may not have ended yet
		if time.Now().After(end) {
			t.Fatalf("cut off: %v", Behind(cut))
		}
	}
	if got := Behind(1 << 30); len(got) != 0 {
		t.Errorf("no process: %v", got)
	}
}

// Behind whatever an agent's program has started stands that agent, however it was started: a wrapper between the two hides nobody.
func TestBehindAWrapper(t *testing.T) {
	dir := betweens(t)
	for name, script := range map[string]string{
		"a wrapper of pollux mcp":  `timeout 60 ./pollux mcp --ide`,
		"another program":          `timeout 60 bash -c 'echo $$; read'`,
		"a shell that is typed in": `bash --norc -i <<<'./pollux relay <&3'`,
	} {
		const cli = "cli" // its number
		pid := started(t, plain("PS1="), `cd `+dir+`; echo "$1" >wrapper.sh; exec -a gemini bash -c 'echo $$ >`+cli+`; exec 3<&0; . ./wrapper.sh; true'`, script)
		data, err := os.ReadFile(filepath.Join(dir, cli))
		agent, err2 := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if found := Behind(pid); len(found) < 2 || found[0].PID != pid || found[len(found)-1].PID != agent {
			t.Errorf("%s: behind process %d is %v, want %d", name, pid, found, agent)
		}
	}
}

// A go-between is known by pollux's command, and by nothing else of its command line.
func TestGoesBetween(t *testing.T) {
	for line, between := range map[string]bool{
		"pollux relay": true, "/x/pollux mcp --ide": true, "pollux.exe relay": true, "pollux -v relay --tmp /t": true, "pollux --log-level debug mcp": true,
		"pollux --log-level=debug mcp": true, "pollux extensions serve": true, "pollux ext -v serve": true, "pollux extension --log-level debug serve x": true,
		"pollux open mcp": false, "pollux diff relay mcp": false, "pollux mention extensions serve": false, "pollux run -- x mcp": false, "pollux": false,
		"pollux extensions run x serve": false, "pollux -- relay": false, "pollux --log-level relay": false, "pollux serve": false,
	} {
		if got := goesBetween(0, strings.Fields(line)); got != between {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// Another build of pollux is known by what it was built from, under any name, and after its file was replaced.
func TestBehindAnotherBuild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	build, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "plx")
	if err := os.WriteFile(program, append(build, 0), 0o700); err != nil { // another file
		t.Fatal(err)
	}
	relay := started(t, plain(waitsVariable+"=1"), program+" relay; true")
	other := started(t, plain(waitsVariable+"=1"), program+" review; true")
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if found := Behind(relay); len(found) < 3 || found[len(found)-1].PID != os.Getpid() {
		t.Errorf("behind a renamed relay, whose file is gone: %v, this is process %d", found, os.Getpid())
	}
	if found := Behind(other); len(found) != 1 {
		t.Errorf("behind another command: %v", found)
	}
}

// Who types a go-between's command, or has another command of pollux's run, is no agent.
func TestTyped(t *testing.T) {
	dir := betweens(t)
	for _, command := range []string{"./pollux mcp", "./pollux relay"} {
		cmd := exec.Command("bash", "--norc", "-i")
		cmd.Env, cmd.Dir = plain("PS1="), dir
		in, out := child.Start(t, cmd)
		t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
		fmt.Fprintln(in, command)
		pid := number(t, out)
		if found := Behind(pid); len(found) != 1 || found[0].PID != pid {
			t.Errorf("behind a typed %q: %v", command, found)
		}
	}
}

// The agents' own programs are known by name, as users and their packages start them; editors, terminals and other clients are not.
func TestIsCLI(t *testing.T) {
	for line, cli := range map[string]bool{
		"/usr/bin/node --max-old-space-size=4096 /usr/bin/gemini": true, "node /x/node_modules/@google/gemini-cli/bundle/gemini.js": true,
		"node /x/@qwen-code/qwen-code/cli.js": true, "claude --ide": true, "/home/u/.local/bin/claude": true, "bun /x/opencode-ai/bin/opencode": true,
		"/x/codex": true, "node /usr/lib/node_modules/@github/copilot/index.js": true, "qwen": true,
		"node /home/u/.vscode-server/out/server-main.js": false, "code /home/u/claude": false, "node": false, "": false, "ssh -L 1:x:1 codex": false,
		"tmux new -s gemini": false, "bash": false, "e2e.test -test.run TestGemini": false, "nvim gemini": false,
		"node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js": true, "node /x/node_modules/opencode-ai/main.js": true,
		// users and projects are called so too, and what lies in their folders may have terminals of the user's
		"/home/claude/.vscode-server/node /home/claude/.vscode-server/out/bootstrap-fork --type=extensionHost": false,
		"node /srv/codex/server.js": false, "node /srv/gemini-cli/node_modules/vite/bin/vite.js": false, "bun /home/qwen/dev.ts": false,
		"node /x/node_modules/@types/copilot/x.js": false, "less /x/@google/gemini-cli/README.md": false, "npm exec @google/gemini-cli": false,
		"bash /home/u/bin/claude": false, "python3 qwen": false,
	} {
		if got := isCLI(strings.Fields(line)); got != cli {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// A shell that a person types into is not climbed through: the terminal beside the go-between is a person's.
func TestShells(t *testing.T) {
	for line, batch := range map[string]bool{
		"sh -c x": true, "/bin/bash -lc x": true, "bash script": true, "-zsh": false, "bash": false, "bash -i": false, "bash --login": false,
		"fish -l": false, "node x": false, "/usr/bin/zsh -il": false, "bash --rcfile": false, "": false,
		"bash --init-file /x/vs/integration.sh": false, "bash --init-file /x y": true, "fish --init-command x": false, "bash -o vi": false, "bash -o vi -c x": true,
		"tcsh -c x": true, "tcsh": false, "nu -c x": true, "nu --config /c": false, "xonsh": false, "xonsh x": true, "elvish -c x": true, "elvish": false,
		"/usr/bin/python3 /usr/bin/xonsh": false, "python3 /usr/bin/xonsh -c x": true, "python3 x": false,
	} {
		if got := isBatch(strings.Fields(line)); got != batch {
			t.Errorf("%q: %v", line, got)
		}
		if known, name := isShell(strings.Fields(line)), strings.HasSuffix(line, " x") && (strings.HasPrefix(line, "node") || line == "python3 x"); known == (name || line == "") {
			t.Errorf("%q is a shell: %v", line, known)
		}
	}
}
