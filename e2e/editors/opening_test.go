package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// BenchmarkOpening measures, in turns, what the plugin adds to the time until
// the editor's first screen, by the editor's own clock, and to the processor's
// time for the whole run, which a busy machine changes less: medians, in milliseconds.
//
//	go test -run '^$' -bench Opening -benchtime 40x ./e2e/editors
func BenchmarkOpening(b *testing.B) {
	root, err := peers.Root()
	if err != nil {
		b.Fatal(err)
	}
	for name, e := range map[string]struct {
		program string
		args    []string
	}{
		"nvim": {peers.Need(b, peers.Neovim), []string{"--clean", "-n", "-i", "NONE", "--headless"}},
		"vim":  {peers.Need(b, peers.Vim), []string{"-u", "NONE", "-N", "-n", "-i", "NONE", "--not-a-term", "--cmd", "set loadplugins"}},
	} {
		b.Run(name, func(b *testing.B) {
			open := func(plugin string) (shown, cpu float64) {
				log := filepath.Join(b.TempDir(), "log")
				cmd := exec.Command(e.program, append(slices.Clone(e.args), "--cmd", "set rtp^="+plugin, "--startuptime", log, "+qa!")...)
				cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary())+":"+os.Getenv("PATH"))
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				data, err := os.ReadFile(log)
				if err != nil {
					b.Fatal(err)
				}
				lines := strings.Split(strings.TrimSpace(string(data)), "\n")
				ms, err := strconv.ParseFloat(strings.Fields(lines[len(lines)-1])[0], 64)
				if err != nil {
					b.Fatal(err)
				}
				return ms, float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / float64(time.Millisecond)
			}
			var times [4][]float64 // shown and processor, without and with
			for b.Loop() {
				for i, plugin := range []string{"none", filepath.Join("plugins", name)} {
					shown, cpu := open(filepath.Join(root, plugin))
					times[i], times[2+i] = append(times[i], shown), append(times[2+i], cpu)
				}
			}
			var medians [4]float64
			for i := range times {
				slices.Sort(times[i])
				medians[i] = times[i][len(times[i])/2]
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(medians[0], "ms-without")
			b.ReportMetric(medians[1], "ms-with")
			b.ReportMetric(medians[1]-medians[0], "ms-added")
			b.ReportMetric(medians[3]-medians[2], "cpu-ms-added")
		})
	}
}
