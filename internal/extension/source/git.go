package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/words"
)

// git runs the user's own git with the user's configuration, credentials and ssh, but without anything that lets a
// repository, an address or a ref run a program.
type git struct {
	path        string    // of the program
	interactive bool      // it may ask for a password on the terminal
	allow       string    // the allowed protocols, separated by colons
	progress    io.Writer // of long transfers, nil for none
}

// gitTimeout bounds one git command, because a server may accept and then say nothing.
const gitTimeout = 15 * time.Minute

// newGit finds git, or says what is missing.
func newGit(s Source, o *Options) (*git, error) {
	path, err := paths.Program("git")
	if err != nil {
		return nil, errors.New("git is not installed (or not in PATH), and this source needs it; install git, or install the extension from a folder or an archive")
	}
	return &git{path: path, interactive: o.Interactive, allow: protocols(s.Location), progress: o.Progress}, nil
}

// protocols lists what git may speak for one source. https and ssh are always allowed: a server or the user's
// insteadOf may lead from one to the other. Plain http, local repositories and private helpers need the user's
// address or GIT_ALLOW_PROTOCOL.
func protocols(location string) string {
	list := []string{"https", "ssh"}
	if scheme, _, found := strings.Cut(location, "://"); found {
		list = append(list, strings.TrimPrefix(scheme, "git+"))
	}
	for p := range strings.SplitSeq(os.Getenv("GIT_ALLOW_PROTOCOL"), ":") {
		if p != "" && p != "ext" && p != "fd" {
			list = append(list, p)
		}
	}
	return strings.Join(list, ":")
}

// kept says whether git gets a variable of pollux's environment. Of git's own variables it gets only what says how to
// reach a server. Others could lead git into another repository (from a hook or a rebase), or let a project's
// environment run a program.
func kept(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	name = strings.ToUpper(name)
	if name == "LC_ALL" || name == "LANGUAGE" {
		return false // pollux parses git's messages
	}
	if !strings.HasPrefix(name, "GIT_") {
		return true
	}
	return strings.HasPrefix(name, "GIT_SSL_") || strings.HasPrefix(name, "GIT_HTTP_") ||
		slices.Contains([]string{"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}, name)
}

func (g *git) env() []string {
	var env []string
	for _, v := range os.Environ() {
		if kept(v) {
			env = append(env, v)
		}
	}
	env = append(env, "GIT_ALLOW_PROTOCOL="+g.allow, "GIT_TEMPLATE_DIR=", "LC_ALL=C")
	if g.interactive {
		return env
	}
	// Without a terminal nobody can answer: fail at once instead of waiting.
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never")
	if os.Getenv("GIT_SSH_COMMAND") == "" && os.Getenv("GIT_SSH") == "" && !g.configured("core.sshCommand") {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return env
}

// noRepository hides the repository around the working folder from git. Its configuration can name programs to run
// (core.sshCommand, credential.helper).
func noRepository() string { return "GIT_DIR=" + os.DevNull }

// configured says whether the user's git configuration sets key.
func (g *git) configured(key string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.path, "config", "--get", key)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return !kept(v) }), noRepository())
	return cmd.Run() == nil
}

// guards are options for every command that disable what a repository could use to run something.
func guards() []string {
	return []string{
		"-c", "core.hooksPath=" + os.DevNull,
		"-c", "core.fsmonitor=false",
		"-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
		"-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false",
		"-c", "protocol.ext.allow=never", "-c", "protocol.fd.allow=never",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false",
		"-c", "advice.detachedHead=false",
	}
}

// run runs one command in dir ("" for none) and returns its stdout. git's stderr goes to the progress writer and, on
// failure, into the error.
func (g *git) run(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	full := guards()
	if dir != "" {
		full = append(full, "-C", dir)
	}
	cmd := exec.CommandContext(ctx, g.path, append(full, args...)...) // Parse has checked every argument
	cmd.Env = g.env()
	if dir == "" {
		cmd.Env = append(cmd.Env, noRepository())
	}
	if g.interactive {
		cmd.Stdin = os.Stdin
	}
	ownGroup(cmd)
	cmd.WaitDelay = 2 * time.Second
	var stdout bytes.Buffer
	last := &tail{max: 4096}
	out := &limited{w: &stdout, left: 8 << 20}
	cmd.Stdout = out
	cmd.Stderr = last
	if g.progress != nil {
		cmd.Stderr = io.MultiWriter(last, &visible{w: g.progress})
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("git was stopped: %w", context.Cause(ctx))
	}
	if out.left < 0 {
		return "", errTooMuch
	}
	if err != nil {
		return "", &gitError{said: last.said(), err: err}
	}
	return stdout.String(), nil
}

// A gitError carries git's last messages, which name the cause.
type gitError struct {
	said string
	err  error
}

func (e *gitError) Error() string {
	if e.said == "" {
		return "git failed: " + e.err.Error()
	}
	return "git says: " + e.said
}

func (e *gitError) Unwrap() error { return e.err }

// notThere says whether the server answered that it lacks the ref.
func notThere(err error) bool {
	var g *gitError
	return errors.As(err, &g) && (strings.Contains(g.said, "couldn't find remote ref") ||
		strings.Contains(g.said, "not our ref") || strings.Contains(g.said, "unadvertised object"))
}

