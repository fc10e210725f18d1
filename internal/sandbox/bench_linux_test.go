package sandbox

import (
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/peers"
)

// BenchmarkStart measures what a sandbox costs: the same programs plainly, in
// ours with and without hosts, and in bubblewrap with the like mounts. The
// ways take turns, so that what else the machine does meets all of them; each
// reports its median.
func BenchmarkStart(b *testing.B) {
	s := New(&Options{Cache: b.TempDir()})
	bwrap := []string{peers.Need(b, peers.Bubblewrap), "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
		"--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind", "/etc/ssl", "/etc/ssl", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent", "--new-session"}
	for name, args := range map[string][]string{"true": {"/usr/bin/true"}, "python": {"/usr/bin/python3", "-I", "-c", "pass"}} {
		b.Run(name, func(b *testing.B) {
			need(b, args[0])
			plain := func() {
				if err := exec.Command(args[0], args[1:]...).Run(); err != nil {
					b.Fatal(err)
				}
			}
			other := func() {
				if out, err := exec.Command(bwrap[0], append(slices.Clone(bwrap[1:]), args...)...).CombinedOutput(); err != nil {
					b.Fatalf("%v %s", err, out)
				}
			}
			ours := func(p Policy) func() {
				return func() {
					if r := runIn(b, s, p, Command{Args: args}); r.Code != 0 {
						b.Fatalf("%+v", r)
					}
				}
			}
			compare(b, map[string]func(){"plain": plain, "bwrap": other, "pollux": ours(Policy{}), "pollux+host": ours(Policy{Hosts: hosts(b, "example.com")}), "pollux+home": ours(Policy{Read: manifest.Home})})
		})
	}
}

// compare times each way b.N times, in turns, and reports medians in ms.
func compare(b *testing.B, ways map[string]func()) {
	times := map[string][]time.Duration{}
	for b.Loop() {
		for name, way := range ways {
			begun := time.Now()
			way()
			times[name] = append(times[name], time.Since(begun))
		}
	}
	for name, all := range times {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-ms")
	}
}

// BenchmarkEntrances measures both ways through the gate: a request, and what
// a large download carries in a second.
func BenchmarkEntrances(b *testing.B) {
	w := newWeb(b)
	curl := need(b, "curl")
	for _, entrance := range []string{"proxy", "transparent"} {
		b.Run(entrance, func(b *testing.B) {
			env := w.env
			if entrance == "transparent" {
				env = append(slices.Clone(env), "http_proxy=", "ALL_PROXY=", "all_proxy=")
			}
			for b.Loop() {
				r := runIn(b, w.s, Policy{Read: manifest.Workspace, Hosts: hosts(b, "example.com")},
					Command{Args: []string{curl, "-sS", "-o", "/dev/null", "-w", "%{speed_download} %{http_code}", "http://example.com/big"}, Workspace: w.workspace, Env: env})
				speed, err := strconv.ParseFloat(string(r.Stdout[:max(0, len(r.Stdout)-4)]), 64)
				if r.Code != 0 || err != nil || string(r.Stdout[len(r.Stdout)-3:]) != strconv.Itoa(http.StatusOK) {
					b.Fatalf("%+v %v", r, err)
				}
				b.ReportMetric(speed/mib, "MiB/s")
				r = runIn(b, w.s, Policy{Read: manifest.Workspace, Hosts: hosts(b, "example.com")},
					Command{Args: []string{curl, "-sS", "-o", "/dev/null", "-w", "%{time_total}", "http://example.com/"}, Workspace: w.workspace, Env: env})
				seconds, err := strconv.ParseFloat(string(r.Stdout), 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(seconds*1000, "ms/request")
			}
		})
	}
}
