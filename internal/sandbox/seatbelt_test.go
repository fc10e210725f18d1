package sandbox

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/permission"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestSeatbelt: the profile of each pair of levels, with and without hosts, and with paths that would break a profile
// if they were part of its text (SPEC S-1, E-2).
func TestSeatbelt(t *testing.T) {
	for _, read := range []permission.Access{permission.None, permission.Workspace, permission.Home, permission.Full} {
		for _, write := range []permission.Access{permission.None, permission.Workspace, permission.Home, permission.Full} {
			for _, proxy := range []int{0, 49152} {
				b := seatbeltFor(Policy{Read: read, Write: write}, "/Users/u", `/Users/u/it's "odd" \ (deny) ü`+"\n", "/private/var/folders/x", []string{"/Users/u/.ext", "/Users/u/.gemini/extensions/x"}, nil)
				b.proxy = proxy
				text, parameters, err := b.profile()
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%v-%v-%d", read, write, proxy)
				checkSeatbelt(t, name, text, parameters)
				golden(t, name+".sb", text+"\n"+strings.Join(parameters, "\n")+"\n")
			}
		}
	}
}

// golden compares with a file of testdata/seatbelt; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if !slices.Contains([]string{"none-none-0.sb", "workspace-none-49152.sb", "none-workspace-0.sb", "home-home-0.sb", "full-full-49152.sb"}, name) {
		return // the others add nothing new
	}
	file := filepath.Join("testdata", "seatbelt", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the code makes (%v); run: go test ./internal/sandbox -run TestSeatbelt -update", file, err)
	}
}

// checkSeatbelt checks a profile: balanced, no foreign text, every parameter defined and used, no permission after a
// denial of files.
func checkSeatbelt(t *testing.T, name, text string, parameters []string) {
	t.Helper()
	depth, denied := 0, false
	// A given folder inside a secret store is readable all the same.
	given := slices.IndexFunc(parameters, func(v string) bool { return strings.HasSuffix(v, "=/Users/u/.gemini/extensions/x") })
	again := ""
	for i := given + 1; i < len(parameters); i++ { // the second of its kind
		if strings.HasSuffix(parameters[i], "=/Users/u/.gemini/extensions/x") {
			again = fmt.Sprintf("(allow file-read* (subpath (param \"P%d\")))\n", i)
		}
	}
	if again == "" {
		t.Errorf("%s: what was given cannot be read", name)
	}
	for line := range strings.Lines(text) {
		depth += strings.Count(line, "(") - strings.Count(line, ")")
		if depth != 0 {
			t.Errorf("%s: not balanced: %s", name, line)
		}
		denied = denied || strings.HasPrefix(line, "(deny file")
		if denied && strings.HasPrefix(line, "(allow file") && line != again {
			t.Errorf("%s: allowed after a denial: %s", name, line)
		}
	}
	if strings.Contains(text, "odd") || strings.Contains(text, "/Users") {
		t.Errorf("%s: a path is part of the program", name)
	}
	for i := range parameters {
		if strings.Count(text, fmt.Sprintf(`(param "P%d")`, i)) != 1 {
			t.Errorf("%s: P%d is not used once", name, i)
		}
	}
	if strings.Count(text, "(param ") != len(parameters) {
		t.Errorf("%s: parameters without a value", name)
	}
	if strings.Contains(text, "network-outbound") != strings.HasSuffix(name, "-49152") {
		t.Errorf("%s: the network", name)
	}
	for i, v := range parameters {
		_, dir, _ := strings.Cut(v, "=")
		for _, kind := range []string{"file-read*", "file-read* file-write*"} {
			if strings.HasPrefix(name, "none-none") && (dir == "/" || dir == "/Users/u") && strings.Contains(text, fmt.Sprintf(`(allow %s (subpath (param "P%d")))`, kind, i)) {
				t.Errorf("%s: %q is outside of the policy", name, dir)
			}
		}
	}
}

// TestNodeAndProxies: which versions of Node reach hosts on macOS.
func TestNodeAndProxies(t *testing.T) {
	for version, want := range map[string]bool{"20.20.2": false, "22.20.0": false, "22.21.0": true, "23.11.0": false, "24.0.0": true, "26.1.0": true, "": false, "x": false} {
		if honoursProxy(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

// TestAnyCase: protected names match in any case, and nothing else does.
func TestAnyCase(t *testing.T) {
	all := regexp.MustCompile("/(" + anyCase(".git") + "|" + anyCase(".mcp.json") + ")(/|$)")
	for path, want := range map[string]bool{"/w/.git": true, "/w/a/.GiT/hooks": true, "/w/xgit": false, "/w/.github": false, "/w/.gitignore": false, "/w/.MCP.JSON": true, "/w/.mcpxjson": false} {
		if all.MatchString(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// TestSeatbeltRefusesPaths: a path that a profile cannot express is refused.
func TestSeatbeltRefusesPaths(t *testing.T) {
	for _, bad := range []string{"relative", "/a/../b", "/a/", "/a\x00b", "/" + strings.Repeat("x", maxLiteral), ""} {
		if _, _, err := (seatbelt{read: []string{bad}}).profile(); err == nil {
			t.Errorf("%.20q is accepted", bad)
		}
	}
	if got := ancestors([]string{"/a/b/c", "/a/d"}); !slices.Equal(got, []string{"/a", "/a/b"}) || path.Dir("/a") != "/" {
		t.Error(got)
	}
}
