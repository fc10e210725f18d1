package settingsfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const program Program = "The Agent"

var both = []string{"ide.enabled", "ide.hasSeenNudge"} //nolint:gochecknoglobals // what setup asks for

func settings(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, 0o640)); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// texts are realistic settings, each without and with IDE mode.
func texts() map[string][2]string {
	return map[string][2]string{
		"empty object":  {"{}\n", "{\n  \"ide\": {\n    \"enabled\": true,\n    \"hasSeenNudge\": true\n  }\n}\n"},
		"brace alone":   {"{\n}", "{\n  \"ide\": {\n    \"enabled\": true,\n    \"hasSeenNudge\": true\n  }\n}"},
		"others":        {"{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"ide\": {\n    \"enabled\": true,\n    \"hasSeenNudge\": true\n  }\n}\n"},
		"tabs, CRLF":    {"{\r\n\t\"a\": 1\r\n}\r\n", "{\r\n\t\"a\": 1,\r\n\t\"ide\": {\r\n\t\t\"enabled\": true,\r\n\t\t\"hasSeenNudge\": true\r\n\t}\r\n}\r\n"},
		"one line":      {`{ "a": 1 }`, `{ "a": 1, "ide": {"enabled": true, "hasSeenNudge": true} }`},
		"comments":      {"// top\n{\n    \"a\": 1 // one\n    // last\n}\n// end", "// top\n{\n    \"a\": 1, // one\n    // last\n    \"ide\": {\n        \"enabled\": true,\n        \"hasSeenNudge\": true\n    }\n}\n// end"},
		"off":           {"{\"ide\": {\"enabled\": false /* no */, \"hasSeenNudge\": true}}", "{\"ide\": {\"enabled\": true /* no */, \"hasSeenNudge\": true}}"},
		"half":          {"{\n  \"ide\": {\n    \"enabled\": true\n  }\n}", "{\n  \"ide\": {\n    \"enabled\": true,\n    \"hasSeenNudge\": true\n  }\n}"},
		"other half":    {"{\n  \"ide\": {\n    \"hasSeenNudge\": false // c\n  },\n  \"z\": 0\n}", "{\n  \"ide\": {\n    \"hasSeenNudge\": true, // c\n    \"enabled\": true\n  },\n  \"z\": 0\n}"},
		"empty ide":     {"{\n  \"ide\": {},\n  \"z\": \"// no { comment\"\n}", "{\n  \"ide\": {\n    \"enabled\": true,\n    \"hasSeenNudge\": true\n  },\n  \"z\": \"// no { comment\"\n}"},
		"on already":    {"{\"ide\":{\"enabled\":true,\"hasSeenNudge\":true}}", "{\"ide\":{\"enabled\":true,\"hasSeenNudge\":true}}"},
		"twice the key": {"{\"ide\":{\"enabled\":true},\"ide\":{\"enabled\":false}}", "{\"ide\":{\"enabled\":true},\"ide\":{\"enabled\":true, \"hasSeenNudge\": true}}"},
		"escaped key":   {`{"\u0069de":{"enabled":false,"hasSeenNudge":true}}`, `{"\u0069de":{"enabled":true,"hasSeenNudge":true}}`},
	}
}

