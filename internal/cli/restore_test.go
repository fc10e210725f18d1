//go:build unix

package cli

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/editor/web/webtest"
	"github.com/pollux-companion/pollux/internal/pace"
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
	cli := newCLIApart(t, first)
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
	say(t, openPage(t, second), acceptance(diffs[0]))
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
	cli := newCLIApart(t, l)
	path := filepath.Join(w.project, "f")
	cli.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"x"}}}`, path))
	diffs, err := w.control().Diffs(t.Context())
	if err != nil || len(diffs) != 1 {
		t.Fatalf("%+v, %v", diffs, err)
	}
	say(t, page, acceptance(diffs[0]))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for answer := ""; !strings.Contains(answer, `"id":7`); { // whoever decided is told when it is in the journal
		_, data, err := page.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		answer = string(data)
	}
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

// SPEC L-3, T-6: two companions of one folder are killed with a proposal of the same file open in each. Both are back with two starts: each proposal
// is open once, and each CLI hears of its own, once.
func TestTwoCompanionsKilledL3(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(w.project, "f")
	clis := map[int]*session{}
	var killed []*live
	for i := range 2 {
		l := w.serve()
		openPage(t, l)
		cli := newCLI(t, l)
		cli.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":"of CLI %d"}}}`, path, i))
		clis[l.Port], killed = cli, append(killed, l)
	}
	for _, l := range killed {
		l.signal(syscall.SIGKILL)
	}
	seen := map[string]bool{}
	streams := map[*live]*bufio.Reader{}
	for range 2 {
		l := w.serve()
		cli := clis[l.Port]
		if cli == nil || !l.Resumed {
			t.Fatalf("a companion is at port %d, resumed: %v; the CLIs know %v", l.Port, l.Resumed, slices.Sorted(maps.Keys(clis)))
		}
		delete(clis, l.Port)
		cli.companion(l)
		streams[l] = cli.stream()
		diffs, err := w.control().Diffs(t.Context()) // of the newest
		if err != nil || len(diffs) != 1 || seen[diffs[0].ID] {
			t.Fatalf("%+v, %v", diffs, err)
		}
		seen[diffs[0].ID] = true
	}
	for l, stream := range streams {
		l.signal(syscall.SIGTERM)
		if got := expect(t, stream, "ide/diffRejected"); strings.Count(got, "ide/diffRejected") != 1 {
			t.Errorf("heard %s", got)
		}
	}
}

// SPEC A-4, L-3: texts that are open take their size once on the disk, and keep nobody waiting after a kill: the companion serves, and
// then reads them.
func TestLargeDiffsComeBackA4(t *testing.T) {
	pace.NotRaced(t, "it measures")
	t.Parallel()
	w := newWorld(t)
	l := w.serve()
	page := openPage(t, l)
	page.SetReadLimit(-1)
	go func() { // or it is in the way
		for {
			if _, _, err := page.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	cli := newCLI(t, l)
	const n, size = 4, 4 << 20
	for i := range n {
		cli.call(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":%q,"newContent":%q}}}`,
			filepath.Join(w.project, fmt.Sprint("f", i)), strings.Repeat(fmt.Sprint(i, " <tag>\n"), size/8)))
	}
	var disk int64
	files, _ := filepath.Glob(filepath.Join(w.state, "pollux", "resume", "*.diffs", "*"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			disk += info.Size()
		}
	}
	if disk < n*size || disk > n*size*11/10 {
		t.Errorf("%d diffs of %d bytes take %d on the disk", n, size, disk)
	}
	l.signal(syscall.SIGKILL)
	watch := pace.Start(t)
	w.serve()
	if took := watch.Took(); took > pace.Slack*300*time.Millisecond {
		t.Errorf("it serves after %v", took)
	}
	if diffs, err := w.control().Diffs(t.Context()); err != nil || len(diffs) != n {
		t.Errorf("%d are back, %v", len(diffs), err)
	}
}
