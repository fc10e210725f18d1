package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/browser"
	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/internal/peers"
)

// TestConsentOnThePage: the question about a tool stands on the page, in
// lines; a key that was meant for something else keeps nothing, and the button
// that is clicked is the answer (SPEC S-2).
func TestConsentOnThePage(t *testing.T) {
	b := newBench(t, map[string]string{"a.txt": "text\n", "x/t.sh": "cat a.txt",
		"x/gemini-extension.json": `{"name":"x","version":"1.0.0","permissions":{"filesystem":{"read":"workspace"}},
			"tools":[{"name":"t","description":"d","executable":"t.sh","runtime":"shell"}]}`})
	d := b.desk(b.serve())
	b.pollux("extensions", "install", b.path("x"), "--yes")
	run := func() (ended func() string) {
		cmd := exec.CommandContext(t.Context(), shared.pollux, "extensions", "run", "x", "t")
		cmd.Dir, cmd.Env = b.dir, b.home.Env()
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() string { _ = cmd.Wait(); return out.String() }
	}
	ended := run()
	d.Wait(browser.ID("ask-dialog"))
	text := d.Text(browser.ID("ask-dialog"))
	for _, part := range []string{`May the tool "t" of the extension "x" run?`, "\nWhat the sandbox lets its tools do:\n", "may read the files of the workspace", b.dir} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not say %q:\n%s", part, text)
		}
	}
	d.Press("Enter")
	if out := ended(); !strings.Contains(out, "did not agree") || strings.Contains(out, "text\n") {
		t.Errorf("after Enter: %s", out)
	}
	if out := b.pollux("extensions", "consent", "list"); !strings.Contains(out, "nothing was answered") {
		t.Errorf("Enter was kept: %s", out)
	}
	ended = run()
	d.Wait(browser.ID("choice-Allow always for this content"))
	d.Click(browser.ID("choice-Allow always for this content"))
	if out := ended(); !strings.HasSuffix(out, "text\n") {
		t.Errorf("after Allow always: %s", out)
	}
	if out := b.pollux("extensions", "run", "x", "t"); out != "text\n" {
		t.Errorf("asked again: %s", out)
	}
}

// TestConsentInASession: the published CLI's model learns that an extension waits for consent and nothing else of it; it has the
// user asked, on the page; with their answer the tool is there, runs in the sandbox, and its result is in the next request
// (SPEC P-3, P-4, S-2).
func TestConsentInASession(t *testing.T) {
	gemini := peers.Command(t, peers.Gemini)
	b := newBench(t, map[string]string{"a.txt": "what is in the file\n", "x/t.sh": "cat a.txt",
		"x/gemini-extension.json": `{"name":"file-teller","version":"1.0.0","description":"Tells a file.","permissions":{"filesystem":{"read":"workspace"}},
			"tools":[{"name":"tellFile","description":"d","executable":"t.sh","runtime":"shell"}]}`})
	d := b.desk(b.serve())
	b.pollux("extensions", "install", b.path("x"), "--yes")
	own := filepath.Join(b.home.Dir, ".gemini", "pollux")
	if err := errors.Join(os.MkdirAll(own, 0o700), os.WriteFile(filepath.Join(own, "bridge.json"), []byte(`{"server": "pollux-tester"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.pollux("extensions", "bridge", "install", "--headless")
	m := model.Start(t)
	call := func(name string) model.Turn {
		return model.Turn{Calls: []model.Call{{Name: name, Args: map[string]any{}}}}
	}
	const asks, tells = "mcp_pollux-tester_request_consent", "mcp_pollux-tester_tellFile"
	m.Script("tell me the file",
		call(asks), call(tells), call(tells), model.Text("There.")) // once more: a busy CLI may need a moment to know the tool
	session := exec.CommandContext(t.Context(), gemini[0], append(gemini[1:], "-p", "tell me the file")...)
	session.Dir, session.Env = b.dir, b.home.Env(cli.Variables(m)...)
	var out bytes.Buffer
	session.Stdout, session.Stderr = &out, &out
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	d.Wait(browser.ID("choice-Allow always for this content"))
	if text := d.Text(browser.ID("ask-dialog")); !strings.Contains(text, `May tools of the extension "file-teller" run?`) || strings.Contains(text, "Allow once") {
		t.Errorf("the page asks:\n%s", text)
	}
	d.Click(browser.ID("choice-Allow always for this content"))
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	case <-time.After(second(120)):
		_ = session.Process.Kill()
		t.Fatal("the session does not end")
	}
	var first, answered, told string
	for _, r := range m.Requests() {
		data, err := json.Marshal(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(data)
		}
		if got := r.Results(); len(got) > 0 && got[len(got)-1].Name == asks {
			answered = got[len(got)-1].Response.Output
		} else if len(got) > 0 && got[len(got)-1].Name == tells && strings.Contains(string(data), `"name":"`+tells+`"`) {
			told = got[len(got)-1].Response.Output
		}
	}
	if !strings.Contains(first, "1 installed extension waits for the user's consent") || !strings.Contains(first, `"`+asks+`"`) || strings.Contains(first, "file-teller") || strings.Contains(first, "tellFile") {
		t.Errorf("the first request: %.5000s", first)
	}
	if !strings.Contains(answered, "The user agreed.") || !strings.Contains(answered, "tool tellFile()") {
		t.Errorf("the user's answer: %q", answered)
	}
	if !strings.Contains(told, "what is in the file") {
		t.Errorf("the tool's result: %q", told)
	}
}