var hexCommit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{7,64}$`) })

// clone fetches only the commit that ref names into the existing empty folder dir, checks out its folder sub ("" for
// all), and returns the commit's id.
func (g *git) clone(ctx context.Context, url, ref, sub, dir string, l Limits) (string, error) {
	if _, err := g.run(ctx, dir, "init", "-q", "--template="); err != nil {
		return "", err
	}
	if _, err := g.run(ctx, dir, "remote", "add", "--", "origin", url); err != nil {
		return "", err
	}
	bounded, stop := boundPacks(ctx, dir, l.Total)
	defer stop()
	want := ref
	if want == "" {
		want = "HEAD"
	}
	at := "FETCH_HEAD"
	_, err := g.fetch(bounded, dir, "--depth=1", "--", "origin", want)
	if said := (*gitError)(nil); errors.As(err, &said) && strings.Contains(said.said, "does not support shallow") {
		// A web server that only serves files cannot make a shallow clone.
		_, err = g.fetch(bounded, dir, "--", "origin", want)
	}
	if err != nil && notThere(err) && hexCommit().MatchString(ref) {
		// An abbreviated commit, or a server that serves no single commits: fetch everything and search there.
		_, err = g.fetch(bounded, dir, "--tags", "--", "origin", "+refs/heads/*:refs/remotes/origin/*")
		at = ref
	}
	if err != nil {
		return "", refError(err, url, ref)
	}
	id, err := g.run(ctx, dir, "rev-parse", "--verify", "-q", "--end-of-options", at+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%w: %q has no branch, tag or commit %q; list them with: git ls-remote %s", ErrNotFound, url, ref, url)
	}
	id = strings.TrimSpace(id)
	if err := g.measure(ctx, dir, id, sub, l); err != nil {
		return "", err
	}
	checkout := []string{"checkout", "-q", "--detach", "--no-recurse-submodules", id}
	if sub != "" {
		checkout = []string{"--literal-pathspecs", "checkout", "-q", id, "--", sub}
	}
	_, err = g.run(ctx, dir, checkout...)
	return id, err
}

func (g *git) fetch(ctx context.Context, dir string, args ...string) (string, error) {
	base := []string{"fetch", "--no-recurse-submodules", "--no-write-commit-graph"}
	if g.progress != nil {
		base = append(base, "--progress")
	}
	return g.run(ctx, dir, append(base, args...)...)
}

func refError(err error, url, ref string) error {
	switch {
	case notThere(err) && ref != "":
		return fmt.Errorf("%w: %q has no branch, tag or commit %q; list them with: git ls-remote %s", ErrNotFound, url, ref, url)
	case notThere(err):
		return fmt.Errorf("%w: the repository %q is empty", ErrNotFound, url)
	}
	return fmt.Errorf("fetching %q: %w", url, err)
}

// remote asks the server which commit ref names now. A full commit id is returned unchanged: it cannot move.
func (g *git) remote(ctx context.Context, url, ref string) (string, error) {
	if len(ref) >= 40 && hexCommit().MatchString(ref) {
		return ref, nil
	}
	want := ref
	if want == "" {
		want = "HEAD"
	}
	out, err := g.run(ctx, "", "ls-remote", "--", url, want, want+"^{}")
	if err != nil {
		return "", refError(err, url, ref)
	}
	id := ""
	for line := range strings.Lines(out) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if id == "" || strings.HasSuffix(name, "^{}") { // an annotated tag's commit comes after the tag object
			id = hash
		}
	}
	if id == "" {
		if hexCommit().MatchString(ref) {
			return ref, nil
		}
		return "", fmt.Errorf("%w: %q no longer has a branch or tag %q; list them with: git ls-remote %s", ErrNotFound, url, ref, url)
	}
	return id, nil
}

// tail keeps the last bytes written to it.
type tail struct {
	buf []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// visible passes on what a server or ssh reports, without control characters. They could, for example, make text
// invisible just before the user is asked.
type visible struct {
	w    io.Writer
	rest []byte // of an incomplete character
}

func (v *visible) Write(p []byte) (int, error) {
	data := append(v.rest, p...)
	var out strings.Builder
	for len(data) > 0 && utf8.FullRune(data) {
		r, n := utf8.DecodeRune(data)
		if data = data[n:]; r == '\r' || r == '\n' {
			out.WriteRune(r)
		} else {
			out.WriteString(words.Printable(string(r)))
		}
	}
	v.rest = data
	if _, err := io.WriteString(v.w, out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// said returns git's own error lines, without progress and hints.
func (t *tail) said() string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(string(t.buf), "\r", "\n"), "\n") {
		line = strings.TrimSpace(strings.Map(func(r rune) rune { // may contain the server's text
			if r == '\t' || words.Hidden(r) {
				return -1
			}
			return r
		}, line))
		for _, p := range []string{"fatal: ", "error: ", "remote: ", "ssh: ", "Permission denied", "Host key"} {
			if strings.HasPrefix(line, p) {
				lines = append(lines, strings.TrimPrefix(line, "fatal: "))
				break
			}
		}
	}
	return strings.Join(lines, "; ")
}

// HeadCommit returns the commit of an installed copy of a repository, or "" if dir has none. It only reads files, so
// the copy's configuration has no effect.
func HeadCommit(dir string) string {
	file := filepath.Join(dir, ".git", "HEAD")
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 { // a pipe would block
		return ""
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	id := strings.TrimSpace(string(data))
	if !hexCommit().MatchString(id) {
		return ""
	}
	return id
}
