//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/client/clienttest"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
)

// SPEC K-1: where a folder and one inside it are both served, commands about the CLI follow the CLI's rule, which is
// not the nearest. Commands that ask the user take the nearest.
func TestNested(t *testing.T) {
	pace.NotRaced(t, "each command is a process of its own, and shares its memory with no other")
	w := newWorld(t)
	sub := filepath.Join(w.project, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("sub/a.txt", "a\n", 0o600)
	outer, inner := w.write("outer.txt", "o\n", 0o600), filepath.Join(sub, "a.txt")
	served := []*live{w.serve(), w.serve(sub)}
	pages := []*webtest.Page{webtest.Open(t, served[0].Page, "outer"), webtest.Open(t, served[1].Page, "inner")}
	pids := []int{served[0].cmd.Process.Pid, served[1].cmd.Process.Pid}
	files := []string{outer, inner}
	for i, page := range pages {
		w.looks(page, sub, []string{"SSH_CONNECTION=a b c d", "GEMINI_CLI_IDE_PID=" + strconv.Itoa(pids[i])}, files[i])
	}
	larger := 0
	if pids[1] > pids[0] {
		larger = 1
	}
	for i := range served {
		for _, env := range [][]string{{"GEMINI_CLI_IDE_PID=" + strconv.Itoa(pids[i])}, {"GEMINI_CLI_IDE_SERVER_PORT=" + strconv.Itoa(served[i].Port)}, {"GEMINI_CLI_IDE_PID="}} {
			want := i
			if env[0] == "GEMINI_CLI_IDE_PID=" {
				want = larger
			}
			env = append(env, "SSH_CONNECTION=a b c d") // and not in a container
			var all []struct {
				Port        int
				Here, Taken bool
			}
			out, _ := w.in(sub, env, "status", "--json")
			if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 2 {
				t.Fatalf("%s: %v", out, err)
			}
			if !all[0].Here || !all[1].Here || !all[0].Taken || all[1].Taken || all[0].Port != served[want].Port {
				t.Errorf("%v: status %+v, want port %d taken", env, all, served[want].Port)
			}
			if out, _ := w.in(sub, env, "status"); strings.Count(out, "\n* ") != 1 {
				t.Errorf("%v: the star of status:\n%s", env, out)
			}
			if out, _ := w.in(sub, env, "doctor"); !strings.Contains(out, "it takes gemini-ide-server-"+strconv.Itoa(pids[want])+"-") {
				t.Errorf("%v: doctor:\n%s", env, out)
			}
			if out, _ := w.in(sub, env, "context", "--json"); !strings.Contains(out, strconv.Quote(files[want])) {
				t.Errorf("%v: context %s, want %s", env, out, files[want])
			}
		}
	}
	// open addresses the user: the nearest
	w.ask("", "sh", "-c", "cd sub && exec pollux open a.txt").wants(0, "")
	var note struct{ Path string }
	pages[1].Expect("open", &note)
	if note.Path != inner {
		t.Errorf("%+v", note)
	}
}

// looks has a page report that its user looks at a file, and waits until the companion reports the file as the CLI's
// context.
func (w *world) looks(page *webtest.Page, dir string, env []string, file string) {
	w.t.Helper()
	page.Notify("context/update", map[string]any{"open": []string{file}, "active": map[string]any{"path": file, "cursor": map[string]int{"line": 0, "character": 0}}, "dirty": []string{}, "focused": true})
	eventually(w.t, file+" in the context", func() bool {
		out, _ := w.in(dir, env, "context", "--raw")
		return strings.Contains(out, strconv.Quote(file))
	})
}

// Other companions are joined as a CLI does. pollux says when the CLI does not find one, or when it sends no context.
func TestContextOfOthers(t *testing.T) {
	w := newWorld(t)
	quiet := []string{"SSH_CONNECTION=a b c d"}
	other, err := clienttest.Start(clienttest.Options{Base: w.tmp})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Stop() }()
	file := filepath.Join(other.Root, "x.txt")
	if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other.Open(file)
	out, code := w.in(other.Root, quiet, "context")
	if want := "Here is the user's editor context as a JSON object. This is for your information only.\n```json\n{\n  \"activeFile\": {\n    \"path\": \"" + file; code != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("exit code %d: %s", code, out)
	}
	before, _ := w.in(other.Root, quiet, "context", "--raw")
	w.write("before", before, 0o600)
	second := filepath.Join(other.Root, "y.txt")
	if err := os.WriteFile(second, []byte("y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other.Open(second, file)
	out, code = w.in(other.Root, quiet, "context", "--json", "--since", filepath.Join(w.project, "before"))
	if want := `{"changes":{"filesOpened":["` + second + `"],"activeFileChanged":{"path":"` + second + `","cursor":{"line":1,"character":1}}}}` + "\n"; code != 0 || out != want {
		t.Errorf("exit code %d: %s, want %s", code, out, want)
	}
	if out, code := w.in(other.Root, quiet, "context", "--json", "--since", "/dev/null"); code != console.CodeFailed {
		t.Errorf("what is no context: exit code %d, %s", code, out)
	}
	if n := len(other.Registry.Pending()); n != 0 {
		t.Errorf("%d diffs", n)
	}

	// With another temp folder the CLI finds nothing, though pollux does.
	w.serve()
	for _, env := range [][]string{{"TMPDIR=" + w.root}, {"GEMINI_CLI_IDE_WORKSPACE_PATH=/elsewhere", "TMPDIR=" + w.root, "TERM_PROGRAM=vscode"}} {
		if out, code := w.in(w.project, env, "context"); code != console.CodeNo || out != "" {
			t.Errorf("%v: exit code %d, %s", env, code, out)
		}
		var all []struct{ Taken bool }
		out, _ := w.in(w.project, env, "status", "--json", "--all")
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) == 0 || all[0].Taken {
			t.Errorf("%v: %s", env, out)
		}
	}
}

