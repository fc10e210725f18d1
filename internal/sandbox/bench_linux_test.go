package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/peers"
	"github.com/pollux-companion/pollux/internal/permission"
)

// A way is one way to start a program.
type way struct {
	name  string
	ready func() // awaited before the clock starts; nil for nothing
	run   func()
}

// BenchmarkStart measures what a sandbox costs. It runs the same programs plainly, in pollux's sandbox (started for
// the run, and kept ready; with hosts and without), in it as a command, in bubblewrap with similar mounts, and in
// Anthropic's sandbox-runtime if POLLUX_BENCH_SRT names its folder. The ways take turns, so that other load on the
// machine affects all of them. Each reports its median, and that as a multiple of bubblewrap's.
func BenchmarkStart(b *testing.B) {
	bwrap := []string{peers.Need(b, peers.Bubblewrap), "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind", "/etc/ssl", "/etc/ssl", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent", "--new-session"}
	binary := filepath.Join(b.TempDir(), "pollux")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/pollux")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v %s", err, out)
	}
	for name, args := range map[string][]string{"true": {"/usr/bin/true"}, "python": {"/usr/bin/python3", "-I", "-c", "pass"}} {
		b.Run(name, func(b *testing.B) {
			need(b, args[0])
			program := func(prefix ...string) func() {
				all := append(prefix, args...)
				return func() {
					if out, err := exec.Command(all[0], all[1:]...).CombinedOutput(); err != nil {
						b.Fatalf("%v %s", err, out)
					}
				}
			}
			ours := func(s *Sandbox, p Policy) func() {
				return func() {
					if r := runIn(b, s, p, Command{Args: args}); r.Code != 0 {
						b.Fatalf("%+v", r)
					}
				}
			}
			pool := newPool(b)
			fresh, ready := New(nil), New(&Options{Pool: pool})
			host, await := Policy{Hosts: hosts(b, "example.com")}, func() { pool.wait(b) }
			ways := []way{
				{"plain", nil, program()}, {"bwrap", nil, program(bwrap...)},
				{"fresh", nil, ours(fresh, Policy{})}, {"fresh+host", nil, ours(fresh, host)}, {"fresh+home", nil, ours(fresh, Policy{Read: permission.Home})},
				{"ready", await, ours(ready, Policy{})}, {"ready+host", await, ours(ready, host)},
				{"command", nil, program(binary, "sandbox", "--")}, {"command+host", nil, program(binary, "sandbox", "--allow-host", "example.com", "--")},
			}
			compare(b, append(ways, srtWays(b, args)...))
		})
	}
}

// srtWays are sandbox-runtime in a running Node, and as a command.
func srtWays(b *testing.B, args []string) []way {
	dir := os.Getenv("POLLUX_BENCH_SRT")
	if dir == "" {
		return nil
	}
	module := filepath.Join(dir, "node_modules", "@anthropic-ai", "sandbox-runtime", "dist", "index.js")
	var ways []way
	for _, hosts := range []string{"none", "hosts"} {
		cmd := exec.Command("node", "testdata/srt.mjs", module, hosts, strings.Join(args, " "))
		cmd.Dir, _ = os.Getwd()
		in, out := child.Start(b, cmd)
		b.Cleanup(func() { in.Close(); _ = cmd.Wait() })
		lines := bufio.NewReader(out)
		ask := func(question, want string) {
			_, _ = io.WriteString(in, question)
			if line, err := lines.ReadString('\n'); err != nil || line != want {
				b.Fatalf("sandbox-runtime: %q %v", line, err)
			}
		}
		ask("", "ready\n")
		ways = append(ways, way{"srt+" + hosts, nil, func() { ask("\n", "0\n") }})
	}
	return append(ways, way{"srt-command", nil, func() {
		if out, err := exec.Command(filepath.Join(dir, "node_modules", ".bin", "srt"), "-c", strings.Join(args, " ")).CombinedOutput(); err != nil {
			b.Fatalf("%v %s", err, out)
		}
	}})
}

// compare times each way b.N times, in turns, and reports medians in ms.
func compare(b *testing.B, ways []way) {
	times, cpu := make([][]time.Duration, len(ways)), make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways {
			if w.ready != nil {
				w.ready()
			}
			begun, used := time.Now(), processorTime(b)
			w.run()
			times[i], cpu[i] = append(times[i], time.Since(begun)), append(cpu[i], processorTime(b)-used)
		}
	}
	median := func(all [][]time.Duration, i int) float64 {
		slices.Sort(all[i])
		return float64(all[i][len(all[i])/2].Microseconds()) / 1000
	}
	for i, w := range ways {
		b.ReportMetric(median(times, i), w.name+"-ms")
		b.ReportMetric(median(times, i)/median(times, 1), w.name+"/"+ways[1].name)
		b.ReportMetric(median(cpu, i), w.name+"-cpu-ms")
	}
	var table strings.Builder
	for i, w := range ways {
		fmt.Fprintf(&table, "%-12s %7.2f ms, least %7.2f, %5.2f × bwrap; processor %7.2f ms, %5.2f ×\n", w.name, median(times, i), float64(times[i][0].Microseconds())/1000, median(times, i)/median(times, 1),
			median(cpu, i), median(cpu, i)/median(cpu, 1))
	}
	b.Log("\n" + table.String())
}

// processorTime returns what this process and the children it waited for have used.
func processorTime(b *testing.B) (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}

// BenchmarkEntrances measures both ways through the gate: one request, and the throughput of a large download. It
// measures the same from outside, for the cost of the network alone.
func BenchmarkEntrances(b *testing.B) {
	w := newWeb(b)
	curl := need(b, "curl")
	for _, entrance := range []string{"proxy", "transparent"} {
		b.Run(entrance, func(b *testing.B) {
			env := w.env
			if entrance == "transparent" {
				env = append(slices.Clone(env), "http_proxy=", "ALL_PROXY=", "all_proxy=")
			}
			var speeds, seconds []float64
			ask := func(format, url string) float64 {
				r := runIn(b, w.s, Policy{Read: permission.Workspace, Hosts: hosts(b, "example.com")},
					Command{Args: []string{curl, "-sS", "-o", "/dev/null", "-w", format + " %{http_code}", url}, Workspace: w.workspace, Env: env})
				number, code, _ := strings.Cut(string(r.Stdout), " ")
				value, err := strconv.ParseFloat(number, 64)
				if r.Code != 0 || err != nil || code != strconv.Itoa(http.StatusOK) {
					b.Fatalf("%+v %v", r, err)
				}
				return value
			}
			for b.Loop() {
				speeds = append(speeds, ask("%{speed_download}", "http://example.com/big"))
				seconds = append(seconds, ask("%{time_total}", "http://example.com/"))
			}
			slices.Sort(speeds)
			slices.Sort(seconds)
			b.ReportMetric(speeds[len(speeds)/2]/mib, "MiB/s")
			b.ReportMetric(seconds[len(seconds)/2]*1000, "ms/request")
		})
	}
}
