package manifest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/permission"
)

// FuzzParse compares the parser with encoding/json: what it accepts silently is JSON, JSON gives no syntax error, and
// no permission is read unless spelled exactly (SPEC E-1, E-2, E-4).
func FuzzParse(f *testing.F) {
	archives, _ := filepath.Glob("testdata/findings/*.txtar")
	for _, a := range archives {
		data, err := os.ReadFile(a)
		if err != nil {
			f.Fatal(err)
		}
		_, rest, _ := bytes.Cut(data, []byte("-- gemini-extension.json --\n"))
		text, _, _ := bytes.Cut(rest, []byte("\n-- "))
		f.Add(text)
	}
	f.Add([]byte("{\"a\":\"\\ud83d\\ude00\",\"b\":-0.5e+3}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		syntax := 0
		root, complete := parse(data, func(int, int, string, string) { syntax++ })
		plain := utf8.Valid(data) && !loneSurrogate(data) && len(data) < 10_000
		if valid := json.Valid(data); plain && complete && syntax == 0 && !valid {
			t.Errorf("taken without a word, but no JSON: %q", data)
		} else if plain && valid && depth(data) < maxDepth && (syntax > 0 || !complete) {
			t.Errorf("valid JSON refused: %q", data)
		}
		inside(t, root, len(data))

		m, found := Parse("f", data)
		for _, x := range found {
			if strings.ContainsFunc(x.String(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("a control character in %q", x.String())
			}
			if x.Line < 1 && x.File == "f" && !strings.Contains(x.Message, "more findings") || x.Column < 1 && x.Line > 0 {
				t.Errorf("no place in %+v", x)
			}
		}
		if json.Valid(data) && plain {
			rights(t, m, found, data)
		}
	})
}

// rights compares the granted permissions with another reader's view of the file.
func rights(t *testing.T, m *Manifest, found Findings, data []byte) {
	var all map[string]any
	if json.Unmarshal(data, &all) != nil {
		return
	}
	permissions, _ := all["permissions"].(map[string]any)
	files, _ := permissions["filesystem"].(map[string]any)
	for name, level := range map[string]permission.Access{"read": m.Permissions.Read, "write": m.Permissions.Write} {
		if got := level.String(); level != permission.None && files[name] != got {
			t.Errorf("%s: granted %q of %v", name, got, files[name])
		}
	}
	network, _ := permissions["network"].(map[string]any)
	hosts, _ := network["allowedHosts"].([]any)
	for _, h := range m.Permissions.Hosts {
		named := false
		for _, x := range hosts {
			named = named || x == h.Text
		}
		if !named {
			t.Errorf("granted %q of %v", h.Text, hosts)
		}
	}
	if found.Err() == nil {
		if name, _ := all["name"].(string); name != m.Name || CheckName(name) != nil && name[0] != '-' {
			t.Errorf("accepted the name %q", m.Name)
		}
	}
}

// inside checks that every node lies within the text and within its parent.
func inside(t *testing.T, n *node, size int) {
	if n.start < 0 || n.start > size || n.end > size {
		t.Errorf("a node from %d to %d of %d bytes", n.start, n.end, size)
	}
	for _, m := range n.members {
		inside(t, m.value, size)
	}
	for _, i := range n.items {
		inside(t, i, size)
	}
}

func depth(data []byte) int {
	return bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{"))
}

// loneSurrogate says whether a \u escape is half of a pair; encoding/json reads it as U+FFFD.
func loneSurrogate(data []byte) bool {
	return bytes.Contains(bytes.ToLower(data), []byte(`\ud`))
}

// A file designed to be slow to check takes no longer than others (SPEC E-4: bounded).
func TestParseBounds(t *testing.T) {
	var distinct, same strings.Builder
	for i := range 45_000 {
		distinct.WriteString(`"excludeTool` + string(rune('a'+i%26)) + strings.Repeat("x", i%40) + `":0,`)
		same.WriteString(`"a":0,`)
	}
	for name, text := range map[string]string{
		"comments":       strings.Repeat("/**/", 200_000),
		"open brackets":  strings.Repeat("[", 1_000_000),
		"open objects":   strings.Repeat(`{"a":`, 200_000),
		"duplicates":     "{" + same.String() + `"b":1}`,
		"near misses":    "{" + distinct.String() + `"b":1}`,
		"values":         "[" + strings.Repeat("1,", 500_000) + "1]",
		"commas":         "[" + strings.Repeat(",", 1_000_000) + "]",
		"one string":     `{"name":"` + strings.Repeat("x", 1_000_000) + `"}`,
		"escapes":        `{"name":"` + strings.Repeat(`\x`, 500_000) + `"}`,
		"no end":         `{"name":"` + strings.Repeat(`\u0041`, 150_000),
		"too big":        strings.Repeat(" ", maxBytes+1),
		"bad tools":      `{"tools":[` + strings.Repeat("{},", 255) + "{}]}",
		"too many tools": `{"tools":[` + strings.Repeat("{},", 256) + "{}]}",
	} {
		start := time.Now()
		_, found := Parse(name, []byte(text))
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s: took %v", name, d)
		}
		if len(found) > maxFindings+1 || found.Err() == nil {
			t.Errorf("%s: %d findings, error %v", name, len(found), found.Err())
		}
	}
}

// Many unknown fields are no error, however many (SPEC E-1).
func TestManyUnknown(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString(`,"unknown` + strings.Repeat("q", i) + `":[]`)
	}
	m, found := Parse("f", []byte(`{"name":"a","version":"1.0.0"`+b.String()+`}`))
	if err := found.Err(); err != nil || len(m.Unknown) != 500 {
		t.Errorf("%d kept, error %v", len(m.Unknown), err)
	}
}
