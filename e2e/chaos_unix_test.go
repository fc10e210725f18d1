//go:build unix

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/control"
)

var (
	kills = flag.Int("kills", 60, "how many times TestChaos kills the companion")
	seed  = flag.Uint64("seed", 0, "the random numbers of TestChaos; 0 takes new ones")
)

// TestChaos kills the companion with SIGKILL at random moments while a CLI proposes, takes back and listens, and a
// reviewer edits and decides; the CLI's stream breaks as well, and CLIs die with their diffs open. An oracle that was told every answer holds the companion to
// it: what a CLI was told is open is open or decided; what the user wrote and decided, once the companion has said so,
// is so for good and reaches the CLI once, to the byte (SPEC L-3, T-6, F-3, F-6).
func TestChaos(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed %d", *seed)
	x := &chaos{t: t, b: b, random: rand.New(rand.NewPCG(*seed, 1)), diffs: map[string]*fate{}}
	x.ctx, x.cancel = context.WithCancel(t.Context())
	defer x.cancel()
	c := b.serve()
	x.way = elsewhere(t, c.Port)
	x.newCLI(c)
	for n := range *kills {
		x.life(c)
		if again := b.serve(); !again.Resumed || again.Port != c.Port {
			t.Fatalf("kill %d: port %d, resumed %v; it was %d", n, again.Port, again.Resumed, c.Port)
		} else {
			c = again
		}
		x.holds(c)
		if x.n(10) == 0 {
			x.killCLI()
			x.newCLI(c)
		}
		if t.Failed() {
			t.Fatalf("after %d kills", n+1)
		}
	}
	x.finish(c)
	x.mu.Lock()
	defer x.mu.Unlock()
	t.Logf("%d kills of the companion, %d broken streams, %d CLIs killed: %d diffs opened, %d edits, %d decisions and %d taken back that were confirmed, %d outcomes heard; none vanished, none twice, none altered",
		*kills, x.broken, x.killed, x.opened, x.edits, x.decisions, x.withdrawn, x.heard)
}

// chaos is the oracle, and what acts.
type chaos struct {
	t      *testing.T
	b      *bench
	ctx    context.Context
	cancel context.CancelFunc
	way    string // the address to which CLIs connect
	cli    *chaosCLI

	mu     sync.Mutex // guards the below
	random *rand.Rand
	diffs  map[string]*fate // by path

	opened, edits, decisions, withdrawn, heard, broken, killed int
}

// A fate is what the oracle knows of one diff.
type fate struct {
	cli            *chaosCLI
	path, proposed string
	asked          bool     // openDiff may have been heard
	told           bool     // openDiff was answered
	text           string   // the last edit that was confirmed
	texts          []string // edits since, which may have been heard
	decided        *string  // the decision that was confirmed: "" is a rejection
	tried          []string // decisions that may have been heard
	heard          []string
	takenBack      bool      // closeDiff was answered
	gone           time.Time // since when it is known to be over
	takingBack     bool      // closeDiff may have been heard
}

// A chaosCLI is one session of a CLI's.
type chaosCLI struct {
	x       *chaos
	url     string
	host    string // the companion's own name
	session string
	token   string
	dead    bool // killed for good; guarded by x.mu
	drop    context.CancelFunc
	last    string // Last-Event-ID
	ended   chan struct{}
}

func (x *chaos) n(n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.random.IntN(n)
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

func (x *chaos) newCLI(c *companion) {
	cli := &chaosCLI{x: x, url: "http://" + x.way + "/mcp", host: fmt.Sprintf("127.0.0.1:%d", c.Port), ended: make(chan struct{})}
	cli.token = tokenOf(x.t, c) // that of this start: an older one opens no session (SPEC A-1)
	header, _, err := cli.post(x.ctx, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	if err != nil {
		x.t.Fatal(err)
	}
	cli.session = header.Get("Mcp-Session-Id")
	x.cli = cli
	go cli.listen()
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

func (cli *chaosCLI) request(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, cli.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Host = cli.host
	req.Header.Set("Authorization", "Bearer "+cli.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if cli.session != "" {
		req.Header.Set("Mcp-Session-Id", cli.session)
	}
	if method == http.MethodGet && cli.last != "" {
		req.Header.Set("Last-Event-Id", cli.last)
	}
	return http.DefaultClient.Do(req)
}

func (cli *chaosCLI) post(ctx context.Context, body string) (http.Header, []byte, error) {
	res, err := cli.request(ctx, http.MethodPost, body)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	return res.Header, data, err
}

// listen keeps a stream open, and comes back with what it has read as the CLI's library does.
func (cli *chaosCLI) listen() {
	defer close(cli.ended)
	for cli.x.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(cli.x.ctx)
		cli.x.mu.Lock()
		dead := cli.dead
		cli.drop = cancel // by who has the lock
		cli.x.mu.Unlock()
		if dead {
			cancel()
			return
		}
		if res, err := cli.request(ctx, http.MethodGet, ""); err == nil {
			cli.read(res)
		}
		cancel()
		time.Sleep(time.Duration(cli.x.n(20)) * time.Millisecond)
	}
}

func (cli *chaosCLI) read(res *http.Response) {
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		if cli.x.ctx.Err() == nil && res.StatusCode != http.StatusServiceUnavailable {
			cli.x.t.Errorf("the stream: %s", res.Status)
		}
		return
	}
	var id, data string
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "":
			if data != "" {
				cli.notified(data)
			}
			if id != "" {
				cli.last = id
			}
			id, data = "", ""
		}
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
	case f.takenBack:
		cli.x.t.Errorf("%s: heard after it was taken back", f.path)
	case f.decided != nil && *f.decided != word:
		cli.x.t.Errorf("%s: decided %q, heard %q", f.path, brief(*f.decided), brief(word))
	case f.decided == nil && !slices.Contains(f.tried, word):
		cli.x.t.Errorf("%s: heard %q, which nobody decided", f.path, brief(word))
	}
}

