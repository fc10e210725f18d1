package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// A spawned is one process that was started for a measurement: pollux serve, or the floor.
type spawned struct {
	b     *testing.B
	cmd   *exec.Cmd
	start time.Time
	file  string // the discovery file
	dir   string // its folder
	pid   int
	// by starts it, nil for this process; piped gives it an editor's pipe.
	by         *launcher
	piped      bool
	greet      func()   // is called once it runs by a launcher, if not nil
	stdin, out *os.File // that pipe
	Port       int
	Token      string `json:"authToken"`
}

// spawn starts a program with a home of its own and returns when its discovery file is whole.
func spawn(b *testing.B, program string, args ...string) *spawned {
	b.Helper()
	s := prepare(b, program, args...)
	s.launch()
	return s
}

// prepare gives a program a home of its own.
func prepare(b *testing.B, program string, args ...string) *spawned {
	b.Helper()
	home := b.TempDir()
	config := filepath.Join(home, ".config", "pollux", "config.json")
	project := filepath.Join(home, "project")
	for _, dir := range []string{filepath.Dir(config), project} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	if !slices.Equal(args, []string{"lsp"}) { // nobody looks at a page here, so the diff is accepted by rule
		if err := os.WriteFile(config, []byte(`{"diffMode": "accept"}`), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	s := &spawned{b: b, cmd: exec.Command(program, args...), dir: filepath.Join(home, "gemini", "ide")}
	s.cmd.Dir = project
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "XDG_RUNTIME_DIR=" + home}
	s.cmd.Stderr = os.Stderr
	return s
}

// launch starts the program and returns when its discovery file is whole.
func (s *spawned) launch() {
	s.b.Helper()
	if s.by != nil {
		s.launchAside()
	} else {
		s.start = time.Now()
		if err := s.cmd.Start(); err != nil {
			s.b.Fatal(err)
		}
		s.pid = s.cmd.Process.Pid
	}
	s.awaitFile()
}

// launchAside has the launcher start the program.
func (s *spawned) launchAside() {
	s.b.Helper()
	o := launch{Path: s.cmd.Path, Args: s.cmd.Args[1:], Env: s.cmd.Env, Dir: s.cmd.Dir}
	if s.piped {
		o.Stdin, o.Out = filepath.Join(s.cmd.Dir, "..", "in"), filepath.Join(s.cmd.Dir, "..", "out")
		for path, file := range map[string]**os.File{o.Stdin: &s.stdin, o.Out: &s.out} {
			err := syscall.Mkfifo(path, 0o600)
			if err == nil {
				*file, err = os.OpenFile(path, os.O_RDWR, 0)
			}
			if err != nil {
				s.b.Fatal(err)
			}
		}
	}
	got := s.by.start(o)
	s.pid, s.start = got.PID, got.Start
	if s.greet != nil {
		s.greet()
	}
}

// awaitFile returns when the discovery file is whole.
func (s *spawned) awaitFile() {
	s.b.Helper()
	moment := syscall.NsecToTimespec(50_000) // time.Sleep takes a millisecond at the least
	for deadline := s.start.Add(10 * time.Second); ; _ = syscall.Nanosleep(&moment, nil) {
		if files, _ := filepath.Glob(filepath.Join(s.dir, "*.json")); len(files) == 1 {
			s.file = files[0]
			if data, err := os.ReadFile(s.file); err == nil && json.Unmarshal(data, s) == nil {
				return
			}
		}
		if time.Now().After(deadline) {
			s.b.Fatal("no discovery file in 10 s")
		}
	}
}

func (s *spawned) stop() {
	_ = syscall.Kill(s.pid, syscall.SIGTERM)
	if s.by == nil {
		_ = s.cmd.Wait()
		return
	}
	for end := time.Now().Add(10 * time.Second); syscall.Kill(s.pid, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(s.pid, syscall.SIGKILL)
		}
	}
	for _, f := range []*os.File{s.stdin, s.out} {
		_ = f.Close() // nil has nothing to close
	}
}