// doctor is satisfied only where a diff would be shown: a connected CLI shows none without a page or an editor.
func TestDoctorWithoutViews(t *testing.T) {
	w := newWorld(t)
	if out, code := w.in(w.project, nil, "setup", "--only", "ide"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	l := w.serve()
	examine := func() (views finding, code int) {
		t.Helper()
		out, code := w.in(w.project, []string{"SSH_CONNECTION=a b c d", "GEMINI_CLI_IDE_PID="}, "doctor", "--json")
		var report struct{ Findings []finding }
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		i := slices.IndexFunc(report.Findings, func(f finding) bool { return f.ID == "views" })
		if i < 0 {
			t.Fatalf("no such finding: %s", out)
		}
		return report.Findings[i], code
	}
	if f, code := examine(); code != console.CodeNo || f.Level != "fault" || f.Mend != "pollux page" {
		t.Errorf("nobody looks: %+v, exit code %d", f, code)
	}
	webtest.Open(t, l.Page, "views")
	if f, code := examine(); code != 0 || f.Level != "ok" || !strings.Contains(f.What, "on an open page") {
		t.Errorf("a page is open: %+v, exit code %d", f, code)
	}
}

type finding struct{ ID, Level, What, Mend string }

// A terminal whose temp folder differs from the editor's is told which one to use. If only the discovery file is
// gone, it is told that.
func TestDoctorOtherTemp(t *testing.T) {
	w := newWorld(t)
	file := w.serve().DiscoveryFile
	choice := func(temp string) (what, mend string) {
		t.Helper()
		out, code := w.in(w.project, []string{"TMPDIR=" + temp}, "doctor", "--json")
		var report struct {
			Findings []struct{ ID, Level, What, Mend string }
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != console.CodeNo {
			t.Fatalf("exit code %d, %v: %s", code, err, out)
		}
		for _, f := range report.Findings {
			if f.ID == "choice" && f.Level == "fault" {
				return f.What, f.Mend
			}
		}
		return "", ""
	}
	if what, mend := choice(filepath.Join(w.root, "other")); !strings.Contains(what, "not where the CLI looks") || mend != "export TMPDIR="+w.tmp {
		t.Errorf("%q, %q", what, mend)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if what, mend := choice(w.tmp); !strings.Contains(what, "its file has gone") || mend != "" {
		t.Errorf("%q, %q", what, mend)
	}
}
