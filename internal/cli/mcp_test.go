package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/child"
	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// An mcpClient is a client of pollux mcp that sends and receives single messages.
type mcpClient struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Reader
	id    int
}

// mcp starts pollux mcp in the project, as this process's own, and does the handshake.
func (w *world) mcp(args ...string) *mcpClient {
	w.t.Helper()
	return w.shake(w.command(append([]string{"mcp"}, args...)...))
}

// mcpApart is mcp with awk as the agent, beside which this process may decide as the user's page (SPEC §11.1).
func (w *world) mcpApart(flag string) *mcpClient {
	w.t.Helper()
	cmd := exec.Command("awk", fmt.Sprintf(`BEGIN { exit system("pollux mcp %s") }`, flag))
	cmd.Dir, cmd.Env = w.project, w.env
	return w.shake(cmd)
}

func (w *world) shake(cmd *exec.Cmd) *mcpClient {
	w.t.Helper()
	in, out := child.Start(w.t, cmd)
	timer := time.AfterFunc(2*patience, func() { cmd.Process.Kill() })
	w.t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("pollux mcp ended with %v", err)
		}
		timer.Stop()
	})
	c := &mcpClient{t: w.t, in: in, lines: bufio.NewReader(out)}
	c.send("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}})
	c.answer()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *mcpClient) send(method string, params any) {
	c.t.Helper()
	c.id++
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err == nil {
		_, err = c.in.Write(append(data, '\n'))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// answer returns the texts of the response to the last request; those of an error begin with "error: ".
func (c *mcpClient) answer() []string {
	c.t.Helper()
	for {
		line, err := c.lines.ReadBytes('\n')
		var m struct {
			ID     int
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		if err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		if m.ID != c.id {
			continue
		}
		var texts []string
		for _, b := range m.Result.Content {
			if m.Result.IsError {
				b.Text = "error: " + b.Text
			}
			texts = append(texts, b.Text)
		}
		return texts
	}
}

func (c *mcpClient) call(tool string, args map[string]any) []string {
	c.t.Helper()
	c.send("tools/call", map[string]any{"name": tool, "arguments": args})
	return c.answer()
}

// An agent that has started pollux mcp --ide, and has not asked anything yet, is known by the name that it gave itself, as long as it lives.
func TestMCPIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve()
	status := func() string {
		out, _ := w.in(w.project, nil, "status")
		return out
	}
	if got := status(); strings.Contains(got, "asks by pollux mcp") {
		t.Errorf("before: %s", got)
	}
	c := w.mcpApart("--ide")
	eventually(t, "it is known", func() bool { return strings.Contains(status(), "asks by pollux mcp: t 1\n") })
	if len(w.control().Status.Askers) != 1 {
		t.Error("it is not known once")
	}
	c.in.Close()
	eventually(t, "it is forgotten", func() bool { return !strings.Contains(status(), "asks by pollux mcp") })
}

// Such an agent is in the page's list of sessions and in the reviewer's number, and leaves both with its process.
func TestMCPIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.serve()
	page := webtest.Open(t, l.Page, "person")
	channel := w.control()
	defer channel.Close()
	lists := func(want ...string) {
		t.Helper()
		for {
			var got struct {
				Sessions []struct {
					Label, Told string
					PID         int
				}
			}
			page.Expect("sessions/changed", &got) // fails when nothing comes
			var labels []string
			for _, s := range got.Sessions {
				labels = append(labels, s.Label+" "+s.Told)
				if s.PID == 0 {
					t.Error("its process is not known")
				}
			}
			if slices.Equal(labels, want) {
				break
			}
			t.Logf("listed are %q", labels)
		}
		if q, err := channel.Watch(t.Context(), 0); err != nil || q.Sessions != len(want) {
			t.Errorf("the reviewer counts %d, %v", q.Sessions, err)
		}
	}
	c := w.mcpApart("--ide")
	lists("t by pollux mcp told")
	c.in.Close()
	lists()
}

// The editor's tools, for any MCP client: the companion's data, and a diff that waits for the user.
func TestMCPForTheEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.mcpApart("--ide")
	if got := c.call("getOpenEditors", nil); len(got) != 1 || !strings.HasPrefix(got[0], "error: no companion serves this folder") {
		t.Errorf("without a companion: %q", got)
	}
	l := w.serve()
	file := filepath.Join(w.project, "a b.txt")
	if err := os.WriteFile(file, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{
		"getOpenEditors": `{"tabs":[]}`, "getDiagnostics": "Not known: no tool in the editor looks at its files.",
		"getCurrentSelection": `{"success":false,"message":"No file is looked at in the editor.","text":""}`,
		"getWorkspaceFolders": fmt.Sprintf(`{"folders":[{"name":"p","path":%q,"uri":"file://%s"}],"rootPath":%q,"success":true}`, w.project, w.project, w.project),
	} {
		if got := c.call(tool, nil); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %s", tool, got, want)
		}
	}
	if got := c.call("getDiagnostics", map[string]any{"file": "x"}); !strings.Contains(got[0], `unknown field`) {
		t.Errorf("an argument that is none: %q", got)
	}
	if got := c.call("openFile", map[string]any{"filePath": "/etc/passwd"}); !strings.Contains(got[0], "outside") {
		t.Errorf("a file elsewhere: %q", got)
	}
	diff := map[string]any{"old_file_path": file, "new_file_path": file, "new_file_contents": "new\n", "tab_name": "tab"}
	if got := c.call("openDiff", diff); !strings.HasPrefix(got[0], "error: no editor page is open") {
		t.Errorf("nobody looks at diffs: %q", got)
	}
	channel := w.control()
	page := webtest.Open(t, l.Page, "person")
	decide := func(c *mcpClient, method string, text any) []string {
		t.Helper()
		c.send("tools/call", map[string]any{"name": "openDiff", "arguments": diff})
		var open []control.Diff
		var err error
		eventually(t, "a proposal", func() bool { open, err = channel.Diffs(t.Context()); return err != nil || len(open) > 0 })
		if err != nil {
			t.Fatal(err)
		}
		page.Call(method, map[string]any{"id": open[0].ID, "text": text}, nil)
		return c.answer()
	}
	if got := decide(c, "diff/reject", nil); len(got) != 2 || got[0] != "DIFF_REJECTED" || got[1] != "tab" {
		t.Errorf("rejected: %q", got)
	}
	if got := decide(c, "diff/accept", nil); len(got) != 2 || got[0] != "FILE_SAVED" || got[1] != "new\n" {
		t.Errorf("accepted: %q", got)
	}
	if data, _ := os.ReadFile(file); string(data) != "old\n" {
		t.Errorf("the file was written: %q", data)
	}
	writer := w.mcpApart("--ide-write")
	edited := "edited\n"
	if got := decide(writer, "diff/accept", edited); len(got) != 2 || got[1] != edited {
		t.Errorf("edited: %q", got)
	}
	if data, _ := os.ReadFile(file); string(data) != edited {
		t.Errorf("with --ide-write the file holds %q", data)
	}
	diff["new_file_path"] = filepath.Join(w.project, ".git", "config")
	if got := decide(writer, "diff/accept", nil); !strings.Contains(got[0], "error: ") {
		t.Errorf("a protected file: %q", got)
	}

	// Now this process is an agent, because it starts a server itself.
	own := w.mcp("--ide")
	diff["new_file_path"] = file
	own.send("tools/call", map[string]any{"name": "openDiff", "arguments": diff})
	var open []control.Diff
	eventually(t, "its proposal", func() bool {
		var err error
		open, err = channel.Diffs(t.Context())
		return err != nil || len(open) > 0
	})
	if err := channel.Attach(t.Context()); err == nil {
		t.Error("an agent looks at diffs")
	}
	if err := channel.Decide(t.Context(), control.Decision{ID: open[0].ID, Accept: true}); err == nil || err.Error() != control.ErrFromAgent.Error() {
		t.Errorf("an agent decides: %v", err)
	}
	if err := page.Try("diff/accept", map[string]any{"id": open[0].ID}, nil); err == nil {
		t.Error("an agent decides on the page")
	}
}
