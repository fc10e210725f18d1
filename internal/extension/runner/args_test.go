package runner

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

func tool(runtime string, args ...string) manifest.Tool {
	t := manifest.Tool{Name: "t", Runtime: runtime}
	for _, a := range args {
		name, kind, _ := strings.Cut(a, ":")
		kind, value, _ := strings.Cut(kind, "=")
		name, optional := strings.CutSuffix(name, "?")
		t.Args = append(t.Args, manifest.Arg{Name: name, Type: kind, Default: value, Optional: optional || value != ""})
	}
	return t
}

// TestArguments: what reaches the program (SPEC X-1).
func TestArguments(t *testing.T) {
	for _, test := range []struct {
		name string
		tool manifest.Tool
		json string
		text []TextArg
		want []string
	}{
		{"none", tool("python"), ``, nil, nil},
		{"text", tool("python", "a:string"), `{"a":"x y"}`, nil, []string{"--a", "x y"}},
		{"manifest order", tool("python", "b:string", "a:string"), `{"a":"1","b":"2"}`, nil, []string{"--b", "2", "--a", "1"}},
		{"empty", tool("python", "a:string"), `{"a":""}`, nil, []string{"--a", ""}},
		{"shell words", tool("python", "a:string"), `{"a":"$(id); 'x' \"y\" \n*"}`, nil, []string{"--a", "$(id); 'x' \"y\" \n*"}},
		{"unicode", tool("python", "a:string"), `{"a":"wörld \ud83d\ude00"}`, nil, []string{"--a", "wörld 😀"}},
		{"dash, python", tool("python", "a:string"), `{"a":"-rf"}`, nil, []string{"--a=-rf"}},
		{"dashes, node", tool("node", "a:string"), `{"a":"--help"}`, nil, []string{"--a=--help"}},
		{"dash, shell", tool("shell", "a:string"), `{"a":"-rf"}`, nil, []string{"--a", "-rf"}},
		{"negative", tool("node", "a:number"), `{"a":-1.5}`, nil, []string{"--a=-1.5"}},
		{"big integer", tool("python", "a:integer"), `{"a":123456789012345678901234567890}`, nil, []string{"--a", "123456789012345678901234567890"}},
		{"integer with a fraction of 0", tool("python", "a:integer"), `{"a":3.0}`, nil, []string{"--a", "3"}},
		{"integer with an exponent", tool("python", "a:integer"), `{"a":1e3}`, nil, []string{"--a", "1000"}},
		{"number as written", tool("python", "a:number"), `{"a":0.10}`, nil, []string{"--a", "0.10"}},
		{"boolean", tool("python", "a:boolean", "b:boolean"), `{"a":true,"b":false}`, nil, []string{"--a"}},
		{"list", tool("python", "a:array"), `{"a": [1, 12345678901234567890, "x"]}`, nil, []string{"--a", `[1,12345678901234567890,"x"]`}},
		{"object", tool("python", "a:object"), `{"a": {"z": 1, "b": "<&>"}}`, nil, []string{"--a", `{"z":1,"b":"<&>"}`}},
		{"left out", tool("python", "a?:string", "b:string"), `{"b":"x"}`, nil, []string{"--b", "x"}},
		{"null is left out", tool("node", "a?:string", "b:string", "c:integer=3"), `{"a":null,"b":"x","c":null}`, nil, []string{"--b", "x", "--c", "3"}},
		{"default", tool("python", "a:string=\"-x\"", "n:integer=3", "l:array=[1,2]"), `{}`, nil, []string{"--a=-x", "--n", "3", "--l", "[1,2]"}},
		{"default not taken", tool("shell", "a:string=\"x\"", "n:integer=3"), `{"n":4,"a":""}`, nil, []string{"--a", "", "--n", "4"}},
		{"boolean, node", tool("node", "a:boolean", "b?:boolean"), `{"a":true}`, nil, []string{"--a"}},
		{"boolean, false by default", tool("python", "a:boolean=false"), `{"a":true}`, nil, []string{"--a"}},
		{"boolean, false by default, left out", tool("python", "a:boolean=false"), `{}`, nil, nil},
		{"boolean, true by default, left out", tool("shell", "a:boolean=true"), `{}`, nil, []string{"--a"}},
		{"boolean, true by default, taken back", tool("python", "a:boolean=true"), `{"a":false}`, nil, []string{"--no-a"}},
		{"boolean, by its name alone", tool("python", "a:boolean", "b:boolean"), `{"b":false}`, []TextArg{{Name: "a", Value: "true", Bare: true}}, []string{"--a"}},
		{"typed", tool("python", "a:string", "n:integer", "l:array"), ``, []TextArg{{Name: "l", Value: "[1]"}, {Name: "a", Value: " true "}, {Name: "n", Value: " 7 "}}, []string{"--a", " true ", "--n", "7", "--l", "[1]"}},
		{"both", tool("python", "a:string", "b:string"), `{"a":"1"}`, []TextArg{{Name: "b", Value: "2"}}, []string{"--a", "1", "--b", "2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := arguments(test.tool, json.RawMessage(test.json), test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestArgumentErrors: all faults are reported at once, by name, with similar names.
func TestArgumentErrors(t *testing.T) {
	two := tool("python", "file:string", "count:integer", "deep:boolean")
	for _, test := range []struct {
		name, json string
		text       []TextArg
		want       string
	}{
		{"all at once", `{"fil":"x","count":"many","other":1}`, nil,
			`the arguments do not fit t(file: string, count: integer, deep: boolean): missing: file, deep; unknown: fil (did you mean file?); unknown: other; count must be a whole number, and is a text`},
		{"nothing", ``, nil, `missing: file, count, deep`},
		{"null", `{"file":null,"count":1,"deep":true}`, nil, `file must be a text, and is null`},
		{"object for a text", `{"file":{"a":1},"count":1,"deep":true}`, nil, `file must be a text, and is an object`},
		{"fraction", `{"file":"a","count":1.5,"deep":true}`, nil, `count must be a whole number, and is 1.5`},
		{"boolean for a number", `{"file":"a","count":true,"deep":true}`, nil, `count must be a whole number, and is true`},
		{"number for a boolean", `{"file":"a","count":1,"deep":1}`, nil, `deep must be true or false, and is 1`},
		{"number for a text", `{"file":5,"count":1,"deep":true}`, nil, `file must be a text, and is 5; write it in quotes`},
		{"boolean for a text", `{"file":true,"count":1,"deep":true}`, nil, `file must be a text, and is true; write it in quotes`},
		{"number in quotes", `{"file":"5","count":"1","deep":"many"}`, nil, `count must be a whole number, and is a text; write it without quotes; deep must be true or false, and is a text`},
		{"twice", `{"file":"a","file":"b","count":1,"deep":true}`, nil, `file must be a text, and is given twice`},
		{"twice in two ways", `{"file":"a","count":1,"deep":true}`, []TextArg{{Name: "file", Value: "b"}}, `given twice`},
		{"nul", `{"file":"a\u0000b","count":1,"deep":true}`, nil, `U+0000`},
		{"too long", `{"file":"` + strings.Repeat("x", 200_000) + `","count":1,"deep":true}`, nil, `200000 bytes long`},
		{"no object", `["file"]`, nil, `they must be one JSON object`},
		{"no JSON", `{"file":`, nil, `they are no JSON`},
		{"followed", `{"file":"a","count":1,"deep":true} x`, nil, `something follows`},
		{"hostile name", `{"\u001b[2Jfile":1}`, nil, `unknown: \u001b[2Jfile`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := arguments(two, json.RawMessage(test.json), test.text)
			var wrong *ArgumentError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant %s", err, test.want)
			}
		})
	}
	many := tool("python")
	values := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		many.Args = append(many.Args, manifest.Arg{Name: name, Type: "string"})
		values[name] = strings.Repeat("x", 128<<10-300)
	}
	object, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := arguments(many, object, nil); err == nil || !strings.Contains(err.Error(), "bytes together") {
		t.Errorf("%.200v", err)
	}
}

// FuzzArguments: for any input, the program gets each declared argument once, in its own form, or the caller learns
// why not.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"s":"x","n":1,"i":2,"b":true,"a":[],"o":{}}`, `{"s":"-x","n":-1e9,"i":1e999,"b":"true","a":"[1]","o":"{\"a\":1}"}`, `{"s":`, `[]`, `{"s":"\u0000"}`, `{"i":1e100}`, "{\"s\":\"\xff\"}"} {
		f.Add(seed, "s", "text")
		f.Add(seed, "a", "[1, 2]")
	}
	all := tool("python", "s:string", "n:number", "i:integer", "b:boolean", "a:array", "o:object")
	f.Fuzz(func(t *testing.T, object, name, value string) {
		for _, runtime := range []string{"python", "shell"} {
			all.Runtime = runtime
			line, names, err := arguments(all, json.RawMessage(object), []TextArg{{Name: name, Value: value}})
			if err != nil {
				if !errors.As(err, new(*ArgumentError)) || line != nil {
					t.Fatal(err)
				}
				continue
			}
			if len(names) != len(all.Args) {
				t.Fatalf("%q of %q", names, all.Signature())
			}
			for _, arg := range all.Args {
				if arg.Type == "boolean" {
					if len(line) > 0 && line[0] == "--"+arg.Name {
						line = line[1:]
					}
					continue
				}
				word, rest := line[0], line[1:]
				got, whole := strings.CutPrefix(word, "--"+arg.Name+"=")
				if !whole {
					if word != "--"+arg.Name || len(rest) == 0 {
						t.Fatalf("%q where %q is due", word, arg.Name)
					}
					got, rest = rest[0], rest[1:]
				}
				if whole != (runtime == "python" && strings.HasPrefix(got, "-")) || strings.ContainsRune(got, 0) {
					t.Fatalf("%q", word)
				}
				fits(t, arg.Type, got)
				line = rest
			}
			if len(line) > 0 {
				t.Fatalf("%q is left over", line)
			}
		}
	})
}

// fits says whether a text has a type, tested in another way than in the code.
func fits(t *testing.T, kind, text string) {
	t.Helper()
	if kind == "string" {
		return
	}
	if !json.Valid([]byte(text)) {
		t.Fatalf("%q is no %s", text, kind)
	}
	ok := map[string]bool{
		"number": strings.ContainsAny(text[:1], "-0123456789"), "integer": strings.Trim(text, "-0123456789") == "",
		"boolean": slices.Contains([]string{"true", "false"}, text), "array": text[0] == '[', "object": text[0] == '{',
	}
	if !ok[kind] {
		t.Fatalf("%q is no %s", text, kind)
	}
}
