package told

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func parse(t *testing.T, openFiles string) Context {
	t.Helper()
	c, err := Parse([]byte(`{"workspaceState":{"openFiles":[` + openFiles + `]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	fileA  = `{"path":"/w/a","timestamp":3,"isActive":true,"cursor":{"line":4,"character":5},"selectedText":"ine 3"}`
	fileA2 = `{"path":"/w/a","timestamp":3,"isActive":true,"cursor":{"line":9,"character":1}}`
	fileB  = `{"path":"/w/b","timestamp":2}`
	fileC  = `{"path":"/w/c","timestamp":9,"isActive":true}`
)

// SPEC K-2: what the model is told, in the CLI's words (as seen on the wire of the published CLI).
func TestWords(t *testing.T) {
	got, ok := parse(t, fileB+","+fileA).FullWords()
	want := "Here is the user's editor context as a JSON object. This is for your information only.\n```json\n" + `{
  "activeFile": {
    "path": "/w/a",
    "cursor": {
      "line": 4,
      "character": 5
    },
    "selectedText": "ine 3"
  },
  "otherOpenFiles": [
    "/w/b"
  ]
}` + "\n```"
	if got != want || !ok {
		t.Errorf("got %v\n%s", ok, got)
	}
	got, _ = parse(t, fileA2).SinceWords(parse(t, fileA))
	want = "Here is a summary of changes in the user's editor context, in JSON format. This is for your information only.\n```json\n" + `{
  "changes": {
    "cursorMoved": {
      "path": "/w/a",
      "cursor": {
        "line": 9,
        "character": 1
      }
    },
    "selectionChanged": {
      "path": "/w/a",
      "selectedText": ""
    }
  }
}` + "\n```"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestChanges(t *testing.T) {
	for _, tt := range []struct{ name, before, now, want string }{
		{"nothing", fileA, fileA, ""},
		{"nothing at all", "", "", ""},
		{"opened and closed", fileA + "," + fileB, fileA + `,{"path":"/w/d","timestamp":1}`, `{"changes":{"filesOpened":["/w/d"],"filesClosed":["/w/b"]}}`},
		{"another file", fileA, fileA + "," + fileC, `{"changes":{"filesOpened":["/w/c"],"activeFileChanged":{"path":"/w/c"}}}`},
		{"no file any more", fileA, "", `{"changes":{"filesClosed":["/w/a"],"activeFileChanged":{"path":null,"previousPath":"/w/a"}}}`},
		{"the first file", "", fileA, `{"changes":{"filesOpened":["/w/a"],"activeFileChanged":{"path":"/w/a","cursor":{"line":4,"character":5},"selectedText":"ine 3"}}}`},
		{"the cursor is not known any more", fileA2, `{"path":"/w/a","timestamp":3,"isActive":true}`, ""},
		{"none is active", "", fileB, `{"changes":{"filesOpened":["/w/b"]}}`},
	} {
		object, ok := parse(t, tt.now).Since(parse(t, tt.before))
		if got := string(JSON(object, "")); ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s: %v %s", tt.name, ok, got)
		}
	}
}

// SPEC K-2: the newest first, only it may be active; ten; a cut is marked.
func TestParse(t *testing.T) {
	older := parse(t, `{"path":"/w/new","timestamp":5},`+fileA)
	if f := older.Files[1]; f.Active || f.Cursor != nil || f.Selected != "" || older.Files[0].Path != "/w/new" {
		t.Errorf("a file that is not the newest stays active: %+v", older.Files)
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf(`{"path":"/%d","timestamp":%d}`, i, i))
	}
	if c := parse(t, strings.Join(many, ",")); len(c.Files) != maxFiles || c.Files[0].Path != "/11" {
		t.Errorf("%d files, the first %s", len(c.Files), c.Files[0].Path)
	}
	long, _ := json.Marshal(strings.Repeat("a", maxSelected-1) + "🎈b")
	c := parse(t, `{"path":"/a","timestamp":1,"isActive":true,"selectedText":`+string(long)+`}`)
	if s := c.Files[0].Selected; s != strings.Repeat("a", maxSelected-1)+"\ufffd"+cutWord {
		t.Errorf("cut to %q", s[maxSelected-5:])
	}
	if _, err := Parse([]byte("[")); err == nil {
		t.Error("no error for what is no JSON")
	}
	if object, ok := parse(t, "").Full(); ok || string(JSON(object, "")) != "{}" {
		t.Errorf("an empty context is told: %v", object)
	}
}

// JavaScript escapes neither < nor U+2028.
func TestJSON(t *testing.T) {
	if got := string(JSON("<&> \u2028\u2029 \\u2028 \"\n", "")); got != "\"<&> \u2028\u2029 \\\\u2028 \\\"\\n\"" {
		t.Errorf("got %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"workspaceState":{"openFiles":[`+fileA+`]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		now, err1 := Parse(a)
		then, err2 := Parse(b)
		if err1 != nil || err2 != nil {
			return
		}
		object, _ := now.Since(then)
		if !json.Valid(JSON(object, "")) {
			t.Error("not JSON")
		}
		if _, ok := now.Since(now); ok {
			t.Error("a context differs from itself")
		}
	})
}