// life lets everybody act for a random while.
func (x *chaos) life(c *companion) {
	ctx, cancel := context.WithCancel(x.ctx)
	var all sync.WaitGroup
	all.Go(func() { x.propose(ctx) })
	all.Go(func() { x.review(ctx) })
	all.Go(func() { x.disturb(ctx, c) })
	time.Sleep(time.Duration(x.n(300_000)) * time.Microsecond) // the CLI's process is known after 100 ms, and nothing decided before
	defer all.Wait()
	defer cancel() // after the kill: nobody is asked to stop before it
	c.end(syscall.SIGKILL)
}

func (x *chaos) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	size := 1 + x.random.IntN(200)
	switch x.random.IntN(10) {
	case 0:
		size = 40_000
	case 1:
		size = 5_000
	}
	line := fmt.Sprintf("ä %d \u2028\r\n", x.random.Uint64())
	return strings.Repeat(line, 1+size/len(line))
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

func (x *chaos) tool(ctx context.Context, cli *chaosCLI, name string, args map[string]any) (text string, isError bool, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return "", false, err
	}
	_, data, err := cli.post(ctx, string(body))
	if err != nil {
		return "", false, err
	}
	var answer struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error *struct{ Message string }
	}
	if err = json.Unmarshal(data, &answer); err == nil && answer.Error != nil {
		err = fmt.Errorf("%s", answer.Error.Message)
	}
	if len(answer.Result.Content) > 0 {
		text = answer.Result.Content[0].Text
	}
	return text, answer.Result.IsError, err
}

func (x *chaos) openOne(ctx context.Context) {
	proposed := x.text()
	x.mu.Lock()
	f := &fate{cli: x.cli, path: x.b.path(fmt.Sprintf("f%d.txt", len(x.diffs))), proposed: proposed, text: proposed, asked: true}
	x.diffs[f.path] = f
	x.mu.Unlock()
	text, refused, err := x.tool(ctx, f.cli, "openDiff", map[string]any{"filePath": f.path, "newContent": proposed})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err != nil: // it may be open or not
	case refused && strings.Contains(text, "no editor page is open"):
		f.asked = false // the reviewer is not there yet
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
	text, missing, err := x.tool(ctx, f.cli, "closeDiff", map[string]any{"filePath": f.path, "suppressNotification": true})
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
	if final == nil || *final != f.text && !slices.Contains(f.texts, *final) && !slices.Contains(f.tried, *final) && (f.decided == nil || *f.decided != *final) {
		x.t.Errorf("%s: altered: taken back with %q, it was %q", f.path, brief(text), brief(f.text))
	}
}

// reviewer finds the companion.
func (x *chaos) reviewer(ctx context.Context) (*control.Client, error) {
	run := filepath.Join(x.b.home.Dir, ".local", "state", "pollux", "run")
	return control.Find(ctx, []string{run}, x.b.dir)
}

// review is the user: edits and decisions.
func (x *chaos) review(ctx context.Context) {
	client, err := x.reviewer(ctx)
	if err != nil {
		return // killed already
	}
	defer client.Close()
	if client.Attach(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		time.Sleep(time.Duration(x.n(3000)) * time.Microsecond)
		asked := time.Now()
		diffs, err := client.Diffs(ctx)
		if err != nil {
			return
		}
		if len(diffs) == 0 {
			continue
		}
		d := diffs[x.n(len(diffs))]
		if f := x.seen(d, asked); f != nil {
			x.act(ctx, client, d.ID, f, x.n(10))
		}
	}
}

