package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// needGit skips a test on a machine without git, and gives the test's user their own configuration.
func needGit(t *testing.T, config string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	file := filepath.Join(t.TempDir(), "gitconfig")
	write(t, file, "[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n"+config)
	t.Setenv("GIT_CONFIG_GLOBAL", file)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_ALLOW_PROTOCOL", "") // restored after the test
	os.Unsetenv("GIT_ALLOW_PROTOCOL")
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.Getenv("GIT_CONFIG_GLOBAL"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository returns a repository with two commits, 1 (tag v1, annotated a1, branch old) and 2 (main), and a folder
// deep/x.
func repository(t *testing.T) (dir, first, second string) {
	t.Helper()
	dir = t.TempDir()
	run(t, dir, "init", "-q")
	for _, v := range []string{"1", "2"} {
		write(t, filepath.Join(dir, "gemini-extension.json"), `{"name":"x","version":"`+v+`"}`)
		write(t, filepath.Join(dir, "deep", "x", "gemini-extension.json"), `{"name":"deep","version":"`+v+`"}`)
		run(t, dir, "add", ".")
		run(t, dir, "commit", "-q", "-m", v)
		if v == "1" {
			first = run(t, dir, "rev-parse", "HEAD")
			run(t, dir, "tag", "v1")
			run(t, dir, "tag", "-a", "a1", "-m", "annotated")
			run(t, dir, "branch", "feature/old")
		}
	}
	return dir, first, run(t, dir, "rev-parse", "HEAD")
}

func fetch(t *testing.T, text string, w Wish, o *Options) (Fetched, error) {
	t.Helper()
	s, err := Parse(text, t.TempDir(), w)
	if err != nil {
		return Fetched{}, err
	}
	return Fetch(t.Context(), s, t.TempDir(), o)
}

// TestGit (SPEC M-2): branch, tag, annotated tag, full and abbreviated commit, a folder; and what the server would
// give now.
func TestGit(t *testing.T) {
	needGit(t, "")
	dir, first, second := repository(t)
	for ref, want := range map[string]string{
		"": second, "main": second, "v1": first, "a1": first, "feature/old": first, first: first, first[:10]: first, "refs/tags/v1": first,
	} {
		got, err := fetch(t, "file://"+dir, Wish{Ref: ref}, nil)
		if err != nil || got.Commit != want || HeadCommit(got.Dir) != want {
			t.Errorf("ref %q: commit %s, %v; want %s", ref, got.Commit, err, want)
			continue
		}
		now, err := Newest(t.Context(), got.Source, nil)
		if err != nil || !strings.HasPrefix(want, now) {
			t.Errorf("newest of %q: %s, %v; want %s", ref, now, err, want)
		}
		config, err := os.ReadFile(filepath.Join(got.Dir, ".git", "config"))
		if err != nil || !strings.Contains(string(config), "file://"+dir) {
			t.Errorf("the CLI's update needs the remote: %s, %v", config, err)
		}
	}
	got, err := fetch(t, "file://"+dir, Wish{Subdir: "deep/x"}, nil)
	if err != nil || got.Commit != second || filepath.Base(got.Dir) != "x" {
		t.Errorf("a folder: %+v, %v", got, err)
	}
	for ref, want := range map[string]string{"none": "git ls-remote", "0123456789": "git ls-remote"} {
		if _, err := fetch(t, "file://"+dir, Wish{Ref: ref}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ref %q: %v", ref, err)
		}
	}
	if _, err := fetch(t, "file://"+dir, Wish{Subdir: "no/such"}, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("a missing folder: %v", err)
	}
	if _, err := fetch(t, "file://"+filepath.Join(dir, "nothing"), Wish{}, nil); err == nil || !strings.Contains(err.Error(), "git says") {
		t.Errorf("a missing repository: %v", err)
	}
}

// TestGitBounds: content that is too large is refused before checkout, a folder of a large repository is not, and
// progress is reported.
func TestGitBounds(t *testing.T) {
	needGit(t, "")
	dir, _, _ := repository(t)
	write(t, filepath.Join(dir, "large"), strings.Repeat("\x00", 1<<20))
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "3")
	l := defaultLimits()
	l.Total = 1 << 19
	var progress strings.Builder
	o := &Options{Limits: &l, Progress: &progress}
	if _, err := fetch(t, "file://"+dir, Wish{}, o); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"large"`) {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(progress.String(), "objects") {
		t.Errorf("progress %q", progress.String())
	}
	got, err := fetch(t, "file://"+dir, Wish{Subdir: "deep/x"}, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(got.Dir, "..", "..", "large")); err == nil {
		t.Error("what lies outside the folder was unpacked")
	}
	l.Files = 2
	if _, err := fetch(t, "file://"+dir, Wish{Subdir: "deep"}, o); err != nil {
		t.Errorf("a folder and a file: %v", err)
	}
	l.Files = 0
	if _, err := fetch(t, "file://"+dir, Wish{}, o); !errors.Is(err, ErrRefused) {
		t.Errorf("too many: %v", err)
	}
}

// TestGitBomb: a tiny repository whose trees refer to each other thousands of times is refused.
func TestGitBomb(t *testing.T) {
	pace.NotRaced(t, "the git that it starts shares no memory with pollux")
	needGit(t, "")
	dir, _, _ := repository(t)
	tree := func(entries string) string {
		cmd := exec.Command("git", "-C", dir, "mktree")
		cmd.Stdin = strings.NewReader(entries)
		out, err := cmd.Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	kind, id := "100644 blob", run(t, dir, "rev-parse", "HEAD:gemini-extension.json")
	for range 7 { // 10 to the power of 7 files
		var entries strings.Builder
		for i := range 10 {
			fmt.Fprintf(&entries, "%s %s\td%d\n", kind, id, i)
		}
		kind, id = "040000 tree", tree(entries.String())
	}
	run(t, dir, "update-ref", "refs/heads/bomb", run(t, dir, "commit-tree", id, "-m", "bomb"))
	start := time.Now()
	if _, err := fetch(t, "file://"+dir, Wish{Ref: "bomb"}, nil); !errors.Is(err, ErrRefused) || time.Since(start) > 2*time.Minute {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// TestGitRunsNothing: hooks, templates, fsmonitor and filters of a template, and the variables of a surrounding git,
// run nothing and lead nowhere.
func TestGitRunsNothing(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	hooks := filepath.Join(t.TempDir(), "hooks")
	for _, h := range []string{"post-checkout", "reference-transaction", "post-merge", "fsmonitor"} {
		write(t, filepath.Join(hooks, h), "#!/bin/sh\necho "+h+" >> "+mark+"\n")
		must(t, os.Chmod(filepath.Join(hooks, h), 0o700))
	}
	template := t.TempDir()
	must(t, os.CopyFS(filepath.Join(template, "hooks"), os.DirFS(hooks)))
	needGit(t, "")
	dir, _, second := repository(t)
	needGit(t, "[core]\nhooksPath = "+hooks+"\nfsmonitor = "+filepath.Join(hooks, "fsmonitor")+"\n[init]\ntemplateDir = "+template+"\n[submodule]\nrecurse = true\n")
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	t.Setenv("GIT_TEMPLATE_DIR", template)
	got, err := fetch(t, "file://"+dir, Wish{}, nil)
	if err != nil || got.Commit != second {
		t.Fatalf("%+v, %v", got, err)
	}
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("these ran: %s", text)
	}
	if left, _ := filepath.Glob(filepath.Join(got.Dir, ".git", "hooks", "*")); len(left) > 0 {
		t.Errorf("hooks were installed: %v", left)
	}
}

// TestGitHelpers: ext:: is refused even if the user's configuration leads to it.
func TestGitHelpers(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	needGit(t, "[protocol \"ext\"]\nallow = always\n[url \"ext::sh -c touch% "+mark+"\"]\ninsteadOf = https://example.invalid/\n")
	_, err := fetch(t, "https://example.invalid/x", Wish{}, nil)
	if err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the helper ran")
	}
}

// TestGitSubmodules: submodules are not fetched, and the user is told.
func TestGitSubmodules(t *testing.T) {
	needGit(t, "")
	dir, _, _ := repository(t)
	other, _, _ := repository(t)
	run(t, dir, "submodule", "add", "-q", "file://"+other, "sub")
	run(t, dir, "commit", "-q", "-m", "3")
	var told []string
	got, err := fetch(t, "file://"+dir, Wish{}, &Options{Warn: func(s string) { told = append(told, s) }})
	must(t, err)
	if left, _ := os.ReadDir(filepath.Join(got.Dir, "sub")); len(left) > 0 || len(told) != 1 || !strings.Contains(told[0], "submodules") {
		t.Errorf("in the submodule: %v; told %q", left, told)
	}
}

// TestGitLinks: a link out of the repository is refused by name.
func TestGitLinks(t *testing.T) {
	needGit(t, "")
	dir, _, _ := repository(t)
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "LINK.md")))
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "3")
	if _, err := fetch(t, "file://"+dir, Wish{}, nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "LINK.md") {
		t.Errorf("error %v", err)
	}
	if _, err := fetch(t, "file://"+dir, Wish{Subdir: "LINK.md"}, nil); err == nil {
		t.Error("a folder that is a link out was taken")
	}
}

// TestGitCredentials: the user's credential helper and ssh command are used. Without them git fails at once instead
// of waiting for an answer.
func TestGitCredentials(t *testing.T) {
	needGit(t, "")
	dir, _, second := repository(t)
	backend := filepath.Join(run(t, dir, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git has no http-backend here")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h := cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	address := server.URL + "/" + filepath.Base(dir) + "/.git"
	if _, err := fetch(t, address, Wish{}, nil); err == nil || !strings.Contains(err.Error(), "terminal prompts disabled") {
		t.Errorf("without credentials: %v", err)
	}
	needGit(t, "[credential]\nhelper = \"!f() { echo username=me; echo password=secret; }; f\"\n")
	got, err := fetch(t, address, Wish{}, nil)
	if err != nil || got.Commit != second {
		t.Errorf("with the user's helper: %+v, %v", got, err)
	}
	needGit(t, "[core]\nsshCommand = \"f() { shift $(($#-1)); sh -c \\\"$1\\\"; }; f\"\n")
	for _, address := range []string{"ssh://git@host.invalid" + dir, "git@host.invalid:" + dir} {
		if got, err := fetch(t, address, Wish{}, nil); err != nil || got.Commit != second {
			t.Errorf("%s with the user's ssh: %+v, %v", address, got, err)
		}
	}
}

// TestGitProgress: a server's messages reach the terminal without control characters.
func TestGitProgress(t *testing.T) {
	needGit(t, `[core]
sshCommand = "f() { printf '\\033]0;x\\007\\033[8m\\302\\233hello \\342\\200\\256w\\303\\266rld\\r\\n' >&2; shift $(($#-1)); sh -c \"$1\"; }; f"
`)
	dir, _, _ := repository(t)
	var said strings.Builder
	if _, err := fetch(t, "ssh://git@host.invalid"+dir, Wish{}, &Options{Progress: &said}); err != nil {
		t.Fatal(err)
	}
	if text := said.String(); !strings.Contains(text, "\\u001b[8m\\u009bhello \\u202ewörld\r\n") || strings.ContainsAny(text, "\x1b\a\u009b\u202e") {
		t.Errorf("%q", text)
	}
}

// TestGitDumb: a web server that only serves files has no shallow clones; everything is fetched.
func TestGitDumb(t *testing.T) {
	needGit(t, "")
	dir, first, second := repository(t)
	run(t, dir, "update-server-info")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	for ref, want := range map[string]string{"": second, "v1": first, first: first} {
		if got, err := fetch(t, server.URL+"/.git", Wish{Ref: ref}, nil); err != nil || got.Commit != want {
			t.Errorf("ref %q: %+v, %v", ref, got, err)
		}
	}
}

// TestGitHangs: cancelling ends the wait for a server that accepts and says nothing.
func TestGitHangs(t *testing.T) {
	needGit(t, "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			cancel()
			defer c.Close()
			<-t.Context().Done()
		}
	}()
	s, err := Parse("http://"+l.Addr().String()+"/x", "", Wish{})
	must(t, err)
	start := time.Now()
	_, err = Fetch(ctx, s, t.TempDir(), nil)
	if !errors.Is(err, context.Canceled) || time.Since(start) > time.Minute {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

// TestGitInAHostileRepository: neither the configuration of the repository around the working folder nor its
// environment makes git run a program.
func TestGitInAHostileRepository(t *testing.T) {
	needGit(t, "")
	mark := filepath.Join(t.TempDir(), "mark")
	program := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho x >"+mark+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ config, variable, value, url string }{
		"core.sshCommand":       {config: "[core]\n\tsshCommand = " + program, url: "ssh://127.0.0.1:1/x"},
		"include.path":          {config: "[include]\n\tpath = ../more", url: "ssh://127.0.0.1:1/x"},
		"url.insteadOf":         {config: "[url \"ext::" + program + " \"]\n\tinsteadOf = https://127.0.0.1:1/\n[protocol \"ext\"]\n\tallow = always", url: "https://127.0.0.1:1/x"},
		"credential.helper":     {config: "[credential]\n\thelper = !" + program, url: "https://127.0.0.1:1/x"},
		"core.askPass":          {config: "[core]\n\taskPass = " + program, url: "https://u@127.0.0.1:1/x"},
		"core.gitProxy":         {config: "[core]\n\tgitProxy = " + program, url: "git://127.0.0.1:1/x"},
		"core.fsmonitor":        {config: "[core]\n\tfsmonitor = " + program, url: "ssh://127.0.0.1:1/x"},
		"alias":                 {config: "[alias]\n\tls-remote = !" + program, url: "ssh://127.0.0.1:1/x"},
		"GIT_PROXY_COMMAND":     {variable: "GIT_PROXY_COMMAND", value: program, url: "git://127.0.0.1:1/x"},
		"GIT_EXEC_PATH":         {variable: "GIT_EXEC_PATH", value: filepath.Dir(program), url: "https://127.0.0.1:1/x"},
		"GIT_CONFIG_PARAMETERS": {variable: "GIT_CONFIG_PARAMETERS", value: "'core.sshCommand'='" + program + "'", url: "ssh://127.0.0.1:1/x"},
		"GIT_CONFIG":            {variable: "GIT_CONFIG", value: filepath.Join(filepath.Dir(program), "config"), url: "ssh://127.0.0.1:1/x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			config := "[core]\n\trepositoryformatversion = 0\n" + test.config + "\n"
			for file, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": config, "more": "[core]\n\tsshCommand = " + program + "\n", ".git/objects/x": "", ".git/refs/x": ""} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			for _, helper := range []string{"git-remote-https", "git-ls-remote"} {
				if err := os.WriteFile(filepath.Join(filepath.Dir(program), helper), []byte("#!/bin/sh\nexec "+program+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if test.variable != "" {
				t.Setenv(test.variable, test.value)
			}
			g, err := newGit(Source{Kind: Git, Location: test.url}, &Options{})
			if err != nil {
				t.Fatal(err)
			}
			g.allow = "https:ssh:git"
			_, err = g.remote(t.Context(), test.url, "")
			if err == nil {
				t.Error("there is a server at port 1")
			}
			sub := t.TempDir()
			if _, err := g.clone(t.Context(), test.url, "", "", sub, Limits{}); err == nil {
				t.Error("there is a server at port 1")
			}
			if _, err := os.Stat(mark); err == nil {
				t.Errorf("the program ran")
				os.Remove(mark)
			}
		})
	}
}
