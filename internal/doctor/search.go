package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/discovery"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/proc"
	"github.com/pollux-companion/pollux/internal/words"
)

// seen reports what is known of the examined process, when it is another one than this.
func (x *examination) seen() {
	if x.o.PID == 0 {
		return
	}
	command, _ := proc.Command(x.o.PID)
	f := Finding{ID: "seen", Level: OK, What: fmt.Sprintf("this is as process %d sees it (%s), in %s", x.o.PID, words.Shorten(command, 40), x.w.Dir), Details: x.o.Lacks}
	if len(x.o.Lacks) > 0 {
		f.Level, f.What = Warning, fmt.Sprintf("not everything can be learned of process %d (%s)", x.o.PID, words.Shorten(command, 40))
		f.Why = "what follows holds for a gemini that is started in this shell; the process itself may see something else"
		f.Remark = "run pollux doctor in the terminal of that process"
	}
	x.add(f)
}

// process examines which process the CLI takes for its editor.
func (x *examination) process() {
	e := x.r.choice.Editor
	f := Finding{ID: "process", Level: OK, What: fmt.Sprintf("the CLI takes process %d for its editor's", e.PID)}
	if e.Command != "" {
		f.What += fmt.Sprintf(" (%s)", words.Shorten(e.Command, 40))
	}
	for _, s := range e.Steps {
		f.Details = append(f.Details, strings.TrimSpace(fmt.Sprintf("%d  %s: %s", s.PID, words.Shorten(s.Command, 50), s.Note)))
	}
	if x.w.Getenv("GEMINI_CLI_IDE_PID") != "" && !x.w.Alive(e.PID) {
		f.Level, f.What = Note, fmt.Sprintf("GEMINI_CLI_IDE_PID names process %d, which has ended", e.PID)
		f.Why = "the variables of this terminal are those of an editor that is gone; the CLI still chooses by the workspace"
		f.Mend = "unset GEMINI_CLI_IDE_PID"
	}
	x.add(f)
}

// temp examines which temp folder the CLI uses, and by which variable.
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

// files examines which files the CLI sees there, in its order.
func (x *examination) files(ctx context.Context) {
	c := x.r.choice
	if len(c.Candidates) == 0 {
		x.ok("files", "there is no discovery file")
		return
	}
	f := Finding{ID: "files", Level: OK, What: fmt.Sprintf("it sees %s, in this order", plural(len(c.Candidates), "discovery file", "discovery files"))}
	if uid := *x.w.UID; uid >= 0 { // there is none on Windows
		f.Details = append(f.Details, fmt.Sprintf("only files of your own (user %d) count", uid))
	}
	var dead, foreign []string
	for i, cand := range c.Candidates {
		line := cand.Name + ": " + x.verdict(i)
		if cand.UID >= 0 {
			foreign = append(foreign, cand.Name)
		}
		if x.dead(ctx, cand) {
			line += "; nobody listens at its port"
			dead = append(dead, cand.Name)
		}
		f.Details = append(f.Details, line)
	}
	if len(dead) > 0 {
		f.Level, f.Why = Warning, "a file that was left behind may be taken instead of a living one: the CLI tries one file only"
		f.Mend, f.Fix = x.repair(), fixSweep
	}
	if len(foreign) > 0 {
		f.Level, f.Why = Warning, "the CLI passes over the files of other users: "+strings.Join(foreign, ", ")
		f.Mend = "sudo rm " + quote(x.path(foreign[0]))
		f.Remark = "start the companion as the user that runs gemini, not by sudo"
	}
	x.add(f)
}

// dead says whether nobody listens where a file of this user's points. For a file that cannot be understood, the port in
// its name counts.
func (x *examination) dead(ctx context.Context, cand client.Candidate) bool {
	port := 0
	if text, ok := cand.Config.Port(); ok {
		port = atoi(text)
	} else if cand.Config == nil && cand.UID < 0 {
		_, port, _ = discovery.ParseName(cand.Name)
	}
	if port == 0 {
		return false
	}
	health, _ := knock(ctx, "127.0.0.1", port, "")
	return health == Dead
}

// verdict says what the CLI makes of one file.
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

