package ide

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds on a supposed editor that is asked for its version.
const (
	versionWithin = 5 * time.Second
	maxVersion    = 64 << 10 // bytes of output
)

// output runs a program without input, and returns the beginning of its output, even when it fails or takes too long.
// It leaves no process running.
func output(ctx context.Context, program string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out beginning
	cmd.Stdout = &out
	cmd.WaitDelay = 200 * time.Millisecond // for processes that it started and left behind
	ownGroup(cmd)
	_ = cmd.Run()
	if cmd.Process != nil {
		_ = cmd.Cancel()
	}
	return string(out)
}

// beginning keeps the first maxVersion bytes, and then fails the write.
type beginning []byte

var errFull = errors.New("enough")

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), maxVersion-len(*b))
	*b = append(*b, p[:n]...)
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

// ask asks an editor for its version, and returns why the plugin cannot run in it.
func ask(ctx context.Context, editor, program string) (version, problem string) {
	flag := "--version"
	if editor == "kakoune" {
		flag = "-version"
	}
	out := output(ctx, program, flag)
	version = versionIn(out)
	if editor == "vim" && version != "" {
		if patch := regexp.MustCompile(`Included patches: 1-(\d{1,6})`).FindStringSubmatch(out); patch != nil {
			version += "." + patch[1]
		}
		if regexp.MustCompile(`(^|\s)-job(\s|$)`).MatchString(out) {
			return version, "it is built without +job; install a fuller Vim"
		}
	}
	if least := map[string]string{"neovim": "0.7", "vim": "8.0", "emacs": "27.1", "micro": "2.0", "kakoune": "2021.10"}[editor]; version != "" && older(version, least) {
		problem = "the plugin needs " + least + " or newer"
	}
	return version, problem
}

// versionIn returns the first number with a point in a program's output: digits, letters, points and signs only, at
// most 40 of them.
func versionIn(out string) string {
	v := regexp.MustCompile(`\d{1,6}(\.\d{1,9}){1,3}([-+~][0-9A-Za-z.+~-]{1,24})?`).FindString(out)
	return v[:min(len(v), 40)]
}

// older compares the first two numbers of two versions.
func older(version, than string) bool {
	a, b := strings.SplitN(version, ".", 3), strings.SplitN(than, ".", 3)
	for i := range 2 {
		x, _ := strconv.Atoi(regexp.MustCompile(`^\d*`).FindString(a[i]))
		y, _ := strconv.Atoi(b[i])
		if x != y {
			return x < y
		}
	}
	return false
}

// ForkStates is States for VS Code and those of its forks that are on this machine; Installed is the version of
// Extension in it.
func (m Machine) ForkStates(ctx context.Context, find func(string) (string, error)) []State {
	var all []State
	for _, editor := range Forks() {
		if command, _, err := m.Fork(editor, find); err == nil {
			all = append(all, State{Editor: editor, Program: command})
		}
	}
	var wait sync.WaitGroup
	for n := range all {
		s := &all[n]
		wait.Go(func() { s.Version = versionIn(output(ctx, s.Program, "--version")) })
		wait.Go(func() {
			for line := range strings.Lines(output(ctx, s.Program, "--list-extensions", "--show-versions")) {
				if name, version, ok := strings.Cut(strings.TrimSpace(line), "@"); ok && strings.EqualFold(name, Extension) {
					s.Installed = versionIn(version)
				}
			}
		})
	}
	wait.Wait()
	return all
}

// Aliases maps other names of editors, such as their commands, in lower case, to the names in Editors, Forks and
// Snippets.
func Aliases() map[string]string {
	all := map[string]string{
		"hx": "helix", "kak-lsp": "kakoune", "subl": "sublime", "sublimetext": "sublime", "zeditor": "zed",
		"idea": "jetbrains", "intellij": "jetbrains", "pycharm": "jetbrains", "webstorm": "jetbrains", "goland": "jetbrains", "clion": "jetbrains", "rider": "jetbrains",
	}
	for _, editor := range Editors() {
		for _, program := range commandsOf(editor) {
			all[program] = editor
		}
	}
	for editor, command := range forks() {
		all[command] = editor
	}
	for _, name := range slices.Concat(Editors(), Forks(), Snippets()) {
		all[name] = name
	}
	return all
}
