package claude

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// A settled is a workspace in a home folder with settings.
type settled struct {
	*workspace.Workspace
	t          *testing.T
	home, root string
}

// newSettled writes files: "~/…" in the home folder, others in the workspace. $ROOT in them stands for the workspace's folder.
func newSettled(t *testing.T, files map[string]string, variables ...string) *settled {
	t.Helper()
	base := paths.Real(t.TempDir())
	p := &settled{t: t, home: filepath.Join(base, "home"), root: filepath.Join(base, "root")}
	env := map[string]string{"HOME": p.home, "USERPROFILE": p.home}
	for i := 0; i < len(variables); i += 2 {
		env[variables[i]] = p.at(variables[i+1])
	}
	getenv := func(name string) string { return env[name] }
	for _, dir := range []string{p.home, p.root} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		p.put(name, strings.ReplaceAll(text, "$ROOT", filepath.ToSlash(p.root)))
	}
	deniers := Deniers(getenv)
	for i, d := range deniers { // without what this machine has
		deniers[i].Always = slices.DeleteFunc(d.Always, func(file string) bool { return !paths.Within(base, file) })
	}
	var err error
	if p.Workspace, err = workspace.New([]string{p.root}, &workspace.Options{Deniers: deniers, ShareOutside: true}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *settled) at(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(p.home, filepath.FromSlash(rest))
	}
	return filepath.Join(p.root, filepath.FromSlash(name))
}

