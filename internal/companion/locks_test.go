package companion

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// SPEC Q-1, CC-1: agents that are used on this machine find the companion by a lock in their own home, private, with a token of
// its own each, and gone at the end. Of an agent that nobody has used nothing is made; one that is used later is found within a
// minute.
func TestLocks(t *testing.T) {
	o, _, _ := options(t)
	home := os.Getenv("HOME")
	for _, agent := range []string{".claude", ".copilot"} {
		if err := os.MkdirAll(filepath.Join(home, agent), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, o)
	lock := func(agent string) string {
		return filepath.Join(home, agent, "ide", strconv.Itoa(c.Info().Port)+".lock")
	}
	token := func(agent string) string {
		t.Helper()
		data, err := os.ReadFile(lock(agent))
		var l struct {
			Token   string `json:"authToken"`
			Headers struct{ Authorization string }
		}
		if err == nil {
			err = json.Unmarshal(data, &l)
		}
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(lock(agent)); err != nil || filepath.Separator == '/' && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", agent, info, err)
		}
		return l.Token + l.Headers.Authorization
	}
	if _, err := os.Stat(filepath.Join(home, ".qwen")); err == nil {
		t.Error("a home was made for an agent that nobody uses")
	}
	if err := os.MkdirAll(filepath.Join(home, ".qwen"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.touch(c.started)
	tokens := map[string]bool{token(".claude"): true, token(".qwen"): true, token(".copilot"): true, c.Connection().Token: true}
	if len(tokens) != 4 {
		t.Errorf("agents share a token")
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{".claude", ".qwen", ".copilot"} {
		if _, err := os.Stat(lock(agent)); err == nil {
			t.Errorf("%s is left", lock(agent))
		}
	}
}
