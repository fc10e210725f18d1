//go:build unix

package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/core/state"
)

// SPEC CX-1, CX-2: pollux asks as Codex does, and says what is the matter at each step of its way; what conform tries holds.
func TestLook(t *testing.T) {
	temp, root := shortTemp(t), t.TempDir()
	t.Setenv("TMPDIR", temp)
	home := filepath.Join(temp, "home")
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	levels := func(dir string) (last finding.Finding) {
		t.Helper()
		all := Look(t.Context(), dir, getenv)
		for _, f := range all {
			if f.Level == finding.Fault {
				return f
			}
		}
		return all[len(all)-1]
	}
	if f := levels(root); f.ID != "files" || f.Level != finding.Fault {
		t.Errorf("never used: %+v", f)
	}
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f := levels(root); f.ID != "port" || f.Level != finding.Fault || !strings.Contains(f.What, "not there") {
		t.Errorf("nobody answers: %+v", f)
	}
	a := filepath.Join(root, "a.txt")
	snap := &state.Snapshot{Roots: []string{root}, Active: a, Files: []state.File{{Path: a}},
		Selections: []state.Selection{{Text: "two"}}}
	s, err := serve(t, temp, snap)
	if err != nil {
		t.Fatal(err)
	}
	if f := levels(t.TempDir()); f.ID != "workspace" || f.Level != finding.Fault {
		t.Errorf("another folder: %+v", f)
	}
	if f := levels(root); f.ID != "mode" || f.Level != finding.Note {
		t.Errorf("all is well: %+v", f)
	}
	c, err := Dial(t.Context(), "", root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	data, err := c.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told, err := Told(data)
	if want := "# Context from my IDE setup:\n\n## Active file: a.txt\n\n## Active selection of the file:\ntwo\n## Open tabs:\n- a.txt: a.txt"; err != nil || told != want {
		t.Errorf("%q, %v", told, err)
	}
	for _, trial := range Trials() {
		if err := trial.Try(t.Context(), finding.Door{Socket: Path(temp), Dir: root}); err != nil {
			t.Errorf("%s: %v", trial.Name, err)
		}
	}
	if d, ok := LetsIn(os.Getpid()); !ok || d.Socket != Path(temp) {
		t.Errorf("%+v, %v", d, ok)
	}
	if _, ok := LetsIn(1); ok {
		t.Error("another process answers")
	}
	if len(s.Asked()) != 0 {
		t.Errorf("pollux's own questions are taken for a Codex's: %v", s.Asked())
	}
	ask(t, temp, request(methodContext, t.TempDir()))
	if len(s.Asked()) != 0 {
		t.Errorf("of another folder: %v", s.Asked())
	}
	ask(t, temp, request(methodContext, root))
	if got := s.Asked(); len(got) != 1 || got[0].PID != os.Getpid() {
		t.Errorf("who has asked: %v", got)
	} else if of := s.Folder(got[0]); of != root {
		t.Errorf("it has asked for %q, want %q", of, root)
	}
}

// FuzzTold: no context of another program's makes it fail, and each of its parts stands in what the model is told.
func FuzzTold(f *testing.F) {
	for _, seed := range []string{
		`{"activeFile":{"label":"a","path":"a","fsPath":"/w/a","activeSelectionContent":"two"},"openTabs":[{"label":"a","path":"a"}]}`,
		`{"activeFile":{"path":""},"openTabs":null}`, `{"openTabs":[{}]}`, `{"activeFile":null}`, `{}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		told, err := Told(data)
		var c ideContext
		if err != nil || json.Unmarshal(data, &c) != nil {
			return
		}
		if (told == "") != (c.Active == nil && len(c.Open) == 0) || c.Active != nil && !strings.Contains(told, c.Active.Content) {
			t.Errorf("of %q: %q", data, told)
		}
	})
}
