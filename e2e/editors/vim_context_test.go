package editors

import (
	"os"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/terminal"
)

// C-1 … C-6: what is focused, exactly, and nothing stale.
func vimContext(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample, "b.txt": "b\n", ".git/COMMIT_EDITMSG": "m\n"}, "a.go")
	b.sees(a, "a.go 1:1")
	b.text("3G$")
	b.sees(a, "a.go 3:17") // tab, 5 + 1 + 5 + 1 letters, the emoji is two units, a blank
	b.text("Fw")
	b.sees(a, "a.go 3:8")
	b.ex("split b.txt")
	b.sees(a, "b.txt 1:1")
	b.ex("help")
	b.sees(a, "none")
	b.ex("q")
	b.sees(a, "b.txt 1:1")
	b.ex("enew")
	b.sees(a, "none")
	b.ex("e .git/COMMIT_EDITMSG")
	b.sees(a, "none")
	b.ex("tabnew a.go")
	b.sees(a, "a.go 1:1")
	b.ex("saveas c.go")
	b.sees(a, "c.go 1:1")
	b.ex("cd " + b.root)
	b.ex("bwipeout!")
	for _, file := range a.Context("a context without c.go", func(files []agentFile) bool { return !strings.Contains(names(files), "c.go") }) {
		if strings.Contains(file.Path, "COMMIT") {
			t.Errorf("%+v", file)
		}
	}
}

// C-4, C-5: every kind of selection, gone when it is gone.
func vimSelection(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a.go": sample}, "a.go")
	b.text("3G0wviw")
	b.sees(a, `a.go 3:6 "hällo"`)
	b.text("w") // extends to the next word's first letter
	b.sees(a, `a.go 3:8 "hällo w"`)
	b.escape()
	b.sees(a, `a.go 3:8 "hällo w"`) // until the cursor moves
	b.text("j")
	b.sees(a, "a.go 4:11")
	b.text("Vk")
	b.sees(a, `a.go 3:8 "\thällo wörld 😀 x\nfourth line\n"`)
	b.escape()
	b.text("4G0v$")
	b.sees(a, `a.go 4:12 "fourth line\n"`)
	b.escape()
	b.text("gg3Gf😀v")
	b.sees(a, `a.go 3:14 "😀"`)
	b.escape()
	b.text("4G0")
	b.keys("C-v")
	b.text("jl")
	b.sees(a, `a.go 5:2 "fo\nla"`)
	b.text("$")
	b.sees(a, `a.go 5:5 "fourth line\nlast"`)
	b.escape()
	b.text("dd0")
	b.sees(a, "a.go 4:1")
}

// C-4: blocks in every direction, over tabs and wide characters; other ways to select.
func vimBlocks(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "\tone\n日本語 x\nplain text\n"}, "a")
	b.sees(a, "a 1:2")
	b.text("2G0l") // 本: columns 3 and 4
	b.keys("C-v")
	b.text("jlll") // to column 6: 語 above, "in " below
	b.sees(a, `a 3:6 "本語\nain "`)
	b.text("O")
	b.sees(a, `a 3:3 "本語\nain "`)
	b.escape()
	b.text("3G0")
	b.keys("C-v")
	b.text("kk") // upwards: the tab covers what is below it
	b.sees(a, `a 1:1 "\t\n日本語 x\nplain te"`)
	b.escape()
	b.ex("set selection=exclusive")
	b.text("3G0v3l")
	b.sees(a, `a 3:4 "pla"`)
	b.escape()
	b.ex("set selection=inclusive")
	b.text("3G02lvh")
	b.sees(a, `a 3:2 "la"`) // backwards
	b.escape()
	b.text("j0gv")
	b.sees(a, `a 3:2 "la"`)
	b.escape()
	b.text("gg0gh")
	b.keys("S-Right")
	b.sees(a, `a 1:2 "\to"`) // select mode
	b.keys("Escape")
}

// C-2: the focus follows the user through windows and tab pages, and what lies
// in the others stays open.
func vimTabs(t *testing.T, f flavour) {
	b, a := user(t, f, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"}, "a")
	b.sees(a, "a 1:1")
	b.ex("vsplit b")
	b.sees(a, "b 1:1")
	b.ex("tabedit c")
	b.sees(a, "c 1:1")
	b.text("gt")
	b.sees(a, "b 1:1")
	b.keys("C-w", "w")
	b.sees(a, "a 1:1")
	b.ex("copen")
	b.sees(a, "none")
	b.ex("cclose")
	b.sees(a, "a 1:1")
	b.ex("pedit b | wincmd P")
	b.is("&previewwindow", "1")
	b.sees(a, "none")
	b.ex("pclose")
	b.sees(a, "a 1:1")
	b.ex("tabnext | bdelete c")
	a.Context("no c", func(files []agentFile) bool { return len(files) == 2 && !strings.Contains(names(files), b.path("c")) })
}

// D-4: folders by :cd, :tcd and :lcd.
func vimWorkingFolders(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{"a": "a\n", "../q/.git/config": "", "../q/sub/x": "x\n", "../r2/x": "x\n", "../r3/x": "x\n"})
	b.open("a")
	roots := func(want ...string) {
		t.Helper()
		b.until(strings.Join(want, " "), func() bool {
			got := b.eval("$GEMINI_CLI_IDE_WORKSPACE_PATH")
			for _, root := range want {
				if !strings.Contains(":"+got+":", ":"+root+":") {
					return false
				}
			}
			return strings.Count(got, ":") == len(want)-1
		})
	}
	roots(b.project)
	b.ex("tabnew | tcd " + b.root + "/q/sub")
	roots(b.project, b.root+"/q")
	b.ex("split | lcd " + b.root + "/r2")
	roots(b.project, b.root+"/q", b.root+"/r2")
	b.ex("q")
	roots(b.project, b.root+"/q")
	b.ex("tabclose")
	roots(b.project)
	b.ex("cd " + b.root + "/r3")
	roots(b.root + "/r3")
	data, err := os.ReadFile(b.file())
	if err != nil || !strings.Contains(string(data), `"workspacePath":"`+b.root+`/r3"`) {
		t.Errorf("%s, %v", data, err)
	}
}

// An editor for a commit message has no companion, and nothing to complain of.
func vimCommit(t *testing.T, f flavour) {
	b := newBench(t, f, map[string]string{".git/COMMIT_EDITMSG": "m\n"})
	b.tm = terminal.Start(b, terminal.Options{Dir: b.project, Env: b.env, Args: f.start(t, b, []string{".git/COMMIT_EDITMSG"})})
	b.Cleanup(b.diagnose)
	b.is("expand('%:t') . mode(1)", "COMMIT_EDITMSGn")
	b.pause(500)
	b.is("mode(1)", "n")
	if says := b.eval(f.messages); strings.Contains(says, "Error") || strings.Contains(says, "E1") || len(b.files()) != 0 {
		t.Errorf("it says %s, and there are %v", says, b.files())
	}
	b.is(f.running, "stopped")
}
