package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/extension/audit"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/sandbox"
)

// TestWithoutNamespaces: on a machine without namespaces, such as the inside of a sandbox, a tool is refused, and the
// refusal is logged. If the reduced sandbox is allowed and keeps its permissions, the tool runs from a private copy
// (SPEC S-1).
func TestWithoutNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for how, want := range map[string]string{
		"strict":  "refused: the sandbox could not be set up",
		"reduced": "reduced: ran from outside: no, left: 0\n",
		"writes":  "refused: the sandbox could not be set up",
	} {
		r, err := sandbox.New(&sandbox.Options{Home: w.root}).Run(t.Context(), sandbox.Policy{}, sandbox.Command{
			Args: []string{self(t)}, Env: []string{"RUNNER_NESTED=" + how, "GORACE=atexit_sleep_ms=0"}, Limits: sandbox.Limits{Time: testTime},
		})
		w.possible(err)
		if err != nil {
			t.Fatal(err)
		}
		if r.Code != 0 || !strings.HasPrefix(string(r.Stdout), want) {
			t.Errorf("%s: %d %s%s", how, r.Code, r.Stdout, r.Stderr)
		}
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// nested is a pollux on a machine without namespaces.
func nested(how string) int {
	root, err := os.MkdirTemp("", "w")
	if err != nil {
		panic(err)
	}
	w := worldAt(nil, root)
	w.options.Sandbox = sandbox.New(&sandbox.Options{Home: root, AllowReduced: how != "strict"})
	p := permission.Permissions{}
	if how == "writes" {
		p.Write = permission.Workspace
	}
	w.extension("x", "shell", `case $0 in */.gemini/*) echo ran from outside: yes;; *) printf 'ran from outside: no';; esac`, p, nil)
	w.allow("x")
	q := w.request("x", "")
	r, err := New(w.options).Run(context.Background(), q)
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), unpackPrefix+"*"))
	if err == nil {
		fmt.Printf("%s: %s, left: %d\n", r.Assurance, r.Text, len(left))
		return 0
	}
	events, _ := w.audit.Read(audit.Query{})
	if r != nil || !errors.Is(err, sandbox.ErrSetup) || len(left) > 0 || len(events) != 2 || events[1].Event != audit.Refused {
		fmt.Printf("%+v %v %q %+v\n", r, err, left, events)
		return 1
	}
	fmt.Println("refused:", err)
	return 0
}
