package remind

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
)

// within bounds each program that is started to tell the user.
const within = 10 * time.Second

// Ways are the ways to tell the user.
type Ways struct {
	// Processes returns the processes whose terminals ring; nil for none.
	Processes func() []int
	// Desktop shows a notification on the desktop.
	Desktop bool
	// Command is a program with its arguments, run without a shell in the home folder. It finds the number of waiting
	// things in POLLUX_WAITING.
	Command []string
	// Roots returns the workspace's folders: no program in them is run, because an agent can change it.
	Roots func() []string
	Log   *slog.Logger
}

// Tell uses every way. A way that fails is logged.
func (w *Ways) Tell(ctx context.Context, waiting int) {
	text := "something waits for your answer"
	if waiting > 1 {
		text = fmt.Sprintf("%d things wait for your answer", waiting)
	}
	if w.Processes != nil {
		rung := map[uint64]bool{}
		for _, pid := range w.Processes() {
			if t, ok := proc.Terminal(pid); ok && !rung[t.ID] {
				rung[t.ID] = true
				w.failed("terminal", ring(pid, t, text))
			}
		}
	}
	if w.Desktop {
		w.failed("desktop", w.run(ctx, desktop(text), waiting))
	}
	if len(w.Command) > 0 {
		w.failed("command", w.run(ctx, w.Command, waiting))
	}
}

func (w *Ways) failed(way string, err error) {
	if err != nil {
		w.Log.Warn("the user could not be told that something waits", "way", way, "err", err)
	}
}

// ring writes the bell and the notification to the terminal of a process.
func ring(pid int, t proc.TTY, text string) error {
	f, err := t.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	env, _ := proc.Environ(pid) // without it, only the bell
	_, err = io.WriteString(f, alarm(env, text))
	return err
}

// alarm is what a terminal is sent: the bell, and what most terminals show as a notification. A few print it as text,
// and get only the bell.
func alarm(env []string, text string) string {
	vars := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	term := vars["TERM"]
	for _, plain := range []string{"dumb", "linux", "eterm", "vt", "ansi", "cons"} {
		if term == "" || strings.HasPrefix(term, plain) && term != "vte" {
			return "\a"
		}
	}
	if vars["VTE_VERSION"] != "" || strings.HasPrefix(term, "foot") || strings.HasPrefix(term, "rxvt") {
		return "\a\x1b]777;notify;pollux;" + text + "\x1b\\"
	}
	return "\a\x1b]9;pollux: " + text + "\x1b\\"
}

// run starts a program that no project can have put there.
func (w *Ways) run(ctx context.Context, command []string, waiting int) error {
	path, err := paths.Program(command[0])
	if err != nil {
		return err
	}
	for _, root := range w.Roots() {
		if paths.Within(root, paths.Real(path)) {
			return fmt.Errorf("%s is in the workspace, where an agent can change it; put it elsewhere", path)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, command[1:]...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "POLLUX_WAITING="+strconv.Itoa(waiting))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command[0], err)
	}
	return nil
}
