package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Faults that Gemini CLI would skip silently are found, with their place; correct files give no findings (SPEC E-4).
func TestContent(t *testing.T) {
	front := "---\nname: x\ndescription: does x\n---\ntext\n"
	for _, c := range []struct{ file, text, want string }{
		{"commands/a.toml", "prompt = [\n", ":"},
		{"commands/a.toml", "prompt = \"x\"\nprompt = \"y\"\n", ":2:"},
		{"commands/deep/er/a.TOML", "description = \"x\"\n", `has no "prompt"`},
		{"commands/a.toml", "prompt = 5\n", `has no "prompt"`},
		{"commands/a.toml", "prompt = \"x\"\ndescription = 5\n", "is no text"},
		{"commands/a.toml", "prompt = 'unclosed\n", "not TOML"},
		{"policies/p.toml", "[[rule]\n", "not TOML"},
		{"skills/s/SKILL.md", "no front matter", "does not begin"},
		{"skills/s/SKILL.md", "---\nname: x\n", "never closed"},
		{"skills/s/SKILL.md", "---\nname: x\n---\n", `has no "description"`},
		{"skills/s/skill.md", "---\nname: x\ndescription: a: b\n---\n", ":3:1: warning: YAML reads"},
		{"agents/a.md", "---\nname: [x\ndescription: b\n---\n", ":2:1: warning: YAML reads"},
		{"agents/a.md", "---\nname: x\ndescription:\n---\n", "is empty"},
		{"agents/a.md", "---\nname: x\nname: y\n---\n", "stands twice"},
		{"agents/a.md", "---\nname x\n---\n", "no line of front matter"},
		{"agents/a.md", "---\nname: x\n\tdescription: y\n---\n", "knows no tabs"},
		{"GEMINI.md", "\xff\xfeh\x00i\x00", "UTF-16"},
		{"tools/x.py", "p\x00r\x00i\x00n\x00t\x00", "UTF-16"},
		{"docs/x.md", "gr\xf6\xdfer", ":1:3: warning: it is not UTF-8 here"},
		{"tools/run", "#!/bin/sh\r\necho\r\n", "ends as on Windows"},
		{"hooks/x.py", "#!/usr/bin/env python3\r\nprint()", "ends as on Windows"},

		{"commands/a.toml", "description = \"x\"\nprompt = \"\"\"\nmany\nlines\"\"\"\n", ""},
		{"commands/notes.md", "text", ""},
		{"policies/p.toml", "[[rule]]\ntoolName = \"x\"\n", ""},
		{"skills/s/SKILL.md", front, ""},
		{"skills/s/SKILL.md", strings.ReplaceAll("\uFEFF"+front, "\n", "\r\n"), ""},
		{"skills/s/SKILL.md", "---\nname: x\ndescription: >\n  does: x\n  # and y\nmetadata:\n  a: b\ntools:\n- one\n---\n", ""},
		{"skills/s/SKILL.md", "---\nname: x\ndescription: \"a: b\" \n# note\nallowed-tools: [a, b]\n---\n", ""},
		{"skills/s/SKILL.md", "---\nname: x\ndescription:\n  does x\n---\n", ""},
		{"skills/s/other.md", "no front matter", ""},
		{"agents/deep/a.md", "no front matter", ""},
		{"image.png", "\xff\xfe\x00\x00", ""},
		{"tools/x.sh", "#!/bin/sh\necho\r\n", ""},
		{"node_modules/x/commands/a.md", "\xff\xfe", ""},
		{"tools/empty.py", "", ""},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, c.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Content(dir)
		if err != nil || len(found) > 1 || (len(found) == 0) != (c.want == "") {
			t.Errorf("%s %q: %v, %v", c.file, c.text, found, err)
			continue
		}
		if c.want != "" && (!strings.Contains(found[0].String(), c.want) || !strings.HasPrefix(found[0].String(), file) || found[0].Severity != Warning || found[0].Fix == "") {
			t.Errorf("%s %q: %s, want %q", c.file, c.text, found[0], c.want)
		}
	}
}

func FuzzFront(f *testing.F) {
	for _, s := range []string{"---\nname: x\n---", "", "---", "---\n---", "---\nname:\n---", "---\ndescription: [\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range judgeFront([]byte(text)) {
			if found.Line < 1 || found.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%q: line %d", text, found.Line)
			}
		}
		judgeCommand([]byte(text))
	})
}