func (p *settled) put(name, text string) string {
	p.t.Helper()
	path := p.at(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// tells compares what an agent may be told with what it should be.
func (p *settled) tells(agent string, want map[string]bool) {
	p.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		path := p.at(name)
		if _, err := os.Stat(path); err != nil {
			p.put(name, "text\n")
		}
		if got := !p.Denying()(agent, path); got != want[name] {
			p.t.Errorf("%s may be told %s: %v", agent, name, got)
		}
		if p.Denying()("gemini", path) {
			p.t.Errorf("another agent is not told %s", name)
		}
	}
}

func deny(rules ...string) string {
	return `{"permissions": {"deny": ["` + strings.Join(rules, `", "`) + `"]}}`
}

// SPEC C-8, CC-18: what Claude Code's own settings keep from its tools is not named to it, in the readings that the published CLI was seen to
// have (e2e TestDenied).
func TestClaudeDenies(t *testing.T) {
	p := newSettled(t, map[string]string{
		"~/.claude/settings.json": deny("Read(./u1)", "Read(/u2)", "Read(u3)", "Read(~/u4)", "Read(/$ROOT/u5)", "Read(src/u6)"),
		".claude/settings.json": deny("Read(./p1)", "Read(/p2)", "Read(dir1)", "Read(dir2/)", "Read(dir3/**)", "Read(dir4/*)", "Edit(p4)", "Read(*.key)",
			"Read(./**/deep.txt)", "Read(P6)", "Read(p7) ", " Read(p8)", "read(p9)", "Read(p[1]4)", "Grep(p17)", "Read(#p19)", "Read(a b)", "Read(p(1))",
			"Read(?.ä)", "Read([ö-ü].x)", "Bash(cat x)", "Read(!p1)", "Read()"),
		".claude/settings.local.json": deny("Read(l1)"),
		"sub/.claude/settings.json":   deny("Read(s1)", "Read(/s2)"),
	})
	p.tells(Name, map[string]bool{
		"u1": false, "u2": false, "~/.claude/u2": false, "u3": false, "sub/u3": false, "~/u4": false, "u5": false, "sub/u5": true,
		"src/u6": false, "sub/src/u6": false, "sub/x/u6": true,
		"p1": false, "sub/p1": false, "p2": false, "sub/p2": true, "dir1/a": false, "dir2/a": false, "dir2x/a": true, "dir3/a": false, "dir4/a": false, "dir4/b/c": false,
		"p4": true, "a.key": false, "sub/B.KEY": false, "~/b.key": true, "sub/x/deep.txt": false, "deep.txt": false, "p6": false, "p7": false, "p8": false, "p9": false,
		"p14": false, "p17": true, "#p19": false, "a b": false, "p(1)": false, "ö.ä": false, "ß.x": false, "öö.ä": true, "x": true,
		"l1": false, "s1": true, "sub/s1": false, "sub/deep/s1": false, "sub/s2": false, "s2": true,
	})
	p.tells(OpenCode, map[string]bool{"u1": true, "p1": true, "a.key": true})
	link := p.at("harmless")
	if err := os.Symlink(p.at("a.key"), link); err == nil && !p.Denying()(Name, link) {
		t.Error("a link shows what it leads to")
	}
}

// SPEC CC-18: a rule without a pattern, or for more tools than one, is about every file.
func TestClaudeDeniesAll(t *testing.T) {
	for rule, want := range map[string]bool{
		"Read": false, "Read(*)": false, "*": false, "Re*": false, "Read(//**)": false, "Read(./**)": false, "Read(/**)": false,
		"Read(./)": true, "Read(/)": true, "Read(//)": true, "Read(~)": true, "Read(.)": true, "Readx": true, "Read()": true, "mcp__*": true, "Write": true,
	} {
		p := newSettled(t, map[string]string{".claude/settings.json": deny(rule)})
		p.tells(Name, map[string]bool{"f": want, "sub/f": want})
	}
}

// costly returns rules that take long to try.
func costly() (rules []string) {
	for i := range 2000 {
		rules = append(rules, fmt.Sprintf("Read(**/%s%d)", strings.Repeat("a*b*", 20), i))
	}
	return rules
}

// SPEC C-8: settings that cannot be followed keep everything from their own agent, and say why. Mended ones count at once.
func TestDeniesUnreadable(t *testing.T) {
	for name, tc := range map[string]struct{ agent, file, text, mended string }{
		"no JSON":            {Name, ".claude/settings.json", `{"permissions": {"deny": ["Read(x)"]}`, `{}`},
		"comments":           {Name, ".claude/settings.json", "// why\n" + deny("Read(x)"), deny("Read(x)")},
		"a text":             {Name, ".claude/settings.local.json", `{"permissions": {"deny": "Read(x)"}}`, ``},
		"a number":           {Name, ".claude/settings.json", `{"permissions": {"deny": [5]}}`, `{"permissions": {"deny": []}}`},
		"a list":             {Name, "~/.claude/settings.json", `[]`, `{"permissions": null}`},
		"UTF-16":             {Name, "~/.claude/settings.json", "\xff\xfe{\x00}\x00", "\xef\xbb\xbf{}"},
		"too large":          {Name, ".claude/settings.json", strings.Repeat(" ", 1<<20+1), `{}`},
		"too costly":         {Name, ".claude/settings.json", deny(costly()...), `{}`},
		"opencode's":         {OpenCode, "opencode.json", `{"permission": {"read": {"x": "denied"}}}`, `{"permission": {"read": {"x": "deny",}},} // fine`},
		"opencode's, a list": {OpenCode, "~/.config/opencode/opencode.jsonc", `[]`, `{"permission": "ask"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSettled(t, map[string]string{tc.file: tc.text})
			p.tells(tc.agent, map[string]bool{"sub/" + strings.Repeat("abababab/", 20) + "f": false})
			list := p.Withheld()
			if len(list) != 1 || list[0].File != p.at(tc.file) || !strings.Contains(list[0].String(), "shared with "+list[0].From+": ") || list[0].From == "" {
				t.Fatalf("%+v", list)
			}
			p.put(tc.file, tc.mended)
			p.tells(tc.agent, map[string]bool{"sub/" + strings.Repeat("abababab/", 20) + "f": true})
			if list := p.Withheld(); len(list) > 0 {
				t.Errorf("after it was mended: %v", list)
			}
		})
	}
	p := newSettled(t, map[string]string{"sub/.claude/settings.json": "{"})
	p.tells(Name, map[string]bool{"f": true, "sub/f": false})
	p = newSettled(t, map[string]string{"~/elsewhere/settings.json": "{"}, homeVariable, "~/elsewhere")
	p.tells(Name, map[string]bool{"f": false})
}

// SPEC C-8, OC-6: opencode's rules: the last one that fits decides, in one file and over several; "*" goes over slashes.
func TestOpenCodeDenies(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  map[string]bool
	}{
		"patterns": {
			map[string]string{".git/HEAD": "", "opencode.jsonc": `{"permission": {"read": {"*": "allow", "*.env*": "deny", "src/*": "deny", "src/a?.go": "ask", "dir": "deny", "x *": "deny", "[a]": "deny"}}, /* c */}`},
			map[string]bool{"a.env": false, "deep/b.env.local": false, "src/x": false, "src/sub/x": false, "src/ab.go": true, "src/aä.go": true, "src/abc.go": false, "src/a": false, "dir": false, "other/src/x": true, "x": false, "x y": false, "[a]": false, "a": true},
		},
		"only some": {
			map[string]string{".git/HEAD": "", "opencode.json": `{"permission": {"read": {"*": "deny", "src/*": "allow"}}}`},
			map[string]bool{"src/x": true, "other/x": false, "sub/src/x": false},
		},
		"all tools": {
			map[string]string{"opencode.json": `{"permission": {"*": "deny", "bash": "allow"}}`}, map[string]bool{"f": false},
		},
		"all tools but this one": {
			map[string]string{"opencode.json": `{"permission": {"*": "deny", "read": "allow"}}`}, map[string]bool{"f": true},
		},
		"one word": {map[string]string{"opencode.json": `{"permission": "deny"}`}, map[string]bool{"f": false}},
		"edit":     {map[string]string{"opencode.json": `{"permission": {"edit": "deny", "doom": 5}}`}, map[string]bool{"f": true}},
		"tools":    {map[string]string{"opencode.json": `{"tools": {"read": false}}`}, map[string]bool{"f": false}},
		"tools, and a permission": {
			map[string]string{"opencode.json": `{"permission": {"read": "allow"}, "tools": {"read": false}}`}, map[string]bool{"f": true},
		},
		"an agent's": {
			map[string]string{"opencode.json": `{"permission": {"read": "allow"}, "agent": {"plan": {"permission": {"read": {"f": "deny"}}}}}`},
			map[string]bool{"f": false, "g": true},
		},
		"home": {
			map[string]string{"~/.config/opencode/opencode.json": `{"permission": {"read": {"~/x/*": "deny", "$HOME/y": "deny", "$ROOT/f": "deny"}}}`},
			map[string]bool{"~/x/f": false, "~/y": false, "~/z": true, "f": false, "g": true},
		},
		"another file allows, in the first one's place": {
			map[string]string{"~/.config/opencode/opencode.json": `{"permission": {"read": {"b": "allow", "*": "deny"}}}`, "opencode.json": `{"permission": {"read": {"b": "allow"}}}`},
			map[string]bool{"b": false},
		},
		"another file denies, in the first one's place": {
			map[string]string{"~/.config/opencode/opencode.json": `{"permission": {"read": {"b": "allow", "*": "allow"}}}`, "opencode.json": `{"permission": {"read": {"*": "deny", "b": "allow"}}}`},
			map[string]bool{"b": false, "c": false},
		},
		"a folder": {
			map[string]string{"sub/.opencode/opencode.json": `{"permission": {"read": "deny"}}`}, map[string]bool{"f": true, "sub/f": false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSettled(t, tc.files)
			p.tells(OpenCode, tc.want)
		})
	}
}

func FuzzDenials(f *testing.F) { // SPEC A-4
	f.Add([]byte(deny("Read(./a)", "Read(//b/**)", "Read(~/c)", "Read", "Re*(d)")), "a/b")
	f.Add([]byte("{"), "")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		home := filepath.Join(string(filepath.Separator)+"home", "me")
		all, err := denials(data, filepath.Join(home, ".claude", "settings.json"), "", home)
		if err != nil && len(all) > 0 {
			t.Error("rules of a file that cannot be followed")
		}
		for _, d := range all {
			if !d.Deny || d.Tool != "Read" || !d.Whole && d.Base != "" && !filepath.IsAbs(d.Base) {
				t.Errorf("%+v", d)
			}
			workspace.FitsWhole(d.Pattern, path)
		}
	})
}

func FuzzOpenCodeDenials(f *testing.F) { // SPEC A-4
	f.Add([]byte(`{"permission": {"*": "ask", "read": {"a*": "deny", /* c */ "~/b": "allow",}}, "agent": {"x": {"permission": "deny"}}, "tools": {"read": false}}`))
	f.Add([]byte(`{"permission": {"read": {"a": 1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := openCodeDenials(data, "/home/me")
		if err != nil && len(all) > 0 {
			t.Error("rules of a file that cannot be followed")
		}
		for _, d := range all {
			if !d.Whole || !workspace.FitsWhole(d.Tool, "read") {
				t.Errorf("%+v", d)
			}
		}
	})
}