// A second Set changes nothing, and Undo restores every byte.
func TestSetAndUndo(t *testing.T) {
	for name, text := range texts() {
		path := settings(t, text[0])
		if dry, err := program.Set(path, both, &Options{DryRun: true}); err != nil || content(t, path) != text[0] || len(dry.Values) == 0 != (text[0] == text[1]) {
			t.Errorf("%s: a dry run: %+v, %v", name, dry, err)
		}
		c, err := program.Set(path, both, nil)
		if got := content(t, path); err != nil || got != text[1] {
			t.Errorf("%s: %v\n%s", name, err, got)
			continue
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		for _, key := range both {
			if on, err := program.Get(path, key); err != nil || on == nil || !*on {
				t.Errorf("%s: %s: %v, %v", name, key, on, err)
			}
		}
		if again, err := program.Set(path, both, nil); err != nil || len(again.Values) != 0 || content(t, path) != text[1] {
			t.Errorf("%s: the second time: %+v, %v", name, again, err)
		}
		if text[0] == text[1] {
			continue
		}
		kept, err := json.Marshal(c)
		var back Change
		if err == nil {
			err = json.Unmarshal(kept, &back)
		}
		if keys, uerr := program.Undo(back, nil); err != nil || uerr != nil || len(keys) == 0 || content(t, path) != text[0] {
			t.Errorf("%s: undo of %v: %v, %v\n%s", name, keys, err, uerr, content(t, path))
		}
	}
}

// After another program's change, Undo restores only values that are still as Set left them.
func TestUndoLater(t *testing.T) {
	for _, tt := range []struct{ name, before, from, to, want string }{
		{"another key", "{\n  \"a\": 1\n}", `"a": 1`, `"a": 2`, "{\n  \"a\": 2\n}"},
		{"a member behind", "{\n  \"a\": 1\n}", "\n  }\n}", "\n  },\n  \"z\": {} // z\n}", "{\n  \"a\": 1,\n  \"z\": {} // z\n}"},
		{"one of ours", "{\n  \"a\": 1\n}", `"enabled": true`, `"enabled": false`, "{\n  \"a\": 1,\n  \"ide\": {\n    \"enabled\": false\n  }\n}"},
		{"all of ours", "{\n  \"a\": 1\n}", "true", "false", ""},
		{"a friend of ours", "{}", `"hasSeenNudge": true`, `"hasSeenNudge": true, "x": 1`, "{\n  \"ide\": { \"x\": 1\n  }\n}"},
		{"a value", "{\"ide\":{\"enabled\":false,\"hasSeenNudge\":true}}", "{\"ide\"", "{\"n\":0,\"ide\"", "{\"n\":0,\"ide\":{\"enabled\":false,\"hasSeenNudge\":true}}"},
		{"a comment before", "{\n  \"a\": 1 // c\n}", `"a": 1`, `"a": 2`, ""},
	} {
		path := settings(t, tt.before)
		c, err := program.Set(path, both, nil)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(content(t, path), tt.from, tt.to)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = program.Undo(c, nil)
		got := content(t, path)
		if err != nil || tt.want != "" && got != tt.want {
			t.Errorf("%s: %v\n%s", tt.name, err, got)
		}
		if tt.name == "all of ours" && got != changed {
			t.Errorf("%s: %s", tt.name, got)
		}
		if _, err := program.Get(path, both[0]); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A missing file is created, and removed again unless somebody else wrote to it.
func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".agent", "settings.json")
	if on, err := program.Get(path, both[0]); err != nil || on != nil {
		t.Fatal(on, err)
	}
	c, err := program.Set(path, both, nil)
	if err != nil || !c.Created || content(t, path) != "{\n  \"ide\": {\n    \"enabled\": true,\n    \"hasSeenNudge\": true\n  }\n}\n" {
		t.Fatalf("%+v, %v", c, err)
	}
	if keys, err := program.Undo(c, nil); err != nil || len(keys) != 2 {
		t.Error(keys, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the folder is left")
	}
	if keys, err := program.Undo(c, nil); err != nil || len(keys) != 0 {
		t.Error(keys, err)
	}
}

// The error for an unreadable file names line and column; the file is not changed.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": 1,\n}":               ":3:1: ",
		"{\n  \"a\": 1\n  \"b\": 2\n}":    ":3:3: ",
		"":                                ":1:1: ",
		"[]":                              ":1:1: the settings must be one object",
		"{\"ide\": true}":                 `:1:9: "ide" must be an object`,
		"{\"ide\": {\"enabled\": \"x\"}}": `:1:21: "ide.enabled" must be true or false`,
		"{} /* open":                      ":1:4: ",
		"\xef\xbb\xbf{}":                  ":1:1: the file starts with a byte order mark, which The Agent refuses",
		"{'a': 1}":                        ":1:2: ",
	} {
		path := settings(t, text)
		_, err := program.Set(path, both, nil)
		if problem := (*problem)(nil); !errors.As(err, &problem) || !strings.Contains(err.Error(), want) || content(t, path) != text {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Claude Code does not load a file with comments (SPEC CC-18), so that a switch in it would do nothing. What was switched is undone all the same.
func TestNoComments(t *testing.T) {
	const before = "{\n  \"a\": \"//\"\n}\n"
	path := settings(t, before)
	c, err := ClaudeCode.Set(path, both, nil)
	if err != nil {
		t.Fatal(err)
	}
	commented := "// mine\n" + content(t, path)
	if err := os.WriteFile(path, []byte(commented), 0o600); err != nil {
		t.Fatal(err)
	}
	if on, err := ClaudeCode.Get(path, both[0]); on != nil || err == nil || !strings.Contains(err.Error(), ":1:1: Claude Code does not load a file with comments") {
		t.Errorf("%v, %v", on, err)
	}
	if _, err := ClaudeCode.Set(path, both, nil); err == nil || content(t, path) != commented {
		t.Errorf("it is set all the same: %v", err)
	}
	if on, err := program.Get(path, both[0]); err != nil || on == nil || !*on {
		t.Errorf("another agent: %v, %v", on, err)
	}
	if _, err := ClaudeCode.Undo(c, nil); err != nil || content(t, path) != "// mine\n"+before {
		t.Errorf("%v: %q", err, content(t, path))
	}
}

// Dotfiles are written through their link, which remains a link.
func TestLink(t *testing.T) {
	path := settings(t, "{}")
	link := filepath.Join(t.TempDir(), "settings.json")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	c, err := program.Set(link, both, nil)
	info, lerr := os.Lstat(link)
	if err != nil || lerr != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(content(t, path), "enabled") {
		t.Fatal(err, lerr)
	}
	if _, err := program.Undo(c, nil); err != nil || content(t, path) != "{}" {
		t.Error(err, content(t, path))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Set(link, both, nil); err == nil || !strings.Contains(err.Error(), link) {
		t.Error(err)
	}
}

func TestReadOnly(t *testing.T) {
	path := settings(t, "{}")
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Set(path, both, nil); err == nil || !strings.Contains(err.Error(), "set ide.enabled and ide.hasSeenNudge where it is made") || content(t, path) != "{}" {
		t.Error(err)
	}
}

// Another program's change is never lost: Set retries, or reports it.
func TestConcurrent(t *testing.T) {
	path := settings(t, "{}")
	n := 0
	_, err := program.Set(path, both, &Options{beforeWrite: func() {
		if n++; n < 3 {
			_ = os.WriteFile(path, bytes.Repeat([]byte(" "), n), 0o600)
			_ = os.WriteFile(path, []byte("{\"n\": "+strings.Repeat("1", n)+"}"), 0o600)
		}
	}})
	if got := content(t, path); err != nil || n != 3 || got != `{"n": 11, "ide": {"enabled": true, "hasSeenNudge": true}}` {
		t.Error(n, err, got)
	}
	_, err = program.Set(settings(t, "{}"), both, &Options{beforeWrite: func() {}})
	if err != nil {
		t.Error(err)
	}
	path = settings(t, "{}")
	_, err = program.Set(path, both, &Options{beforeWrite: func() { n++; _ = os.WriteFile(path, []byte(`{"n":`+strings.Repeat("1", n)+"}"), 0o600) }})
	if !errors.Is(err, errChanging) || strings.Contains(content(t, path), "ide") {
		t.Error(err)
	}
}

// FuzzSet: for any settings, only the keys change, and Undo restores every byte.
func FuzzSet(f *testing.F) {
	for _, text := range texts() {
		f.Add([]byte(text[0]))
	}
	f.Add([]byte("{/* a */ \"ide\" /* b */ : // c\n {} /* d */ , \"e\":[1,{}]} // f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := &file{path: "f", data: data}
		if file.parse() != nil {
			return
		}
		edits, values, err := file.set(both)
		if err != nil {
			return
		}
		next := apply(data, edits)
		var before, after map[string]any
		if json.Unmarshal(plain(data), &before) != nil || json.Unmarshal(plain(next), &after) != nil {
			t.Fatalf("%q became %q", data, next)
		}
		ide, _ := after["ide"].(map[string]any)
		if ide["enabled"] != true || ide["hasSeenNudge"] != true {
			t.Fatalf("%q became %q", data, next)
		}
		if old, ok := revert(next, edits); !ok || !bytes.Equal(old, data) {
			t.Fatalf("%q came back as %q", data, old)
		}
		if len(values) == 0 {
			return
		}
		made := parsed(t, next)
		restored, _, err := made.restore(values)
		if err != nil {
			t.Fatalf("%q: %v", next, err)
		}
		var again map[string]any
		if err := json.Unmarshal(plain(restored), &again); err != nil {
			t.Fatalf("%q was restored as %q", next, restored)
		}
		for _, m := range []map[string]any{before, again} {
			if ide, ok := m["ide"].(map[string]any); ok && len(ide) == 0 {
				delete(m, "ide") // an empty object may be removed
			}
		}
		if !duplicates(data) && !reflect.DeepEqual(before, again) {
			t.Fatalf("%q was restored as %q", data, restored)
		}
	})
}

func parsed(t *testing.T, data []byte) *file {
	t.Helper()
	f := &file{path: "f", data: data}
	if err := f.parse(); err != nil {
		t.Fatal(err)
	}
	return f
}

// duplicates reports whether a name occurs twice; the last one counts.
func duplicates(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(plain(data)))
	seen := map[string]bool{}
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if s, ok := token.(string); ok {
			if seen[s] {
				return true
			}
			seen[s] = true
		}
	}
}

// Claude Code loads a file that starts with a byte order mark, and an empty one, and takes its variable for on or off in several spellings
// (measured with 2.1.330).
func TestClaudeLoads(t *testing.T) {
	keys := []string{"env.X"}
	for before, after := range map[string]string{
		"\xef\xbb\xbf{\"a\": 1}\n":             "\xef\xbb\xbf{\"a\": 1, \"env\": {\"X\": \"true\"}}\n",
		"":                                     "{\n  \"env\": {\n    \"X\": \"true\"\n  }\n}\n",
		"{\"env\": {\"X\": \"off\"}}":          "{\"env\": {\"X\": \"true\"}}",
		"\xef\xbb\xbf{\"env\": {\"X\": \"\"}}": "",
		"{\"env\": {\"X\": \"1\"}}":            "{\"env\": {\"X\": \"1\"}}",
		"{\"env\": {\"X\": \"Yes\"}}":          "{\"env\": {\"X\": \"Yes\"}}",
		"{\"env\": {\"X\": true}}":             "{\"env\": {\"X\": true}}",
	} {
		path := settings(t, before)
		c, err := ClaudeCode.Set(path, keys, nil)
		if after == "" {
			if err == nil || !strings.Contains(err.Error(), `:1:18: "env.X" must be "true" or "false"`) || content(t, path) != before {
				t.Errorf("%q: %v", before, err)
			}
			continue
		}
		if got := content(t, path); err != nil || got != after {
			t.Errorf("%q: %v, %q", before, err, got)
			continue
		}
		if on, err := ClaudeCode.Get(path, keys[0]); err != nil || on == nil || !*on {
			t.Errorf("%q: %v, %v", before, on, err)
		}
		if before == after {
			continue
		}
		if _, err := ClaudeCode.Undo(c, nil); err != nil || content(t, path) != before {
			t.Errorf("%q: undo: %v, %q", before, err, content(t, path))
		}
	}
}