// seen finds the diff that the companion has shown since asked, and holds it against what was known then.
func (x *chaos) seen(d control.Diff, asked time.Time) *fate {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.diffs[d.Path]
	switch {
	case f == nil:
		x.t.Errorf("a diff of nothing: %s", d.Path)
	case f.gone.After(asked):
	case f.decided != nil:
		x.t.Errorf("%s: open again after it was decided", d.Path)
	case f.takenBack:
		x.t.Errorf("%s: open again after it was taken back", d.Path)
	case len(f.heard) > 0:
		x.t.Errorf("%s: open again after its outcome was heard", d.Path)
	default:
		return f
	}
	return nil
}

func (x *chaos) act(ctx context.Context, client *control.Client, id string, f *fate, what int) {
	text := x.text()
	switch {
	case what < 6:
		x.try(func() { f.texts = append(f.texts, text) })
		if _, err := client.Edit(ctx, id, text, nil); err == nil {
			x.try(func() { f.text, f.texts = text, nil; x.edits++ })
		}
		return
	case what < 7:
		x.try(func() { f.tried = append(f.tried, "") })
		x.decide(ctx, client, f, control.Decision{ID: id}, "")
	case what < 8:
		x.try(func() { f.tried = append(f.tried, text) })
		x.decide(ctx, client, f, control.Decision{ID: id, Accept: true, Content: &text}, text)
	default: // as it stands
		text, _, err := client.Text(ctx, id)
		if err != nil {
			return
		}
		x.try(func() {
			if text != f.text && !slices.Contains(f.texts, text) {
				x.t.Errorf("%s: altered: it is %q and was %q", f.path, brief(text), brief(f.text))
			}
			f.tried = append(f.tried, text)
		})
		x.decide(ctx, client, f, control.Decision{ID: id, Accept: true}, text)
	}
}

func (x *chaos) try(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

func (x *chaos) decide(ctx context.Context, client *control.Client, f *fate, d control.Decision, word string) {
	open, err := client.Diffs(ctx)
	if i := slices.IndexFunc(open, func(o control.Diff) bool { return o.ID == d.ID }); err == nil && i >= 0 {
		d.Seen = control.Seen{Version: open[i].Version, Base: open[i].Base}
	}
	if client.Decide(ctx, d) != nil {
		return // it was taken back meanwhile, or nobody knows
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f.decided, f.gone = &word, time.Now()
	x.decisions++
}

// disturb breaks the CLI's stream, and now and then kills the CLI for good.
func (x *chaos) disturb(ctx context.Context, c *companion) {
	time.Sleep(time.Duration(x.n(30_000)) * time.Microsecond)
	switch x.n(12) {
	case 0, 1, 2:
		x.mu.Lock()
		x.broken++
		x.cli.drop()
		x.mu.Unlock()
	}
}

// holds compares what a companion has just brought back with what is known.
func (x *chaos) holds(c *companion) {
	client, err := x.reviewer(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	asked := time.Now()
	diffs, err := client.Diffs(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	open := map[string]string{}
	for _, d := range diffs {
		x.seen(d, asked)
		text, _, err := client.Text(x.ctx, d.ID)
		if err != nil {
			x.t.Fatal(err)
		}
		open[d.Path] = text
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.diffs {
		text, is := open[f.path]
		switch {
		case is && text != f.text && !slices.Contains(f.texts, text):
			x.t.Errorf("%s: altered: it is %q and was %q", f.path, brief(text), brief(f.text))
		case !is && f.told && f.decided == nil && len(f.tried) == 0 && !f.takingBack && len(f.heard) == 0 && !f.cli.dead:
			x.t.Errorf("%s: vanished", f.path)
		case is:
			f.text, f.texts = text, nil // what may have been heard was, or not
		}
		if is {
			f.tried, f.takingBack = nil, false
		}
	}
}

// finish decides what is open, and waits until the CLI has heard of everything.
func (x *chaos) finish(c *companion) {
	client, err := x.reviewer(x.ctx)
	if err != nil {
		x.t.Fatal(err)
	}
	defer client.Close()
	missing := func() (list []string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, f := range x.diffs {
			if f.told && !f.takenBack && len(f.heard) == 0 && !f.takingBack && !f.cli.dead {
				list = append(list, f.path)
			}
		}
		return list
	}
	for deadline := time.Now().Add(second(90)); len(missing()) > 0; time.Sleep(20 * time.Millisecond) {
		asked := time.Now()
		diffs, err := client.Diffs(x.ctx)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, d := range diffs {
			if f := x.seen(d, asked); f != nil {
				x.act(x.ctx, client, d.ID, f, 9)
			}
		}
		if time.Now().After(deadline) {
			x.t.Errorf("never heard: %v", missing())
			break
		}
	}
	x.cancel()
	<-x.cli.ended
}