// openDiff does what a CLI does until its first diff is answered.
func (s *spawned) openDiff(client *http.Client) {
	s.b.Helper()
	session := ""
	for _, body := range []string{
		`{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}},"jsonrpc":"2.0","id":0}`,
		`{"method":"notifications/initialized","jsonrpc":"2.0"}`,
		`{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"/nowhere/x.go","newContent":"package x\n"}},"jsonrpc":"2.0","id":1}`,
	} {
		r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/mcp", s.Port), strings.NewReader(body))
		if err != nil {
			s.b.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + s.Token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := client.Do(r)
		if err != nil {
			s.b.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode >= 300 || bytes.Contains(answer, []byte(`"isError"`)) {
			s.b.Fatalf("%s %s, %v", res.Status, answer, err)
		}
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
}

// smaps is a line of the process's memory, in MB.
func (s *spawned) smaps(line string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.pid))
	if err != nil {
		s.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\n"+line+":")
	kb, _ := strconv.Atoi(strings.Fields(rest)[0])
	return float64(kb) / 1024
}

// cpu is the CPU time so far, in the clock ticks of 10 ms that the system counts.
func (s *spawned) cpu() int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		s.b.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// programs builds pollux as it is released, and the floor, and returns their folder.
func programs(b *testing.B) string {
	b.Helper()
	dir, err := built()
	if err != nil {
		b.Fatal(err)
	}
	own := b.TempDir()
	for _, name := range []string{"pollux", "floor"} {
		installed(b, filepath.Join(dir, name), filepath.Join(own, name))
	}
	return own
}

// built does that once; the folder goes with the test's own build of pollux.
var built = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(programsIn); dir != "" {
		return dir, nil
	}
	root, err := peers.Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(shared.pollux) + "/released/"
	build := exec.Command("go", "build", "-o", dir, "./cmd/pollux", "./e2e/floor")
	build.Dir, build.Env, build.Stderr = root, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	return dir, errors.Join(os.Mkdir(dir, 0o700), build.Run())
})

// targets is how to start pollux and the floor.
func targets(b *testing.B) [2]func() *spawned {
	b.Helper()
	dir := programs(b)
	return [2]func() *spawned{
		func() *spawned { return spawn(b, filepath.Join(dir, "pollux"), "serve", "--no-open") },
		func() *spawned { return spawn(b, filepath.Join(dir, "floor")) },
	}
}

// installed writes a program anew, in pieces of the size in which the system reads it from a disk. The linker
// leaves it in smaller ones, which take longer to map; in larger ones more is mapped than is needed.
func installed(b *testing.B, program, place string) {
	b.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(place)
	for piece := range slices.Chunk(data, 128<<10) {
		if err == nil {
			_, err = file.Write(piece)
		}
	}
	if err = errors.Join(err, file.Chmod(0o755), file.Close()); err != nil {
		b.Fatal(err)
	}
}

func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Microseconds()) / 1000
}

// L-1, D-1: from the start of the process until its discovery file is there, and until the
// first openDiff is answered. Budget: 1.3× the floor.
func BenchmarkSpawn(b *testing.B) {
	both := targets(b)
	var found, answered [2][]time.Duration
	for b.Loop() {
		for i, spawn := range both {
			s := spawn()
			found[i] = append(found[i], time.Since(s.start))
			client := &http.Client{Transport: &http.Transport{}}
			s.openDiff(client)
			answered[i] = append(answered[i], time.Since(s.start))
			client.CloseIdleConnections()
			s.stop()
		}
	}
	for what, times := range map[string][2][]time.Duration{"discovery": found, "openDiff": answered} {
		ours, floor := median(times[0]), median(times[1])
		b.ReportMetric(ours, what+"-ms")
		b.ReportMetric(floor, what+"-floor-ms")
		b.ReportMetric(ours/floor, what+"-×floor")
	}
	b.ReportMetric(0, "ns/op")
}

