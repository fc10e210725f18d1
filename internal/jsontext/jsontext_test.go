package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	for object, want := range map[string]string{
		`{"a":1,"text":"x\"}{","b":{"text":2}}`:       `text "x\"}{" {"a":1,"text":null,"b":{"text":2}}`,
		` { "text" : [1,{}] } `:                       `text [1,{}]  { "text" : null } `,
		`{"a":"\\\\","text":"\\\\\"\"\\\\","\\\\":1}`: ``,
		`{"a":"\\\\","text":"\\\\\"\"\\\\","":""}`:    `text "\\\\\"\"\\\\" {"a":"\\\\","text":null,"":""}`,
		`{"other":"y"}`:                               `other "y" {"other":null}`,
		`{"text":1,"other":2}`:                        `text 1 {"text":null,"other":2}`,
		// Unusual objects are left to encoding/json.
		`{"text":1,"text":2}`: ``, `{"te\u0078t":1,"text":2}`: ``, `{"Text":1}`: ``, `{"text":1`: ``, `{"text":1}x`: ``, `{"text":1,}`: ``,
		`{"text":"` + "\xff" + `"}`: ``, `{"text":01}`: ``, `{}`: ``, `[]`: ``, `"text"`: ``, ``: ``, `{"text"}`: ``, `{5:1,"text":1}`: ``, `{"text":1,"b":tru}`: ``,
		`{"text":` + strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1) + `}`: ``,
	} {
		got := ""
		before := strings.Clone(object)
		if name, value, rest, ok := cutWhole([]byte(object), "text", "other"); ok {
			got = name + " " + string(value) + " " + string(rest)
			name, value, rest, ok = CutChecked([]byte(object), "text", "other")
			if again := name + " " + string(value) + " " + string(rest); !ok || again != got {
				t.Errorf("%s: %q, want %q: checked", object, again, got)
			}
		}
		if got != want || object != before {
			t.Errorf("%s: %q, want %q", object, got, want)
		}
	}
}

// A cut object decodes to the same values as the whole one.
func FuzzCut(f *testing.F) {
	for _, s := range []string{`{"a":1,"text":"x"}`, `{"text":{"text":[null,1e5,"\ud83d"]},"b":""}`, `{"text":1,"text":2}`, `{"":0,"text":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		was := bytes.Clone(object)
		_, value, rest, ok := cutWhole(object, "text")
		_, value2, rest2, ok2 := CutChecked(object, "text") // only valid JSON is its business
		if !bytes.Equal(object, was) {
			t.Fatal("the object was changed")
		}
		if utf8.Valid(object) && json.Valid(object) && (ok != ok2 || !bytes.Equal(value, value2) || !bytes.Equal(rest, rest2)) {
			t.Fatalf("%q is cut into %q and %q, checked into %q and %q", object, value, rest, value2, rest2)
		}
		if !ok {
			return
		}
		if !json.Valid(object) || !utf8.Valid(object) {
			t.Fatalf("%q is cut, and is no JSON", object)
		}
		var whole, cut map[string]json.RawMessage
		if json.Unmarshal(object, &whole) != nil || json.Unmarshal(rest, &cut) != nil {
			t.Fatalf("%q became %q", object, rest)
		}
		if string(cut["text"]) != "null" || len(whole) != len(cut) || !bytes.Equal(whole["text"], value) {
			t.Fatalf("%q became %q and %q", object, rest, value)
		}
		for key, v := range whole {
			if key != "text" && !bytes.Equal(v, cut[key]) {
				t.Fatalf("%q became %q in %q", v, cut[key], key)
			}
		}
	})
}

// Appended text decodes to the same text, escaped once or twice.
func FuzzAppend(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c\n\t\r\x00\x1f", "Größe – \u2028\u2029 😀", "\xff\xe2\x80", strings.Repeat("plain text ", 9) + "\"", "âââ\u2027", "1234567\u2028\u2029\x01", strings.Repeat("\x1f\\", 99), "12345\u2029678\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.ToValidUTF8(s, "\uFFFD")
		var once, twice string
		if err := json.Unmarshal(AppendString(nil, s), &once); err != nil || once != want {
			t.Fatalf("%q became %q, %v", s, once, err)
		}
		nested := append(AppendNested([]byte(`"\"`), s), `\""`...)
		if err := json.Unmarshal(nested, &twice); err == nil {
			err = json.Unmarshal([]byte(twice), &twice)
			if err != nil {
				t.Fatal(err)
			}
		}
		if twice != want {
			t.Fatalf("%q became %q, nested", s, twice)
		}
	})
}

// A string is read as encoding/json reads it, in place and apart, and what is not JSON is refused. Half a character is said.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		`""`, `"a"`, `"a\nb\t\t\tc"`, `"\n\n\n\n\n\n\n\n12345678abcdefgh\n\\\"\/\b\f\r"`, `"\u00e9\ud83d\ude00\ud83d!\u2028Größe"`, `"`, `"\`, `"\u12`, `"\x"`, `"ab` + "\n" + `"`,
		`"` + strings.Repeat("plain text ", 9) + `\n"`, `"` + strings.Repeat(`\n\u0041seven..`, 9) + `"`, `"` + "\xff" + `"`, `"12345678\"`, `"\n1234567` + "\x01" + `"`, `"x" 1`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.TrimSpace(data)
		if len(data) == 0 || data[0] != '"' {
			return
		}
		var want string
		good := utf8.Valid(data) && json.Unmarshal(data, &want) == nil
		apart := NewScanner(bytes.Clone(data))
		a, okA := apart.Aside()
		if okA && a.JSON != string(data[:len(a.JSON)]) {
			t.Fatalf("%q is said to have been %q", data, a.JSON)
		}
		place := NewScanner(bytes.Clone(data))
		p, okP := place.Text()
		if okP != okA || okP && (p.Value != a.Value || p.State != a.State || place.i != apart.i) {
			t.Fatalf("%q: %q %d %v in place, %q %d %v apart", data, p.Value, p.State, okP, a.Value, a.State, okA)
		}
		if whole := okP && place.Done(); whole != good || good && p.Value != want {
			t.Fatalf("%q: %q %v, want %q %v", data, p.Value, whole, want, good)
		}
		if okP && p.State == Good && strings.Contains(p.Value, "\uFFFD") && !bytes.Contains(data, []byte("\uFFFD")) && !bytes.Contains(bytes.ToLower(data), []byte("fffd")) {
			t.Fatalf("%q: half a character is not said", data)
		}
	})
}

// source looks like a program, with an escape for every 12 bytes.
func source() string {
	return strings.Repeat("\tif err := s.handle(ctx, message); err != nil {\n\t\treturn fmt.Errorf(\"Größe: %w\", err)\n\t}\n", 5<<20/88)
}

func BenchmarkAside(b *testing.B) {
	sent := AppendString(nil, source())
	b.SetBytes(int64(len(sent)))
	for b.Loop() {
		NewScanner(sent).Aside()
	}
}

func BenchmarkAppendString(b *testing.B) {
	s := source()
	dst := make([]byte, 0, 2*len(s))
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		AppendString(dst, s)
	}
}

// cutWhole is CutChecked for an object with unchecked strings.
func cutWhole(object []byte, names ...string) (name string, value, rest []byte, ok bool) {
	return cut(NewScanner(object), names)
}
