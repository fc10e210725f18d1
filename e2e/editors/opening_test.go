package editors

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pollux-companion/pollux/internal/peers"
)

// An opening starts an editor, with pollux's plugin or without, lets it end
// after its first screen, and returns how long it took to that by the editor's
// own clock, in milliseconds, and the process that has ended.
type opening func(b *testing.B, with bool) (shown float64, ended *os.ProcessState)

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
	for name, open := range map[string]opening{
		"nvim":  vimOpening(filepath.Join(root, "plugins", "nvim"), peers.Need(b, peers.Neovim), "--clean", "-n", "-i", "NONE", "--headless"),
		"vim":   vimOpening(filepath.Join(root, "plugins", "vim"), peers.Need(b, peers.Vim), "-u", "NONE", "-N", "-n", "-i", "NONE", "--not-a-term", "--cmd", "set loadplugins"),
		"emacs": emacsOpening(b, peers.Need(b, peers.Emacs)),
	} {
		b.Run(name, func(b *testing.B) {
			var times [4][]float64 // shown and processor, without and with
			for b.Loop() {
				for i, with := range []bool{false, true} {
					shown, ended := open(b, with)
					cpu := float64(ended.UserTime()+ended.SystemTime()) / float64(time.Millisecond)
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
			b.ReportMetric(medians[2], "cpu-ms-without")
			b.ReportMetric(medians[3]-medians[2], "cpu-ms-added")
		})
	}
}

// milliseconds reads a file with a number at the start of its last line.
func milliseconds(b *testing.B, file string) float64 {
	b.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	ms, err := strconv.ParseFloat(strings.Fields(lines[len(lines)-1] + " nothing")[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return ms
}

// vimOpening opens Neovim or Vim without anything else of the machine's user.
func vimOpening(plugin, program string, args ...string) opening {
	return func(b *testing.B, with bool) (float64, *os.ProcessState) {
		b.Helper()
		log, folder := filepath.Join(b.TempDir(), "log"), plugin
		if !with {
			folder = filepath.Join(filepath.Dir(log), "none")
		}
		cmd := exec.Command(program, append(slices.Clone(args), "--cmd", "set rtp^="+folder, "--startuptime", log, "+qa!")...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary())+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return milliseconds(b, log), cmd.ProcessState
	}
}

// emacsInit ends Emacs as soon as its first screen is there.
const emacsInit = `(add-hook 'window-setup-hook
  (lambda ()
    (redisplay t)
    (write-region (format "%f %s" (* 1000 (float-time (time-since before-init-time))) (fboundp 'pollux-mode)) nil "~/took" nil 'silent)
    (kill-emacs))
  t)
`

// emacsOpening opens Emacs in a terminal, for a user with nothing else, or with
// what pollux install writes.
func emacsOpening(b *testing.B, program string) opening {
	b.Helper()
	homes := map[bool]string{false: b.TempDir(), true: b.TempDir()}
	for _, home := range homes {
		if err := os.Mkdir(filepath.Join(home, ".emacs.d"), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".emacs.d", "init.el"), []byte(emacsInit), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	install := exec.Command(binary(), "install", "emacs")
	install.Env = append(os.Environ(), "HOME="+homes[true], "XDG_STATE_HOME="+homes[true], "XDG_CONFIG_HOME="+homes[true])
	if out, err := install.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return func(b *testing.B, with bool) (float64, *os.ProcessState) {
		b.Helper()
		cmd := exec.CommandContext(b.Context(), program, "-nw")
		cmd.Env = append(os.Environ(), "HOME="+homes[with], "TERM=screen-256color")
		tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
		if err != nil {
			b.Fatal(err)
		}
		defer tty.Close()
		go func() { _, _ = io.Copy(io.Discard, tty) }() // until the terminal is closed
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		took := filepath.Join(homes[with], "took")
		defer os.Remove(took)
		if data, err := os.ReadFile(took); err != nil || strings.HasSuffix(string(data), " t") != with {
			b.Fatalf("with the package %v: %q, %v", with, data, err)
		}
		return milliseconds(b, took), cmd.ProcessState
	}
}
