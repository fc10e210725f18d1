package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// runNested is a pollux that cannot make namespaces, because it runs inside a sandbox. It prints what happens to a
// command there.
func runNested(how string) int {
	p := Policy{}
	if how == "hosts" {
		p.Hosts = hosts(&testing.T{}, "example.com")
	}
	if err := beContainer(how); err != nil {
		fmt.Println(err)
		return 1
	}
	r, err := New(&Options{AllowReduced: how == "reduced" || how == "hosts"}).Run(context.Background(), p, Command{Args: []string{"echo", "ran"}})
	setup := (*SetupError)(nil)
	if errors.As(err, &setup) {
		fmt.Printf("phase %s fix %v: %v\n", setup.Phase, setup.Fix != "", err)
		return 0
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Printf("%s %s", r.Assurance, r.Stdout)
	return 0
}

// TestWithoutNamespaces: what the machine cannot enforce is refused, with the step and a remedy. The reduced sandbox
// is used only if allowed, and keeps what the policy promises (SPEC S-1).
func TestWithoutNamespaces(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{"strict": "phase userns fix true: ", "reduced": "reduced ran\n", "hosts": "phase userns fix true: "} {
		r := runIn(t, New(nil), Policy{}, Command{Args: []string{binary, "-nested", how}, Env: []string{"GORACE=atexit_sleep_ms=0"}})
		if r.Code != 0 || !strings.HasPrefix(string(r.Stdout), want) {
			t.Errorf("%s: %d %s%s", how, r.Code, r.Stdout, r.Stderr)
		}
		if how == "hosts" && !strings.Contains(string(r.Stdout), "the reduced sandbox cannot stand in") {
			t.Errorf("%s", r.Stdout)
		}
	}
}
