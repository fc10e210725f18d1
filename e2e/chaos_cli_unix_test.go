//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// A chaosCLI is one session of a CLI's.
type chaosCLI struct {
	*rawCLI
	x     *chaos
	dead  bool      // killed for good; guarded by x.mu
	late  time.Time // when the stream of the moment last said what closeDiff had answered; guarded by x.mu
	drop  context.CancelFunc
	ended chan struct{}
}

func tokenOf(t *testing.T, c *companion) string {
	t.Helper()
	data, err := os.ReadFile(c.DiscoveryFile)
	var file struct{ AuthToken string }
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.AuthToken
}

func (x *chaos) newCLI(c chaosLife) {
	// The token is that of this start: an older one opens no session (SPEC A-1).
	x.cli = &chaosCLI{rawCLI: newRawCLI(x.way, c.port, c.token), x: x, ended: make(chan struct{})}
	x.t.Cleanup(x.cli.client.CloseIdleConnections)
	if err := x.cli.join(x.ctx); err != nil {
		x.t.Fatal(err)
	}
	go x.cli.stay()
}

// killCLI ends the CLI with its diffs open; nobody may hear of them any more.
func (x *chaos) killCLI() {
	x.mu.Lock()
	x.cli.dead = true
	x.killed++
	x.cli.drop()
	x.mu.Unlock()
	<-x.cli.ended
}

// stay keeps a stream open, and comes back with what it has read.
func (cli *chaosCLI) stay() {
	defer close(cli.ended)
	for cli.x.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(cli.x.ctx)
		cli.x.mu.Lock()
		dead := cli.dead
		cli.drop, cli.late = cancel, time.Time{} // by who has the lock
		cli.x.mu.Unlock()
		if dead {
			cancel()
			return
		}
		if status := cli.listen(ctx, cli.notified); status != 0 && status != http.StatusOK && status != http.StatusServiceUnavailable && cli.x.ctx.Err() == nil {
			cli.x.t.Errorf("the stream: %d", status)
		}
		cancel()
		cli.x.mu.Lock()
		if !cli.late.IsZero() && time.Since(cli.late) > second(2) {
			cli.x.t.Error("an outcome was heard after it was taken back, on a stream that went on")
		}
		cli.x.mu.Unlock()
		time.Sleep(time.Duration(cli.x.n(20)) * time.Millisecond)
	}
}

func (cli *chaosCLI) notified(data string) {
	var m struct {
		Method string
		Params struct{ FilePath, Content string }
	}
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		cli.x.t.Errorf("%s: %v", data, err)
	}
	if m.Method != accepted && m.Method != rejected {
		return
	}
	cli.x.mu.Lock()
	defer cli.x.mu.Unlock()
	f := cli.x.diffs[m.Params.FilePath]
	if f == nil {
		cli.x.t.Errorf("an outcome of nothing: %s", data)
		return
	}
	word := ""
	if m.Method == accepted {
		word = m.Params.Content
	}
	f.heard, f.gone = append(f.heard, word), time.Now()
	cli.x.heard++
	switch {
	case f.cli != cli:
		cli.x.t.Errorf("%s: heard by another session", f.path)
	case len(f.heard) > 1:
		cli.x.t.Errorf("%s: heard twice: %q", f.path, f.heard)
	case f.takenBack && word != "" && word == f.final && slices.Contains(f.tried, word):
		// It was sent on a stream that ended before closeDiff, which could not know that it would be heard, and answered the same.
		cli.late = time.Now()
	case f.takenBack:
		cli.x.t.Errorf("%s: heard after it was taken back", f.path)
	case f.decided != nil && *f.decided != word:
		cli.x.t.Errorf("%s: decided %q, heard %q", f.path, brief(*f.decided), brief(word))
	case f.decided == nil && !slices.Contains(f.tried, word):
		cli.x.t.Errorf("%s: heard %q, which nobody decided", f.path, brief(word))
	}
}

// propose is the CLI: it opens diffs and takes some back.
func (x *chaos) propose(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(x.n(5000)) * time.Microsecond)
		x.mu.Lock()
		open := 0
		var mine []*fate
		for _, f := range x.diffs {
			if f.cli == x.cli && f.asked && len(f.heard) == 0 && !f.takenBack {
				open++
				if f.told && !f.takingBack {
					mine = append(mine, f)
				}
			}
		}
		x.mu.Unlock()
		switch {
		case len(mine) > 0 && x.n(6) == 0:
			x.takeBack(ctx, mine[x.n(len(mine))])
		case open < 20:
			x.openOne(ctx)
		}
	}
}

func (x *chaos) openOne(ctx context.Context) {
	proposed := x.text()
	x.mu.Lock()
	f := &fate{cli: x.cli, path: x.b.path(fmt.Sprintf("f%d.txt", len(x.diffs))), proposed: proposed, text: proposed, asked: true}
	x.diffs[f.path] = f
	if x.leaving {
		f.tried = []string{""}
	}
	x.mu.Unlock()
	text, refused, err := f.cli.tool(ctx, "openDiff", map[string]any{"filePath": f.path, "newContent": proposed})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err != nil: // it may be open or not
	case refused && (x.leaving || strings.Contains(text, "no editor page is open")):
		f.asked = false // the reviewer is not there yet, or the editor has gone
	case refused:
		x.t.Errorf("openDiff: %s", text)
	default:
		f.told = true
		x.opened++
	}
}

func (x *chaos) takeBack(ctx context.Context, f *fate) {
	x.mu.Lock()
	f.takingBack = true
	x.mu.Unlock()
	text, missing, err := f.cli.tool(ctx, "closeDiff", map[string]any{"filePath": f.path, "suppressNotification": true})
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if missing {
		if len(f.heard) == 0 && f.decided == nil && len(f.tried) == 0 {
			x.t.Errorf("%s: vanished: closeDiff says %s", f.path, text)
		}
		return
	}
	f.takenBack, f.gone = true, time.Now()
	x.withdrawn++
	var got struct{ Content, FinalContent *string }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		x.t.Errorf("closeDiff: %v", err)
		return
	}
	final := got.Content
	if final == nil {
		final = got.FinalContent
	}
	if final != nil {
		f.final = *final
	}
	if final == nil || *final != f.text && !slices.Contains(f.texts, *final) && !slices.Contains(f.tried, *final) && (f.decided == nil || *f.decided != *final) {
		x.t.Errorf("%s: altered: taken back with %q, it was %q", f.path, brief(text), brief(f.text))
	}
}
