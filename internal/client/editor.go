package client

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxClimb bounds how many ancestors are looked at.
const maxClimb = 32

// An Editor is the process that the CLI takes for its editor.
type Editor struct {
	PID     int
	Command string
	// Steps tell a person how the CLI found it.
	Steps []Step
}

// A Step is one process on the way.
type Step struct {
	PID     int
	Command string
	Note    string // what the CLI makes of it
}

// findEditor computes the process of the editor as the CLI does: from GEMINI_CLI_IDE_PID, else from the
// tree: on Unix the first shell's grandparent, or its parent where that is the first
// process; on Windows the third from the top.
func findEditor(w *World) Editor {
	w = w.orHere()
	if text := w.Getenv("GEMINI_CLI_IDE_PID"); text != "" {
		if pid := parseInt(text); pid > 0 {
			p, _ := w.Process(pid)
			return Editor{pid, p.Command, []Step{{pid, p.Command, "GEMINI_CLI_IDE_PID names it"}}}
		}
	}
	if *w.Windows {
		return findWindows(w)
	}
	return findUnix(w)
}

// parseInt is JavaScript's, for process numbers; 0 when s has no number.
func parseInt(s string) int {
	s = strings.TrimPrefix(strings.TrimLeft(s, " \t\n\v\f\r"), "+")
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil || n > math.MaxInt32 {
		return 0
	}
	return n
}

func shells() []string {
	return []string{"zsh", "bash", "sh", "tcsh", "csh", "ksh", "fish", "dash"}
}

// programName is the CLI's: the last part of the command line's first word, so
// that a login shell (-bash) is none.
func programName(command string) string {
	word, _, _ := strings.Cut(command, " ")
	word = strings.TrimRight(word, "/")
	return word[strings.LastIndexByte(word, '/')+1:]
}

func findUnix(w *World) Editor {
	var e Editor
	step := func(pid int, command, note string) { e.Steps = append(e.Steps, Step{pid, command, note}) }
	at := w.PID
	for range maxClimb {
		p, _ := w.Process(at)
		if slices.Contains(shells(), programName(p.Command)) {
			step(at, p.Command, "a shell")
			e.PID = p.Parent
			above, _ := w.Process(p.Parent)
			if above.Parent > 1 {
				step(p.Parent, above.Command, "the shell's parent")
				e.PID = above.Parent
			}
			last, _ := w.Process(e.PID)
			e.Command = last.Command
			step(e.PID, e.Command, "taken for the editor")
			return e
		}
		if p.Parent <= 1 {
			break
		}
		step(at, p.Command, "no shell")
		at = p.Parent
	}
	p, _ := w.Process(at)
	e.PID, e.Command = at, p.Command
	step(at, p.Command, "taken for the editor: no shell above")
	return e
}

func findWindows(w *World) Editor {
	var e Editor
	own, ok := w.Process(w.PID)
	if !ok {
		return Editor{PID: w.PID, Steps: []Step{{w.PID, "", "taken for the editor: nothing known of the processes"}}}
	}
	at := Step{w.PID, own.Command, ""}
	for parent := own.Parent; ; {
		e.Steps = append(e.Steps, at)
		above, known := w.Process(parent)
		if len(e.Steps) >= maxClimb || parent == 0 || !known {
			break
		}
		at = Step{parent, above.Command, ""}
		parent = above.Parent
	}
	i := len(e.Steps) - 1
	if len(e.Steps) >= 3 {
		i = len(e.Steps) - 3
	}
	e.Steps[i].Note = "taken for the editor: the third from the top"
	e.PID, e.Command = e.Steps[i].PID, e.Steps[i].Command
	return e
}

// stdioEnv returns the environment that the CLI passes to a companion that it starts.
func stdioEnv(w *World) []string {
	env := []string{}
	for _, name := range stdioNames() {
		if value, ok := w.lookup(name); ok && !strings.HasPrefix(value, "()") {
			env = append(env, name+"="+value)
		}
	}
	return env
}
