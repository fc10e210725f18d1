package settingsfile

import (
	"path/filepath"
	"strings"
	"testing"
)

// The agent's variable outranks the home folder, a relative folder is made absolute, and without either the message names both.
func TestHome(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for want, env := range map[string]map[string]string{
		filepath.Join(here, "x"):           {"AGENT_HOME": "x", HomeVariable: "/h"},
		filepath.Join(here, "h", ".agent"): {HomeVariable: "h"},
		"":                                 {},
	} {
		got, err := Home(func(name string) string { return env[name] }, "AGENT_HOME", ".agent")
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%v: %q, %v; want %q", env, got, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), "AGENT_HOME") || !strings.Contains(err.Error(), HomeVariable)) {
			t.Errorf("the message is %v", err)
		}
	}
}