// choice examines which file the CLI takes, and whether a companion of the folder is somewhere else.
func (x *examination) choice(ctx context.Context) {
	c := x.r.choice
	if c.Fault != nil {
		x.r.Says = c.Fault.Error()
		x.add(x.breaks(ctx))
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
	for _, other := range Survey(ctx, x.o.Run, append([]string{c.Folder}, x.o.Others...), paths.Real(x.w.Dir)) {
		if !other.Here || other.Health != Healthy && other.Health != Unlisted || other.File != "" && filepath.Dir(other.File) == c.Folder {
			continue
		}
		if other.File == "" {
			other.File = fileOf(other)
		}
		x.add(elsewhere(other, c.Folder))
		return
	}
	if c.Taken < 0 {
		x.add(Finding{ID: "choice", Level: Fault, What: "no companion can be found", Why: "no file that the CLI may read is there",
			Mend: "pollux serve", Remark: "or start your editor with its plugin, which pollux install gives it"})
		return
	}
	x.add(Finding{ID: "choice", Level: Note, What: "it takes " + x.taken() + ", only to say that it does not fit"})
}

// elsewhere reports a companion of this folder whose file the CLI does not see, because it looks in another folder.
func elsewhere(other Companion, folder string) Finding {
	f := Finding{ID: "choice", Level: Fault, What: fmt.Sprintf("a companion of this folder runs (process %d), but its file is not where the CLI looks", other.PID),
		Why: "the editor and this terminal have different temp folders (tmux, nix-shell, ssh, sudo)", Remark: "export the TMPDIR that the editor has, or start the editor anew from this terminal"}
	_, err := os.Stat(other.File)
	switch {
	case filepath.Dir(other.File) == folder:
		f.What = fmt.Sprintf("a companion of this folder runs (process %d), but its file has gone, or is another user's", other.PID)
		f.Why, f.Remark = "the CLI finds an editor by such a file of its own user's alone", "a file that has gone is written anew within a minute; else start the editor anew from this terminal"
	case err == nil:
		f.Details = []string{"it is " + other.File}
		f.Mend, f.Remark = "export "+tempNames()[0]+"="+quote(filepath.Dir(filepath.Dir(filepath.Dir(other.File)))), "or start the editor anew from this terminal"
	}
	return f
}

// fileOf returns the place of a companion's discovery file, in the temp folder that its process was started with; "" when
// the system does not tell.
func fileOf(c Companion) string {
	w, lacks, err := client.OfProcess(c.PID)
	if err != nil || len(lacks) > 0 {
		return ""
	}
	return filepath.Join(w.Folder(), discovery.FileName(c.PID, c.Port))
}

// breaks reports a file that makes the CLI throw, for every folder, while it looks for its editor.
func (x *examination) breaks(ctx context.Context) Finding {
	c := x.r.choice
	f := Finding{ID: "choice", Level: Fault, What: "a file makes the CLI itself fail: " + c.Fault.Error(),
		Why: "the CLI reads every file before it chooses, and gives up at this one: no CLI of yours with this temp folder finds an editor"}
	name, _, _ := strings.Cut(c.Fault.Error(), ":")
	i := slices.IndexFunc(c.Candidates, func(cand client.Candidate) bool { return cand.Name == name })
	if i < 0 {
		return f
	}
	if x.dead(ctx, c.Candidates[i]) {
		f.Mend, f.Fix = x.repair(), fixSweep
		f.Remark = "nobody listens at its port, so that it can go"
		return f
	}
	f.Mend = "rm " + quote(x.path(name))
	f.Remark = fmt.Sprintf("its companion runs (process %.0f): close the folder in that editor, and let it write the file anew", c.Candidates[i].PID)
	return f
}

// workspace examines whether the folder lies in the workspace, by real paths.
func (x *examination) workspace() {
	c := x.r.choice
	if c.Fault != nil || x.failed("choice") {
		return
	}
	dir := x.w.Dir
	details := []string{}
	if r := paths.Real(dir); r != dir {
		details = append(details, fmt.Sprintf("%s is %s, once links are followed", dir, r))
	}
	path, given, _ := c.Config.Workspace()
	if path != "" {
		for part := range strings.SplitSeq(path, string(os.PathListSeparator)) {
			line := "the workspace has " + part
			if r := paths.Real(part); r != part {
				line += ", which is " + r
			}
			details = append(details, line)
		}
	}
	err := c.Workspace(x.w)
	if err == nil {
		x.ok("workspace", "the folder lies in the workspace", details...)
		return
	}
	x.r.Says = err.Error()
	f := Finding{ID: "workspace", Level: Fault, What: fmt.Sprintf("%s is not in the editor's workspace", dir),
		Why: "the CLI joins only an editor that has its folder open", Mend: "pollux serve", Remark: "that serves this folder; or open it in the editor, or start gemini in one that it has open", Details: details}
	switch {
	case given && path == "":
		f.What, f.Mend, f.Remark = "the editor has no folder open", "", "open "+dir+" in the editor"
	case !given:
		f.What = "nothing says which folder the editor has open"
	}
	x.add(f)
}

// support examines whether the CLI takes the terminal for an editor's at all.
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
		Mend: "export TERM_PROGRAM=vscode", Remark: "until the companion is updated: its file has no ideInfo"}
	if c.Taken < 0 {
		f.Why, f.Mend, f.Remark = "no companion is found, and the terminal is none that it knows; it asks once, at its start", "", "start the companion first, then gemini"
	}
	x.r.Says = client.Unsupported()
	x.add(f)
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