// the memory of a companion that nobody has called, and its CPU in 20 s. Budgets: 10 MB, none.
// RSS counts the pages of the program's file that are mapped, which the system takes
// back when it needs them; what it cannot take back is anonymous.
func BenchmarkIdle(b *testing.B) {
	both := targets(b)
	for b.Loop() {
		for i, name := range []string{"", "floor-"} {
			s := both[i]()
			time.Sleep(2 * time.Second)
			before := s.cpu()
			b.ReportMetric(s.smaps("Rss"), name+"RSS-MB")
			b.ReportMetric(s.smaps("Anonymous"), name+"anonymous-MB")
			time.Sleep(20 * time.Second)
			b.ReportMetric(float64(10*(s.cpu()-before)), name+"cpu-ms/20s")
			s.stop()
		}
	}
	b.ReportMetric(0, "ns/op")
}

// used are the folders by which agents are known to be used on a machine. Claude Code's also lets opencode in, and Gemini CLI needs none.
var used = []string{".claude", ".codex", ".copilot", ".qwen"} //nolint:gochecknoglobals // constant

// doors is how to start pollux on a machine where no other agent than Gemini CLI is used, and on one where all six are.
func doors(b *testing.B) [2]func() *spawned {
	b.Helper()
	program := filepath.Join(programs(b), "pollux")
	start := func(folders ...string) *spawned {
		s := prepare(b, program, "serve", "--no-open")
		for _, folder := range folders {
			if err := os.Mkdir(filepath.Join(s.cmd.Dir, "..", folder), 0o700); err != nil {
				b.Fatal(err)
			}
		}
		s.launch()
		return s
	}
	return [2]func() *spawned{func() *spawned { return start() }, func() *spawned { return start(used...) }}
}

// awaitDoors returns when every agent finds the companion.
func (s *spawned) awaitDoors() {
	s.b.Helper()
	home := filepath.Join(s.cmd.Dir, "..")
	for deadline := s.start.Add(10 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		open := 0
		for _, pattern := range []string{".claude/ide/*.lock", ".copilot/ide/*.lock", ".qwen/ide/*.lock", "codex-ipc/*.sock"} {
			if found, _ := filepath.Glob(filepath.Join(home, pattern)); len(found) == 1 {
				open++
			}
		}
		if open == len(used) {
			return
		}
		if time.Now().After(deadline) {
			s.b.Fatalf("%d of %d doors are open after 10 s", open, len(used))
		}
	}
}

// What the doors of all six agents cost at the start. Budget: 1.3× one agent's.
func BenchmarkSpawnDoors(b *testing.B) {
	both := doors(b)
	var found [2][]time.Duration
	var all []time.Duration
	for b.Loop() {
		for i, spawn := range both {
			s := spawn()
			found[i] = append(found[i], time.Since(s.start))
			if i == 1 {
				s.awaitDoors()
				all = append(all, time.Since(s.start))
			}
			s.stop()
		}
	}
	one, six := median(found[0]), median(found[1])
	b.ReportMetric(one, "one-door-ms")
	b.ReportMetric(six, "six-doors-ms")
	b.ReportMetric(median(all), "six-doors-open-ms")
	b.ReportMetric(six/one, "×one-door")
	b.ReportMetric(0, "ns/op")
}

// What they cost while nobody calls. Budget: 1.3× one agent's.
func BenchmarkIdleDoors(b *testing.B) {
	both := doors(b)
	for b.Loop() {
		var rss, anonymous [2][]float64
		for range 5 {
			for i, spawn := range both {
				s := spawn()
				if i == 1 {
					s.awaitDoors()
				}
				time.Sleep(2 * time.Second)
				before := s.cpu()
				rss[i], anonymous[i] = append(rss[i], s.smaps("Rss")), append(anonymous[i], s.smaps("Anonymous"))
				time.Sleep(2 * time.Second)
				b.ReportMetric(float64(10*(s.cpu()-before)), []string{"one", "six"}[i]+"-cpu-ms/2s")
				s.stop()
			}
		}
		for what, values := range map[string][2][]float64{"RSS": rss, "anonymous": anonymous} {
			one, six := middle(values[0]), middle(values[1])
			b.ReportMetric(one, "one-"+what+"-MB")
			b.ReportMetric(six, "six-"+what+"-MB")
			b.ReportMetric(six/one, what+"-×one-door")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// middle is the median.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
