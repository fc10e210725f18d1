//go:build unix

package client

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the published CLI: ps for one process, PowerShell for all.
const (
	fakePS = "#!/bin/sh\n" +
		`exec awk -v pid="$4" '$1 == pid { sub(/^[0-9]+ /, ""); print; found = 1 } END { exit !found }' "$POLLUX_TREE"` + "\n"
	fakePowerShell = "#!/bin/sh\nexec cat \"$POLLUX_TREE.json\"\n"
)

type climbCase struct {
	Do      string            `json:"do"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"dir"`
	PID     int               `json:"pid"`
	Windows bool              `json:"windows"`
}

// sameInTrees compares our way of finding the editor's process with the published CLI's, in the recorded process
// trees.
func sameInTrees(t *testing.T, real *realCLI) {
	dir := t.TempDir()
	for name, script := range map[string]string{"ps": fakePS, "powershell": fakePowerShell} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for name, c := range climbs() {
		n++
		file := filepath.Join(dir, fmt.Sprintf("tree%d", n))
		writeTree(t, file, c.tree)
		env := map[string]string{"PATH": dir + ":" + os.Getenv("PATH"), "POLLUX_TREE": file}
		if c.env != "" {
			env["GEMINI_CLI_IDE_PID"] = c.env
		}
		var want struct {
			PID     int
			Command string
			Fault   string
		}
		real.ask(climbCase{"climb", env, dir, c.from, c.windows == 1}, &want)
		if got := findEditor(c.world(t)); want.Fault != "" || got.PID != want.PID || got.Command != want.Command || got.PID != c.want {
			t.Errorf("%s: real %+v, ours %d (%s), want %d", name, want, got.PID, got.Command, c.want)
		}
	}
}

// writeTree writes a recorded tree in the form that both stand-ins read.
func writeTree(t *testing.T, file, text string) {
	t.Helper()
	type process struct {
		ProcessID       int `json:"ProcessId"`
		ParentProcessID int `json:"ParentProcessId"`
		Name            string
		CommandLine     string
	}
	var all []process
	for line := range strings.Lines(strings.TrimSpace(text)) {
		var p process
		if _, err := fmt.Sscan(line, &p.ProcessID, &p.ParentProcessID); err != nil {
			t.Fatal(err)
		}
		p.CommandLine = strings.SplitN(strings.TrimSpace(line), " ", 3)[2]
		all = append(all, p)
	}
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(file+".json", data, 0o600)
	}
	if err == nil {
		err = os.WriteFile(file, []byte(strings.TrimSpace(text)+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
