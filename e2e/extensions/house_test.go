// Package extensions tests pollux's extension manager against the published
// Gemini CLI: both work on one home, and each must manage what the other did.
package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/internal/peers"
)

// house is one home with both programs in it. The working folder of both is ws,
// outside the home, where the CLI's own disable does not reach.
type house struct {
	t      testing.TB
	home   cli.Home
	ws     string
	pollux string
	gemini []string
}

// TestMain builds the pollux under test, once.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(peers.Build(m.Run))
}

// newHouse makes one. Tests with houses run side by side: the CLI takes
// seconds to start, on one processor.
func newHouse(t testing.TB) *house {
	t.Helper()
	if t, ok := t.(*testing.T); ok {
		t.Parallel()
	}
	return &house{
		t: t, gemini: peers.Command(t, peers.Gemini), home: cli.NewHome(t), ws: t.TempDir(),
		pollux: peers.Pollux(),
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the house and returns what it prints and its exit code. It never hangs: stdin is empty.
func (h *house) run(args []string, stdin string, env ...string) (stdout, both string, code int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = h.ws
	cmd.Env = h.home.Env(append([]string{"GEMINI_API_KEY=anything", "GEMINI_CLI_NO_RELAUNCH=1", "NO_COLOR=1", "GEMINI_FORCE_FILE_STORAGE=true"}, env...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, all strings.Builder
	cmd.Stdout = writers{&out, &all}
	cmd.Stderr = &all
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		h.t.Fatalf("%q: %v\n%s", args, err, all.String())
	}
	return out.String(), all.String(), cmd.ProcessState.ExitCode()
}

// writers is a writer to two builders.
type writers struct{ a, b *strings.Builder }

func (w writers) Write(p []byte) (int, error) {
	w.a.Write(p)
	return w.b.Write(p)
}

// us runs pollux extensions and wants success.
func (h *house) us(args ...string) string {
	h.t.Helper()
	out, all, code := h.run(append([]string{h.pollux, "extensions"}, args...), "")
	if code != 0 {
		h.t.Fatalf("pollux extensions %q: exit code %d\n%s", args, code, all)
	}
	return out
}

// them runs gemini extensions and wants success; what it prints goes to stderr.
func (h *house) them(args ...string) string {
	h.t.Helper()
	_, all, code := h.run(append(h.gemini, append([]string{"extensions"}, args...)...), "")
	if code != 0 {
		h.t.Fatalf("gemini extensions %q: exit code %d\n%s", args, code, all)
	}
	return all
}

// theirs is an extension as the CLI lists it.
type theirs struct {
	Name, Version, ID string
	IsActive          bool
	Path              string
	ContextFiles      []string
	InstallMetadata   struct{ Source, Type, Ref string }
	ResolvedSettings  []struct {
		EnvVar, Value, Scope string
		Sensitive            bool
	}
}

// theyList is what the CLI lists, by name.
func (h *house) theyList() map[string]theirs {
	h.t.Helper()
	text := h.them("list", "-o", "json")
	_, text, found := strings.Cut("\n"+text, "\n[")
	var all []theirs
	if err := json.Unmarshal([]byte("["+text), &all); !found || err != nil {
		h.t.Fatalf("the CLI lists %q: %v", text, err)
	}
	byName := map[string]theirs{}
	for _, x := range all {
		byName[x.Name] = x
	}
	return byName
}

// ours is an extension as pollux lists it.
type ours struct {
	Name, Version, InstalledBy, Problem string
	Enabled                             struct{ User, Workspace bool }
	Source                              struct{ Type, Location, Commit string }
}

func (h *house) weList() map[string]ours {
	h.t.Helper()
	var list struct{ Extensions []ours }
	must(h.t, json.Unmarshal([]byte(h.us("list", "--json")), &list))
	byName := map[string]ours{}
	for _, x := range list.Extensions {
		byName[x.Name] = x
	}
	return byName
}

// extension writes an extension with a context file that a session shows to the model.
func (h *house) extension(dir, name, version, more string) string {
	h.t.Helper()
	write(h.t, filepath.Join(dir, "gemini-extension.json"), `{"name":"`+name+`","version":"`+version+`"`+more+`}`)
	write(h.t, filepath.Join(dir, "GEMINI.md"), "The word of "+name+" is "+word(name, version)+".\n")
	return dir
}

func word(name, version string) string {
	return strings.ToUpper(name) + strings.ReplaceAll(version, ".", "")
}

func write(t testing.TB, file, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o600))
}

// git runs git in a folder, as an author.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes one with a first version of an extension.
func (h *house) repository(name, version string) string {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), name)
	h.extension(dir, name, version, "")
	git(h.t, dir, "init", "-q")
	h.commit(dir, name, version)
	return dir
}

func (h *house) commit(dir, name, version string) {
	h.t.Helper()
	h.extension(dir, name, version, "")
	git(h.t, dir, "add", ".")
	git(h.t, dir, "commit", "-q", "-m", version)
}
