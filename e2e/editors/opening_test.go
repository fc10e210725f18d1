package editors

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/peers"
)

// BenchmarkOpening measures, in turns, what the plugin adds to the time until
// the editor's first screen, by the editor's own clock: medians, in milliseconds.
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
			open := func(plugin string) float64 {
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
				return ms
			}
			var without, with []float64
			for b.Loop() {
				without = append(without, open(filepath.Join(root, "none")))
				with = append(with, open(filepath.Join(root, "plugins", name)))
			}
			slices.Sort(without)
			slices.Sort(with)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(without[len(without)/2], "ms-without")
			b.ReportMetric(with[len(with)/2], "ms-with")
			b.ReportMetric(with[len(with)/2]-without[len(without)/2], "ms-added")
		})
	}
}
