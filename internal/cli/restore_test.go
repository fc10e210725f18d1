//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
)

// openPage enters the editor page with its one-time code, as a browser does, and says hello.
func openPage(t *testing.T, l *live) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	origin, key := webtest.Login(t, l.Page)
	conn, err := webtest.Enter(origin, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	say(t, conn, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"clientId":"c"}}`)
	if _, data, err := conn.Read(ctx); err != nil || !strings.Contains(string(data), `"result"`) {
		t.Fatalf("hello: %s, %v", data, err)
	}
	return conn
}

func say(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// SPEC L-3: a diff that was open and edited when the companion was killed returns afterwards, and its outcome reaches
// the session that waits for it.
func TestOpenDiffSurvivesKillL3(t *testing.T) {
	w := newWorld(t)
	first := w.serve()
	page := openPage(t, first)
	cli := newCLI(t, first)
	path := filepath.Join(w.project, "new.txt")
	cli.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"proposed\n"}}}`, path))
	diffs, err := w.control().Diffs(t.Context())
	if err != nil || len(diffs) != 1 || diffs[0].Path != path {
		t.Fatalf("%+v, %v", diffs, err)
	}
	id := diffs[0].ID
	say(t, page, fmt.Sprintf(`{"jsonrpc":"2.0","method":"diff/edit","params":{"id":%q,"text":"proposed and edited\n","clientId":"c"}}`, id))
	eventually(t, "the edit in the journal", func() bool {
		files, _ := filepath.Glob(filepath.Join(w.state, "pollux", "resume", "*.diffs", "log"))
		if len(files) != 1 {
			return false
		}
		info, err := os.Stat(files[0])
		data, err2 := os.ReadFile(files[0])
		return err == nil && err2 == nil && info.Mode().Perm() == 0o600 && strings.Contains(string(data), "proposed and edited")
	})
	first.signal(syscall.SIGKILL)

	second := w.serve()
	cli.companion(second)
	stream := cli.stream()
	diffs, err = w.control().Diffs(t.Context())
	if err != nil || len(diffs) != 1 || diffs[0].ID != id || !diffs[0].Edited || diffs[0].Path != path {
		t.Fatalf("after the restart: %+v, %v", diffs, err)
	}
	say(t, openPage(t, second), acceptance(diffs[0])) // the test is the agent, which cannot decide there
	got := expect(t, stream, "ide/diffAccepted")
	if last := got[strings.LastIndex(got, "data:"):]; !strings.Contains(last, `proposed and edited\n`) || !strings.Contains(last, path) {
		t.Errorf("the session heard %s", last)
	}
	second.signal(syscall.SIGTERM)
	if left, _ := filepath.Glob(filepath.Join(w.state, "pollux", "resume", "*.diffs", "*")); len(left) > 0 {
		t.Errorf("left to restore: %v", left)
	}
	if exists(path) {
		t.Error("the companion wrote the file (SPEC F-8)")
	}
}

// SPEC T-6, L-3: an outcome decided while the CLI's stream was down survives a kill -9 of the companion, even two,
// and arrives once.
func TestUnsentOutcomeSurvivesKillT6(t *testing.T) {
	w := newWorld(t)
	l := w.serve()
	page := openPage(t, l)
	cli := newCLI(t, l)
	path := filepath.Join(w.project, "f")
	cli.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"x"}}}`, path))
	diffs, err := w.control().Diffs(t.Context())
	if err != nil || len(diffs) != 1 {
		t.Fatalf("%+v, %v", diffs, err)
	}
	say(t, page, acceptance(diffs[0]))
	eventually(t, "the decision", func() bool {
		diffs, err := w.control().Diffs(t.Context())
		return err == nil && len(diffs) == 0
	})
	for range 2 {
		l.signal(syscall.SIGKILL)
		l = w.serve()
		if diffs, err := w.control().Diffs(t.Context()); err != nil || len(diffs) != 0 {
			t.Fatalf("decided, and open again: %+v, %v", diffs, err)
		}
	}
	cli.companion(l)
	if got := expect(t, cli.stream(), "ide/diffAccepted"); strings.Count(got, "ide/diffAccepted") != 1 {
		t.Errorf("heard %s", got)
	}
}

// SPEC L-1: an orderly stop rejects open diffs, delivers that, and leaves nothing to restore.
func TestOpenDiffIsRejectedAtStopL1(t *testing.T) {
	w := newWorld(t)
	first := w.serve()
	openPage(t, first)
	cli := newCLI(t, first)
	stream := cli.stream()
	cli.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"x"}}}`, filepath.Join(w.project, "f")))
	first.signal(syscall.SIGTERM)
	expect(t, stream, "ide/diffRejected")
	if left, _ := filepath.Glob(filepath.Join(w.state, "pollux", "resume", "*.diffs", "*")); len(left) > 0 {
		t.Errorf("left to restore: %v", left)
	}
	second := w.serve()
	if diffs, err := w.control().Diffs(t.Context()); err != nil || len(diffs) != 0 || !second.Resumed {
		t.Errorf("%+v, %v", diffs, err)
	}
}

// acceptance is a page's message when its user accepts a diff unchanged.
func acceptance(d control.Diff) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"diff/accept","params":{"id":%q,"version":%d,"base":%d}}`, d.ID, d.Version, d.Base)
}
