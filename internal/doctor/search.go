package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/client"
)

// process: which process the CLI takes for its editor's.
func (x *examination) process() {
	e := x.r.choice.Editor
	f := Finding{ID: "process", Level: OK, What: fmt.Sprintf("the CLI takes process %d for its editor's", e.PID)}
	if e.Command != "" {
		f.What += fmt.Sprintf(" (%s)", clip(e.Command, 40))
	}
	for _, s := range e.Steps {
		f.Details = append(f.Details, strings.TrimSpace(fmt.Sprintf("%d  %s: %s", s.PID, clip(s.Command, 50), s.Note)))
	}
	if x.w.Getenv("GEMINI_CLI_IDE_PID") != "" && !x.w.Alive(e.PID) {
		f.Level, f.What = Note, fmt.Sprintf("GEMINI_CLI_IDE_PID names process %d, which has ended", e.PID)
		f.Why = "the variables of this terminal are those of an editor that is gone; the CLI still chooses by the workspace"
		f.Mend = "unset GEMINI_CLI_IDE_PID"
	}
	x.add(f)
}

// temp: which temp folder, and by which variable.
func (x *examination) temp() {
	source := "the system's default"
	for _, name := range tempNames() {
		if x.w.Getenv(name) != "" {
			source = name
			break
		}
	}
	f := Finding{ID: "temp", Level: OK, What: fmt.Sprintf("it looks in %s (%s)", x.r.choice.Folder, source)}
	if _, err := os.Stat(x.r.choice.Folder); errors.Is(err, os.ErrNotExist) {
		f.Level, f.What = Note, fmt.Sprintf("it looks in %s (%s), which does not exist", x.r.choice.Folder, source)
		f.Why = "no companion has ever run with this temp folder"
	}
	x.add(f)
}

// files: what it sees there, in its order.
func (x *examination) files(ctx context.Context) {
	c := x.r.choice
	if len(c.Candidates) == 0 {
		x.ok("files", "there is no discovery file")
		return
	}
	f := Finding{ID: "files", Level: OK, What: fmt.Sprintf("it sees %s, in this order", plural(len(c.Candidates), "discovery file", "discovery files"))}
	var dead, foreign []string
	for i, cand := range c.Candidates {
		line := cand.Name + ": " + x.verdict(i)
		if cand.UID >= 0 {
			foreign = append(foreign, cand.Name)
		}
		if text, ok := cand.Config.Port(); ok && cand.Config != nil {
			if health, _ := knock(ctx, "127.0.0.1", atoi(text), ""); health == Dead {
				line += "; nobody listens at its port"
				dead = append(dead, cand.Name)
			}
		}
		f.Details = append(f.Details, line)
	}
	switch {
	case len(foreign) > 0:
		f.Level, f.Why = Warning, "the CLI passes over the files of other users: "+strings.Join(foreign, ", ")
		f.Mend = "start the companion as the user that runs gemini, not by sudo; remove the other file: sudo rm " + quote(x.path(foreign[0]))
	case len(dead) > 0:
		f.Level, f.Why = Warning, "a file that was left behind may be taken instead of a living one: the CLI tries one file only"
		f.Mend, f.fix = "pollux doctor --fix", fixSweep
	}
	x.add(f)
}

// verdict says of one file what the CLI makes of it.
func (x *examination) verdict(i int) string {
	c := x.r.choice
	cand := c.Candidates[i]
	state := "its process lives"
	if !cand.Alive {
		state = "its process has ended"
	}
	if cand.Own {
		state = "of the editor's process"
	}
	switch {
	case i == c.Taken:
		return "taken: " + c.Why + "; " + state
	case cand.Problem != "":
		return "passed over: " + cand.Problem
	case cand.Mismatch != nil:
		return "passed over: its workspace does not hold the folder; " + state
	}
	return "not taken: another one stands before it; " + state
}

