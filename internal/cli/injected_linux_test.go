package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SPEC §11.1: a model's shell opens the pipe between an editor and pollux, and writes a decision into it. pollux ends before it reads that,
// and a keeper has the proposal. A program that was given the pipe is none of these.
func TestInjectedIntoThePipe(t *testing.T) {
	const decides = `{"jsonrpc":"2.0","id":99,"method":"workspace/executeCommand","params":{"command":"pollux.setPolicy","arguments":[{"policy":"accept","scope":"session"}]}}`
	for name, open := range map[string]string{
		"pollux's end":        "exec 3<>/proc/%[1]d/fd/0; echo '" + decides + "' >&3",
		"the editor's end":    "exec 3<>/proc/%[2]d/fd/%[3]d; echo '" + decides + "' >&3",
		"pollux's output":     "exec 3<>/proc/%[1]d/fd/1; echo '{}' >&3",
		"to read in its turn": "exec 3</proc/%[1]d/fd/0",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			e := w.newIDE("one")
			given := exec.Command("sleep", "600")
			given.ExtraFiles = []*os.File{e.in.(*os.File)}
			if err := given.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = given.Process.Kill(); _ = given.Wait() }()
			status := func() error {
				return e.peer.Call(t.Context(), "workspace/executeCommand", map[string]any{"command": "pollux.status"}, nil)
			}
			if err := status(); err != nil {
				t.Fatalf("a program was given the pipe, and pollux ends: %v", err)
			}
			script := fmt.Sprintf(open, e.cmd.Process.Pid, os.Getpid(), e.in.(*os.File).Fd())
			if out, err := exec.Command("bash", "-c", script).CombinedOutput(); err != nil {
				t.Fatalf("%s: %s, %v", script, out, err)
			}
			go func() { _ = status() }() // it may only be seen when the editor says something
			select {
			case <-e.ended:
			case <-time.After(patience):
				t.Fatal("pollux goes on")
			}
			log, err := os.ReadFile(filepath.Join(w.state, "pollux", "pollux.log"))
			if err != nil || !strings.Contains(string(log), "another program has opened the pipe") {
				t.Errorf("the log says %s, %v", log, err)
			}
		})
	}
}

// The same for a client of pollux mcp, which asks the user there what extensions may do.
func TestInjectedIntoMCP(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); in.Close(); _ = cmd.Wait() }()
	answers := bufio.NewReader(out)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "protocolVersion") {
		t.Fatalf("%q, %v", line, err)
	}
	script := fmt.Sprintf(`echo '{"jsonrpc":"2.0","id":2,"method":"ping"}' >/proc/%d/fd/0`, cmd.Process.Pid)
	if out, err := exec.Command("bash", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %s, %v", script, out, err)
	}
	read := make(chan string, 1)
	go func() { rest, _ := io.ReadAll(answers); read <- string(rest) }()
	select {
	case rest := <-read:
		if strings.Contains(rest, `"id":2`) {
			t.Errorf("it answers what was injected: %q", rest)
		}
	case <-time.After(patience):
		t.Fatal("pollux goes on")
	}
}
