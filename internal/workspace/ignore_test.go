package workspace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/paths"

	"github.com/pollux-companion/pollux/internal/peers"
)

func TestPatterns(t *testing.T) { // gitignore(5)
	for _, tc := range []struct {
		pattern, path string
		dir, want     bool
	}{
		{"a", "a", false, true}, {"a", "x/a", false, true}, {"a", "ab", false, false},
		{"/a", "a", false, true}, {"/a", "x/a", false, false},
		{"a/b", "a/b", false, true}, {"a/b", "x/a/b", false, false},
		{"a/", "a", true, true}, {"a/", "a", false, false},
		{"*.o", "x/y.o", false, true}, {"*", "x", false, true}, {"/*", "x/y", false, false}, {"a/*", "a/b/c", false, false},
		{"**/a", "a", false, true}, {"**/a", "x/y/a", false, true}, {"a/**", "a", true, false}, {"a/**", "a/b/c", false, true},
		{"a/**/b", "a/b", false, true}, {"a/**/b", "a/x/y/b", false, true}, {"a/**/b", "ab", false, false}, {"a**b", "axxb", false, true}, {"x/a**b", "x/a/b", false, false},
		{"[a-c]x", "bx", false, true}, {"[!a-c]x", "bx", false, false}, {"[^a]", "b", false, true}, {"[]a]", "]", false, true}, {"[a", "a", false, false},
		{"[[:digit:]]", "7", false, true}, {"[[:foo:]]", "7", false, false}, {"[a-]", "-", false, true}, {`[\]]`, "]", false, true}, {"a[/]b", "a/b", false, false},
		{`\*`, "*", false, true}, {`\*`, "x", false, false}, {`\#a`, "#a", false, true}, {`\!a`, "!a", false, true}, {`a\`, "a", false, false}, {`a\`, `a\`, false, false},
		{"?", "é", false, false}, {"??", "é", false, true}, {"a ", "a", false, true}, {`a\ `, "a ", false, true}, {"//a", "a", false, false}, {"a//", "a", true, false},
		{"*a*a*a*a*a*a*a*a*b", strings.Repeat("a", 200), false, false},
		{strings.Repeat("**/", 30) + "b", strings.Repeat("a/", 60) + "a", false, false},
	} {
		ps := parsePatterns([]byte(tc.pattern+"\n"), false)
		got := len(ps) == 1 && ps[0].matches(strings.Split(tc.path, "/"), tc.dir, nil)
		if got != tc.want {
			t.Errorf("pattern %q, path %.40q: %v", tc.pattern, tc.path, got)
		}
	}
	if ps := parsePatterns([]byte("\xef\xbb\xbfa\r\n# no\n\n!b\n!\n/\n   \nc"), false); len(ps) != 3 || !ps[1].negated {
		t.Errorf("%+v", ps)
	}
}

// pieces are what random patterns and names are made of, so that they often meet.
var pieces = strings.Fields(`a b ab A .x a.b "é" * ? ** *.b [ab] [!a] [a-b]b \a \* [[:alpha:]] a* *b a**b [ \ ! # - ]`)

// oddity is what git (2.39) takes for "a" and any folders, by an optimisation
// of its own: "a**/b" matches "ab" there, and nowhere else.
var oddity = regexp.MustCompile(`[^/*!]\*\*+(/|$)`)

func randomPattern(r *rand.Rand) string {
	for {
		if p := anyPattern(r); !oddity.MatchString(strings.TrimSpace(p)) {
			return p
		}
	}
}

func anyPattern(r *rand.Rand) string {
	var s strings.Builder
	if r.IntN(4) == 0 {
		s.WriteByte('!')
	}
	if r.IntN(4) == 0 {
		s.WriteByte('/')
	}
	for i := range 1 + r.IntN(3) {
		if i > 0 {
			s.WriteByte('/')
		}
		for range 1 + r.IntN(2) {
			s.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	if r.IntN(4) == 0 {
		s.WriteByte('/')
	}
	s.WriteString([]string{"", "", "", " ", `\ `, "\r", "\t"}[r.IntN(7)])
	return s.String()
}

// Ignored says what git itself says, for random patterns in random trees.
func TestIgnoredAsGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	names := []string{"a", "b", "ab", ".x", "a.b", "bb", "aab"}
	wrong, asked, yes := 0, 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := newBox(t, &Options{ExcludesFile: filepath.Join(t.TempDir(), "excludes")})
		run := func(stdin string, args ...string) string {
			cmd := exec.Command(git, append([]string{"-C", b.root, "-c", "core.excludesFile=" + b.options.ExcludesFile, "-c", fmt.Sprintf("core.ignorecase=%v", paths.FoldCase())}, args...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(b.root))
			cmd.Stdin = strings.NewReader(stdin)
			out, err := cmd.Output()
			if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
				t.Fatalf("git %q: %v", args, err)
			}
			return string(out)
		}
		run("", "init", "-q")
		write := func(path string) {
			var lines bytes.Buffer
			for range 1 + r.IntN(4) {
				lines.WriteString(randomPattern(r) + "\n")
			}
			b.put(path, lines.String())
		}
		write(".gitignore")
		if seed%2 == 0 {
			write(".git/info/exclude")
		}
		if seed%3 == 0 {
			write(b.options.ExcludesFile)
		}
		var paths []string
		for range 25 {
			dir := ""
			for range r.IntN(3) {
				dir += names[r.IntN(len(names))] + "/"
			}
			if fi, err := os.Lstat(b.path(dir)); err == nil && !fi.IsDir() {
				continue
			}
			if os.MkdirAll(b.path(dir), 0o777) != nil {
				continue
			}
			if r.IntN(6) == 0 {
				write(dir + ".gitignore")
			}
			name := dir + names[r.IntN(len(names))]
			if _, err := os.Lstat(b.path(name)); err != nil {
				b.put(name, "")
			}
			paths = append(paths, name)
			if dir != "" {
				paths = append(paths, strings.TrimSuffix(dir, "/"))
			}
		}
		ignored := map[string]bool{}
		for p := range strings.SplitSeq(run(strings.Join(paths, "\x00"), "check-ignore", "-z", "--no-index", "--stdin"), "\x00") {
			ignored[p] = true
		}
		asked, yes = asked+len(paths), yes+len(ignored)
		for _, p := range paths {
			if got := b.Ignored(b.path(p)); got != ignored[p] && wrong < 10 {
				wrong++
				rules := ""
				for _, f := range []string{".gitignore", ".git/info/exclude", filepath.Dir(p) + "/.gitignore"} {
					data, _ := os.ReadFile(b.path(f))
					rules += fmt.Sprintf("\n%s: %q", f, data)
				}
				t.Errorf("seed %d: Ignored(%q) = %v, git says %v%s", seed, p, got, ignored[p], rules)
			}
		}
	}
	if yes < asked/20 || yes > asked*9/10 {
		t.Errorf("git ignores %d of %d paths: too one-sided to tell much", yes, asked)
	}
	t.Logf("git ignores %d of %d paths", yes, asked)
}

// A root inside a repository goes by the files above it, too.
func TestIgnoredFromAbove(t *testing.T) {
	b := newBox(t, nil)
	b.put(".git/HEAD", "")
	b.put(".gitignore", "*.log\n/pkg/gen/\n/pkg/hidden\n")
	b.put("pkg/gen/x", "")
	b.put("pkg/hidden/y", "")
	b.put("pkg/a.log", "")
	b.put("pkg/sub/.git/HEAD", "")
	b.put("pkg/sub/a.log", "")
	for _, tc := range []struct {
		root, path string
		want       bool
	}{
		{"pkg", "pkg/a.log", true}, {"pkg", "pkg/gen", true}, {"pkg", "pkg/gen/x", true},
		{"pkg", "pkg/sub", false}, {"pkg", "pkg/sub/a.log", false}, // a repository of its own
		{"pkg/hidden", "pkg/hidden/y", false}, // opened as a root, it is meant to be seen
		{"pkg", "pkg/none.log", true}, {"pkg", ".gitignore", false},
	} {
		if err := b.SetRoots([]string{b.path(tc.root)}); err != nil {
			t.Fatal(err)
		}
		if got := b.Ignored(b.path(tc.path)); got != tc.want {
			t.Errorf("root %s: Ignored(%s) = %v", tc.root, tc.path, got)
		}
	}
}

func TestIgnoreFileChanges(t *testing.T) {
	b := newBox(t, nil)
	path := b.put("a", "")
	for i, want := range []bool{true, false, true} {
		b.put(".gitignore", []string{"a\n", "bb\n", "*a*\n"}[i])
		if got := b.Ignored(path); got != want {
			t.Errorf("after change %d: %v", i, got)
		}
	}
	if err := os.Remove(b.path(".gitignore")); err != nil {
		t.Fatal(err)
	}
	if b.Ignored(path) {
		t.Error("ignored without a rule")
	}
}

func TestMayShare(t *testing.T) { // SPEC C-6, C-8
	b := newBox(t, &Options{NeverShare: []string{"*.pem", "/private/"}})
	b.put(".geminiignore", "secret*\n!secret.pub\n/conf/\n")
	b.put("deep/.geminiignore", "local\n")
	b.put("conf/x", "")
	b.put("key.pem", "")
	other := b.put(filepath.Join(b.outside, "o"), "")
	b.put(filepath.Join(b.outside, "o.pem"), "")
	b.link(b.put("secret.txt", ""), "alias")
	b.link(b.put("open", ""), "secretlink")
	b.link(other, "out")
	for name, want := range map[string]bool{
		"open": true, ".geminiignore": true, "secret.txt": false, "secret.pub": false, // not there
		"sub/secrets": false, "conf/x": false, "sub/conf/x": true, "key.pem": false, "sub/k.pem": false, "private/x": false, "sub/private/x": true,
		"deep/local": false, "local": true, "deep/er/local": false,
		"alias": false, "secretlink": false, "out": false, "none": false, "deep": false, ".": false,
	} {
		path := b.path(name)
		if _, err := os.Lstat(path); err != nil && name != "none" && name != "secret.pub" {
			b.put(name, "")
		}
		if got := b.MayShare(path); got != want {
			t.Errorf("MayShare(%s) = %v", name, got)
		}
	}
	b.put("secret.pub", "")
	if !b.MayShare(b.path("secret.pub")) {
		t.Error("a negated pattern does not hold")
	}
	if b.MayShare(other) || b.MayShare("relative") || b.MayShare(b.root+"/conf/../open") || b.MayShare("") {
		t.Error("what is not in the workspace may be shared")
	}
	b.options.ShareOutside = true
	if !b.MayShare(other) || b.MayShare(b.outside) || b.MayShare(filepath.Join(b.outside, "o.pem")) {
		t.Error("ShareOutside is not respected")
	}
}

// SPEC C-8: what a secret is called is not shared, whatever the folder says of it, but as the user says.
func TestSecrets(t *testing.T) {
	b := newBox(t, &Options{NeverShare: []string{"*.mine", "!harmless.pem", "!/fixtures/.env", "/own/"}, ShareOutside: true})
	b.put(".geminiignore", "!.env\n!*.mine\n!.ssh/\n!id_rsa\nfixtures/hidden.pem\n")
	for name, secret := range map[string]bool{
		".env": true, ".env.local": true, "sub/.env.production": true, "prod.env": true, ".envrc": true,
		".env.example": false, ".env.sample": false, "env": false, "environment.ts": false,
		"id_rsa": true, "id_ed25519": true, "id_rsa.pub": false, "server.pem": true, "tls/server.key": true, "keyboard": false,
		".ssh/config": true, ".aws/credentials": true, "src/credentials/store.go": false, "sub/.docker/config.json": true, "docker/config.json": false,
		"a.mine": true, "harmless.pem": false, "fixtures/.env": false, "sub/fixtures/.env": true, "own/x": true, "sub/own/x": false,
		"terraform.tfstate": true, "config/master.key": true, "secrets.yml": true, "secrets.go": false, ".git-credentials": true,
	} {
		b.put(name, "")
		if got := b.MayShare(b.path(name)); got == secret {
			t.Errorf("MayShare(%s) = %v", name, got)
		}
		if got := b.Secret(b.path(name)); got != secret {
			t.Errorf("Secret(%s) = %v", name, got)
		}
	}
	b.put("fixtures/hidden.pem", "")
	b.link(b.path(".env"), "settings.txt")
	b.put(filepath.Join(b.outside, ".env"), "")
	for _, path := range []string{b.path("settings.txt"), filepath.Join(b.outside, ".env"), b.path(".env.not-there")} {
		if b.MayShare(path) || !b.Secret(path) {
			t.Errorf("%s is shared", path)
		}
	}
	if b.MayShare(b.path("fixtures/hidden.pem")) {
		t.Error("a pattern of the folder does not hold any more")
	}
}

// Every line of the list of secrets has a pattern and a source.
func TestSecretList(t *testing.T) {
	want := 0
	for line := range strings.Lines(secretList) {
		if !strings.HasPrefix(line, "#") {
			if want++; !strings.Contains(line, " # ") {
				t.Errorf("no source: %s", line)
			}
		}
	}
	if got := len(secretPatterns(false)); got != want || got < 60 {
		t.Errorf("%d patterns of %d lines", got, want)
	}
}

func FuzzPatterns(f *testing.F) { // SPEC A-4
	f.Add("*.o\n!a/**/b\n[a-", "a/b/c.o")
	f.Add("[[:alpha:]-z]\\", "x")
	f.Add("[z-\xff]", "\xff")
	f.Fuzz(func(t *testing.T, patterns, path string) {
		names := strings.Split(path, "/")
		for _, p := range parsePatterns([]byte(patterns), true) {
			p.matches(names, true, nil)
			if p.dirOnly && p.matches(names, false, nil) {
				t.Error("a file fits a pattern for folders")
			}
		}
	})
}

// SPEC C-8: docs/using.md names each ignore file; package agent tries what it says about them.
func TestIgnoreFilesAreNamed(t *testing.T) {
	root, err := peers.Root()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "docs", "using.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "**Which ignore file binds whom.**")
	for _, one := range ignoreNames {
		if !strings.Contains(table, "`"+one+"`") {
			t.Errorf("%s is not in the table", one)
		}
	}
}

func FuzzDenied(f *testing.F) { // SPEC A-4
	f.Add("/a/**/b?", "a/b/c", true)
	f.Add("*.en[v-\xff] *", "x.env", false)
	f.Fuzz(func(t *testing.T, text, path string, whole bool) {
		root := t.Name()
		l, ok := compileDenial(Denial{Deny: true, Pattern: text, Whole: whole})
		if !ok || strings.Contains(path, "..") {
			return
		}
		e := &effort{left: contextEffort}
		all := &denials{lines: []denialLine{l}}
		if path = filepath.Join(string(filepath.Separator), root, path); all.deny(path, filepath.Dir(path), filepath.Dir(path), filepath.Dir(path), e) {
			l.Deny = false
			if all.lines = append(all.lines, denialLine{Denial: Denial{Whole: true}, whole: []*glob{wholeGlob("*")}}); all.deny(path, filepath.Dir(path), filepath.Dir(path), filepath.Dir(path), e) && !e.exhausted() {
				t.Error("a later line does not decide")
			}
		}
	})
}

// An ignore file cannot show what one of another name hides.
func TestIgnoreFilesAdd(t *testing.T) {
	b := newBox(t, nil)
	b.put(".aiexclude", "one\n!two\n")
	b.put(".geminiignore", "two\n!one\n")
	b.put("sub/.qwenignore", "!one\n!two\n")
	for _, name := range []string{"one", "two", "sub/one", "sub/two"} {
		if b.MayShare(b.put(name, "")) {
			t.Errorf("%s is shared", name)
		}
	}
	b.put("sub/.aiignore", "\xff\xfe")
	if b.MayShare(b.put("sub/three", "")) || len(b.Withheld()) != 1 {
		t.Errorf("a folder of which nobody knows what it hides: %v", b.Withheld())
	}
}
