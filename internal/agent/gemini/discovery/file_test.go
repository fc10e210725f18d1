package discovery

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// abs makes a path of this platform that is absolute.
func abs(t testing.TB, path string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// SPEC D-3: the content is exactly this.
func TestEncodeD3(t *testing.T) {
	f := &File{Port: 41234, Roots: []string{"/home/me/a b", "/srv/x<y>&ü"}, Token: "T-_1", IDE: &IDE{"pollux", "Pollux"}}
	want := `{"port":41234,"workspacePath":"/home/me/a b:/srv/x<y>&ü","authToken":"T-_1","ideInfo":{"name":"pollux","displayName":"Pollux"}}`
	if os.PathListSeparator != ':' {
		f.Roots = []string{`C:\a`}
		want = `{"port":41234,"workspacePath":"C:\\a","authToken":"T-_1","ideInfo":{"name":"pollux","displayName":"Pollux"}}`
	}
	got, err := f.Encode()
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	back, err := Parse(got)
	if diff := cmp.Diff(f, back); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Without a folder the path is empty, not missing (SPEC D-3).
func TestEncodeNoRootsD3(t *testing.T) {
	got, err := (&File{Port: 1, Token: "t", IDE: &IDE{}}).Encode()
	if err != nil || !strings.Contains(string(got), `"workspacePath":""`) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, root := range []string{"relative", "", abs(t, "/x") + "\xff"} {
		if got, err := (&File{Port: 1, Roots: []string{root}}).Encode(); err == nil {
			t.Errorf("%q: %s", root, got)
		}
	}
}

// SPEC D-3: the CLI splits at the separator and percent-decodes.
func TestWorkspacePathD3(t *testing.T) {
	sep := string(os.PathListSeparator)
	enc := map[string]string{":": "%3A", ";": "%3B"}[sep]
	roots := []string{abs(t, "/a"+sep+"b"), abs(t, "/100%"), abs(t, "/%3A"), abs(t, "/p%20q"), abs(t, "/%")}
	got, err := WorkspacePath(roots)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{abs(t, "/a"+enc+"b"), abs(t, "/100%25"), abs(t, "/%253A"), abs(t, "/p%2520q"), abs(t, "/%25")}, sep)
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if back := SplitWorkspace(got); !slices.Equal(back, roots) {
		t.Errorf("back: %q", back)
	}
}

func TestSplitWorkspaceTolerant(t *testing.T) {
	for in, want := range map[string]string{"/a%zz": "/a%zz", "/a%": "/a%", "/a%2": "/a%2", "/%ff": "/%ff", "/%C3%A4": "/ä", "/a%2Fb%": "/a%2Fb%"} {
		if got := SplitWorkspace(in); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if got := SplitWorkspace(""); got != nil {
		t.Errorf("nothing became %q", got)
	}
}

// Files of other companions are read as the CLI reads them.
func TestParseTolerant(t *testing.T) {
	for in, want := range map[string]*File{
		`{"port": 5, "extra": {"x": []}, "workspacePath": "/w"}`: {Port: 5, Roots: []string{"/w"}},
		`{"port": "5"}`: {Port: 5},
		`{"port": 5, "ideInfo": null, "authToken": "t"}`:           {Port: 5, Token: "t"},
		`{"stdio": {"command": "c", "args": ["a"]}}`:               {Stdio: &Stdio{"c", []string{"a"}}},
		`{"port": 5, "ideInfo": {"name": "n", "displayName": ""}}`: {Port: 5, IDE: &IDE{Name: "n"}},
	} {
		got, err := Parse([]byte(in))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", in, err, diff)
		}
	}
	for _, in := range []string{``, `{}`, `[]`, `null`, `5`, `{"port": 0}`, `{"port": -1}`, `{"port": 65536}`, `{"port": 1.5}`, `{"port": {}}`, `{"port": "x"}`, `{"stdio": {}}`, `{"port": 5`} {
		if got, err := Parse([]byte(in)); !errors.Is(err, errFile) {
			t.Errorf("%s: %+v, %v; want ErrFile", in, got, err)
		}
	}
}

// Whatever lies there is parsed or refused, and what was parsed and can be written is read back the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"port":1,"workspacePath":"/a:/b%3A","authToken":"t","ideInfo":{"name":"n","displayName":"d"}}`))
	f.Add([]byte(`{"stdio":{"command":"c","args":["relay"]},"workspacePath":"/"}`))
	f.Add([]byte(`{"port":"65535","workspacePath":"%"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		file, err := Parse(in)
		if err != nil {
			return
		}
		if file.Port < 0 || file.Port > 65535 || file.Port == 0 && file.Stdio == nil {
			t.Fatalf("%+v", file)
		}
		out, err := file.Encode()
		if err != nil {
			return // a root that is not absolute
		}
		back, err := Parse(out)
		if diff := cmp.Diff(file, back, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: %v %s", out, err, diff)
		}
	})
}

func FuzzWorkspacePath(f *testing.F) {
	f.Add("/a:b", "/c%3A")
	f.Add("/%", "/ü;x")
	f.Fuzz(func(t *testing.T, a, b string) {
		roots := []string{a, b}
		joined, err := WorkspacePath(roots)
		if err != nil {
			return
		}
		if got := SplitWorkspace(joined); !slices.Equal(got, roots) {
			t.Errorf("%q became %q by %q", roots, got, joined)
		}
	})
}