// choice: which file it takes, and whether a companion of the folder is somewhere else.
func (x *examination) choice(ctx context.Context) {
	c := x.r.choice
	if c.Fault != nil {
		x.r.Says = c.Fault.Error()
		x.add(Finding{ID: "choice", Level: Fault, What: "a file makes the CLI itself fail: " + c.Fault.Error(),
			Why:  "the CLI reads every file before it chooses, and gives up at this one",
			Mend: "remove the file that is named above: rm " + quote(x.path(strings.SplitN(c.Fault.Error(), ":", 2)[0]))})
		return
	}
	if c.Taken >= 0 && c.Candidates[c.Taken].Mismatch == nil {
		x.ok("choice", "it takes "+x.taken()+": "+c.Why)
		return
	}
	if x.w.Getenv("GEMINI_CLI_IDE_SERVER_PORT") != "" && x.w.Getenv("GEMINI_CLI_IDE_WORKSPACE_PATH") != "" && c.Taken < 0 {
		x.ok("choice", "it takes the companion that the environment names")
		return
	}
	for _, other := range Survey(ctx, x.o.Run, append([]string{c.Folder}, x.o.Others...), real(x.w.Dir)) {
		if !other.Here || other.Health != Healthy && other.Health != Unlisted || other.File != "" && filepath.Dir(other.File) == c.Folder {
			continue
		}
		f := Finding{ID: "choice", Level: Fault, What: fmt.Sprintf("a companion of this folder runs (process %d), but its file is not where the CLI looks", other.PID),
			Why: "the editor and this terminal have different temp folders (tmux, nix-shell, ssh, sudo)", Mend: "export TMPDIR=…   (as the editor has it), or start the editor anew from this terminal"}
		if other.File != "" {
			f.Details = []string{"it is " + other.File}
			f.Mend = "export TMPDIR=" + quote(filepath.Dir(filepath.Dir(filepath.Dir(other.File))))
		}
		x.add(f)
		return
	}
	if c.Taken < 0 {
		x.add(Finding{ID: "choice", Level: Fault, What: "no companion can be found", Why: "no file that the CLI may read is there",
			Mend: "pollux serve   (or start your editor with its plugin: pollux install)"})
		return
	}
	x.add(Finding{ID: "choice", Level: Note, What: "it takes " + x.taken() + ", only to say that it does not fit"})
}

// workspace: whether the folder lies in the workspace, by real paths.
func (x *examination) workspace() {
	c := x.r.choice
	if c.Fault != nil || x.failed("choice") {
		return
	}
	dir := x.w.Dir
	details := []string{}
	if r := real(dir); r != dir {
		details = append(details, fmt.Sprintf("%s is %s, once links are followed", dir, r))
	}
	err := c.Workspace(x.w)
	if err == nil {
		x.ok("workspace", "the folder lies in the workspace", details...)
		return
	}
	x.r.Says = err.Error()
	f := Finding{ID: "workspace", Level: Fault, What: fmt.Sprintf("%s is not in the editor's workspace", dir),
		Why: "the CLI joins only an editor that has its folder open", Mend: "pollux serve   (in this folder), or open the folder in the editor, or start gemini in one that it has open", Details: details}
	path, given, _ := c.Config.Workspace()
	switch {
	case given && path == "":
		f.What, f.Mend = "the editor has no folder open", "open "+quote(dir)+" in the editor"
	case given:
		for part := range strings.SplitSeq(path, string(os.PathListSeparator)) {
			f.Details = append(f.Details, "the workspace has "+part)
		}
	default:
		f.What = "nothing says which folder the editor has open"
	}
	x.add(f)
}

// support: whether the CLI takes the terminal for an editor's at all.
func (x *examination) support() {
	c := x.r.choice
	if c.Fault != nil {
		return
	}
	if c.IDE != nil {
		what := fmt.Sprintf("the CLI calls the editor %q", c.IDE.DisplayName)
		if _, ok := c.Config.IDE(); ok {
			x.ok("support", what+", as its file says")
			return
		}
		x.ok("support", what+", by the variables of this terminal")
		return
	}
	if c.Taken < 0 {
		x.r.Says = client.Unsupported()
	}
	f := Finding{ID: "support", Level: Fault, What: fmt.Sprintf("the CLI says that IDE mode is not supported here (TERM_PROGRAM is %q)", x.w.Getenv("TERM_PROGRAM")),
		Why:  "without ideInfo in the file it wants a terminal that it knows; it asks once, at its start",
		Mend: "update the companion: its file has no ideInfo; until then: export TERM_PROGRAM=vscode"}
	if c.Taken < 0 {
		f.Why, f.Mend = "no companion is found, and the terminal is none that it knows; it asks once, at its start", "start the companion first, then gemini"
	}
	x.r.Says = client.Unsupported()
	x.add(f)
}

func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}

// clip shortens a command line for a person.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func quote(path string) string {
	if path != "" && !strings.ContainsAny(path, " '\"\\$`!*?[](){}<>|&;~#\t\n") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func atoi(s string) int {
	n := 0
	for _, r := range s {
		if r < '0' || r > '9' || n > 65535 {
			return 0
		}
		n = n*10 + int(r-'0')
	}
	return n
}
