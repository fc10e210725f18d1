package lsp_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
	"github.com/pollux-companion/pollux/internal/rpc"
)

const (
	before = "one\ntwo\nthree\nfour\nfive\n"
	after  = "one\ntwo\nthree\nfour\nFIVE\n"
)

// A disk has one file.
type disk struct {
	mu   sync.Mutex
	text string
}

func (d *disk) Read(string) review.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	return review.File{Text: d.text, Exists: true}
}

func (d *disk) write(text string) { d.mu.Lock(); defer d.mu.Unlock(); d.text = text }

// types is an edit of the user's in the fake editor, said at once.
func (e *editor) types(d *review.Diff, version int, text string) {
	e.typesUnsaid(d, text)
	e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": version, "content": text})
}

func (e *editor) typesUnsaid(d *review.Diff, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.texts[d.ID()] = text
}

// accepts is the decision in a plugin of version 1, which closes its view first.
func (e *editor) accepts(d *review.Diff) {
	e.mu.Lock()
	text := e.texts[d.ID()]
	delete(e.texts, d.ID())
	e.mu.Unlock()
	e.peer.Notify("pollux/diffResolved", obj{"diffId": d.ID(), "outcome": "accepted", "content": text})
}

// following starts an editor of a version that shows a proposal for a file.
func following(t *testing.T, version int) (*editor, *disk, *reviewtest.Owner, *review.Diff) {
	t.Helper()
	files := &disk{text: before}
	e := start(t, rpc.Lines, func(view review.View) *review.Registry {
		return review.New(review.Options{View: view, Files: files, ShowTimeout: patience, ContentTimeout: patience})
	})
	e.hello(obj{"version": version})
	owner := &reviewtest.Owner{Name: "a"}
	d := owner.Propose(t, e.reg, "/p/a", before, after)
	return e, files, owner, d
}

// SPEC F-13, with a plugin of version 1: what has changed is shown anew, and
// an acceptance that came over it is answered by showing it.
func TestFileChangesUnderVersion1(t *testing.T) {
	for name, told := range map[string]bool{"and is told": true, "and nobody tells": false} {
		t.Run(name, func(t *testing.T) {
			e, files, owner, d := following(t, 1)
			e.typesUnsaid(d, strings.Replace(after, "three", "THREE", 1)) // held back by the plugin's throttle
			files.write(strings.Replace(before, "one", "ONE", 1))
			if told {
				e.reg.Look("/p/a")
			} else {
				e.accepts(d)
			}
			want := strings.NewReplacer("one", "ONE", "three", "THREE").Replace(after)
			e.until("the newest", func() bool { return e.text(d.ID()) == want })
			var p struct {
				Old  string `json:"oldText"`
				Base int    `json:"baseVersion"`
			}
			if err := json.Unmarshal(e.last("pollux/openDiff"), &p); err != nil || p.Old != strings.Replace(before, "one", "ONE", 1) || p.Base != 1 {
				t.Errorf("shown on %q in version %d, %v", p.Old, p.Base, err)
			}
			e.heard("window/showMessage")
			if len(owner.Told()) > 0 {
				t.Fatal("accepted")
			}
			e.drain()
			e.accepts(d)
			if o := owner.ExpectTold(t, review.Accepted)[0].Outcome; o.Content != want {
				t.Errorf("accepted %q", o.Content)
			}
		})
	}
}

// SPEC F-13: a conflict waits for an explicit word, which a plugin of version 1 is asked for.
func TestConflictUnderVersion1(t *testing.T) {
	theirs := strings.Replace(before, "five", "5", 1)
	for choice, want := range map[string]string{"Keep the proposal": after, "Take the file's lines": theirs, "Look again": "", "": ""} {
		t.Run(choice, func(t *testing.T) {
			e, files, owner, d := following(t, 1)
			e.on("pollux/ask", func(json.RawMessage) (any, error) {
				if choice == "" {
					return nil, errors.New("busy")
				}
				return obj{"choice": choice}, nil
			})
			files.write(theirs)
			e.accepts(d) // says that it has changed, shows it, and keeps the proposal
			e.until("the newest", func() bool { return e.text(d.ID()) == after })
			e.drain()
			e.accepts(d)
			if want == after {
				if o := owner.ExpectTold(t, review.Accepted)[0].Outcome; o.Content != want {
					t.Errorf("accepted %q", o.Content)
				}
				return
			}
			if want == "" {
				want = after
			}
			e.heard("pollux/ask")
			e.until("the diff again", func() bool { return e.text(d.ID()) == want })
			if len(owner.Told()) > 0 {
				t.Error("accepted")
			}
		})
	}
}

// SPEC F-13, F-10 with a plugin of version 2: it is told what is newer, keeps
// its view, and names what it has shown.
func TestFollowsInVersion2(t *testing.T) {
	e, files, owner, d := following(t, 2)
	resolve := func(outcome string, version, base int, content string) error {
		_, err := e.try("pollux/resolveDiff", obj{"diffId": d.ID(), "version": version, "baseVersion": base, "outcome": outcome, "content": content})
		return err
	}
	var newer struct {
		Version  int    `json:"version"`
		Base     int    `json:"baseVersion"`
		Old      string `json:"oldText"`
		Content  string `json:"content"`
		Conflict *struct {
			Reason string `json:"reason"`
			Places []struct {
				Start, End int
				Text       string
			} `json:"places"`
		} `json:"conflict"`
	}
	tell := func(method string, ok func() bool) {
		t.Helper()
		e.until(method, func() bool {
			newer.Conflict = nil
			return json.Unmarshal(e.last(method), &newer) == nil && ok()
		})
	}
	files.write("0\n" + before)
	if err := resolve("accepted", 0, 0, after); err == nil || !strings.Contains(err.Error(), "file has changed") {
		t.Errorf("accepted over a change: %v", err)
	}
	tell("pollux/didChangeBase", func() bool { return newer.Base == 1 })
	if newer.Old != "0\n"+before || newer.Content != "0\n"+after || newer.Conflict != nil {
		t.Errorf("%+v", newer)
	}
	// Both edit at once: the other view's edit is told, the plugin's comes from before.
	if _, err := e.reg.Edit(d.ID(), review.Edit{Text: "00\n" + after}); err != nil {
		t.Fatal(err)
	}
	e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": 1, "from": newer.Version, "content": "0\n" + after + "six\n"})
	// When the other's had been told before the plugin's came, the plugin may have left all of that alone: the file is told again as well.
	e.until("the merged text", func() bool {
		for _, method := range []string{"pollux/didChangeProposal", "pollux/didChangeBase"} {
			if json.Unmarshal(e.last(method), &newer) == nil && newer.Content == "00\n"+after+"six\n" {
				return true
			}
		}
		return false
	})
	// A conflict, shown by its lines.
	files.write("0\n" + strings.Replace(before, "five", "5", 1))
	e.reg.Look("/p/a")
	tell("pollux/didChangeBase", func() bool { return newer.Base == 2 && newer.Conflict != nil })
	if p := newer.Conflict.Places; len(p) != 1 || p[0].Start != 5 || p[0].Text != "5\n" {
		t.Errorf("%+v", newer.Conflict)
	}
	if err := resolve("accepted", newer.Version, 2, newer.Content); err == nil || !strings.Contains(err.Error(), "keep the proposal") {
		t.Errorf("accepted over a conflict: %v", err)
	}
	if err := resolve("keep", newer.Version, 1, newer.Content); err == nil {
		t.Error("a conflict that was not shown is ended")
	}
	if err := resolve("keep", newer.Version, 2, newer.Content); err != nil {
		t.Error(err)
	}
	mine := newer.Content + "seven\n"
	e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": 2, "from": newer.Version, "content": mine})
	if err := resolve("accepted", newer.Version, 2, mine); err != nil {
		t.Error(err)
	}
	if o := owner.ExpectTold(t, review.Accepted)[0].Outcome; o.Content != mine {
		t.Errorf("accepted %q", o.Content)
	}
	if e.last("pollux/closeDiff") != nil {
		t.Error("a view that the plugin closes is closed")
	}
}

// SPEC F-13: what the user takes from the file is a part of the proposal, and still waits.
func TestTakesTheFilesLines(t *testing.T) {
	e, files, owner, d := following(t, 2)
	theirs := strings.Replace(before, "five", "5", 1)
	files.write(theirs)
	e.reg.Look("/p/a")
	e.heard("pollux/didChangeBase")
	if _, err := e.try("pollux/resolveDiff", obj{"diffId": d.ID(), "version": 0, "baseVersion": 1, "outcome": "take"}); err != nil {
		t.Fatal(err)
	}
	e.until("the lines", func() bool { return strings.Contains(string(e.last("pollux/didChangeProposal")), `5\n`) })
	if now := d.Now(); now.Text != theirs || now.Conflict != nil || len(owner.Told()) > 0 {
		t.Errorf("%+v", now)
	}
	if _, err := e.try("pollux/resolveDiff", obj{"diffId": d.ID(), "version": d.Now().Seen.Text, "baseVersion": 1, "outcome": "rejected"}); err != nil {
		t.Error(err)
	}
	owner.ExpectTold(t, review.Rejected)
}

// SPEC F-13, F-10: one who types on while others edit is merged with each of them; what was typed meanwhile comes from the
// editor's own last text. The end of a conflict is told, whoever ended it.
func TestTypesWhileItFollows(t *testing.T) {
	e, files, _, d := following(t, 2)
	typed := after
	for i, word := range []string{"t", "ty", "typ", "typed"} {
		typed = strings.Replace(after, "three", "three "+word, 1)
		e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": i + 1, "from": 0, "content": typed})
		e.until(word, func() bool { return strings.Contains(d.Now().Text, "three "+word+"\n") })
		files.write(strings.Repeat("0\n", i+1) + before)
		e.reg.Look("/p/a")
	}
	want := strings.Repeat("0\n", 4) + typed
	e.until("all of it", func() bool { return d.Now().Text == want })
	if now := d.Now(); now.Conflict != nil {
		t.Errorf("%+v", now.Conflict)
	}
	files.write(strings.Repeat("0\n", 4) + strings.Replace(before, "five", "5", 1))
	e.reg.Look("/p/a")
	e.until("the conflict", func() bool { return strings.Contains(string(e.last("pollux/didChangeBase")), "places") })
	if err := e.reg.Resolve(d.ID(), d.Now().Seen, false); err != nil {
		t.Fatal(err)
	}
	e.until("its end", func() bool { return strings.Contains(string(e.last("pollux/didChangeProposal")), `"conflict":null`) })
}

// SPEC F-13: an update says which edits of the editor's are in it, and an edit that has met one on the way is answered with both
// merged, the file beside it included. One that was made of the newest is not answered.
func TestSaysWhichEditIsInAnUpdate(t *testing.T) {
	e, files, _, d := following(t, 2)
	var told struct {
		Edit    int    `json:"edit"`
		Version int    `json:"version"`
		Base    int    `json:"baseVersion"`
		Content string `json:"content"`
	}
	updates := func() (n int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.got {
			if strings.HasPrefix(c.Method, "pollux/didChange") && c.Method != "pollux/didChangeStatus" {
				n++
			}
		}
		return n
	}
	base := func(edit int) {
		t.Helper()
		e.until("an update", func() bool {
			return json.Unmarshal(e.last("pollux/didChangeBase"), &told) == nil && told.Edit == edit
		})
	}
	files.write("0\n" + before)
	e.reg.Look("/p/a")
	e.heard("pollux/didChangeBase")
	base(0)
	e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": 1, "from": 0, "content": after + "typed\n"})
	base(1)
	if told.Base != 1 || told.Content != "0\n"+after+"typed\n" {
		t.Errorf("the answer is %+v", told)
	}
	n := updates()
	e.peer.Notify("pollux/didChangeDiff", obj{"diffId": d.ID(), "version": 2, "from": told.Version, "content": told.Content + "more\n"})
	e.drain()
	if updates() != n || d.Now().Text != "0\n"+after+"typed\nmore\n" {
		t.Errorf("told again of %q", d.Now().Text)
	}
}

// SPEC F-13: what the editor left alone is not taken for removed by its user when the agent takes the diff back.
func TestTakenBackWithAnUpdateOnItsWay(t *testing.T) {
	e, files, owner, d := following(t, 2)
	e.on("pollux/closeDiff", func(json.RawMessage) (any, error) {
		return obj{"content": after + "typed\n", "version": 0}, nil
	})
	files.write("0\n" + before)
	e.reg.Look("/p/a")
	e.heard("pollux/didChangeBase")
	o, err := e.reg.Withdraw(t.Context(), owner, d.Proposal().Key)
	if err != nil || o.Content != "0\n"+after+"typed\n" {
		t.Errorf("taken back %q, %v", o.Content, err)
	}
}

// SPEC L-3: an editor may decide before pollux has its answer that it shows the diff. It hears of the end of the diff only by the
// answer to its decision, once that is written down.
func TestDecidesBeforeItHasAnsweredL3(t *testing.T) {
	for range 20 { // the end of the wait for the answer, or the answer, comes first
		decidesBeforeItHasAnswered(t)
	}
}

func decidesBeforeItHasAnswered(t *testing.T) {
	t.Helper()
	e := full(t)
	resolved := make(chan error, 1)
	e.on("pollux/openDiff", func(params json.RawMessage) (any, error) {
		var p struct {
			ID  string `json:"diffId"`
			New string `json:"newText"`
		}
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		d, _ := e.reg.Get(p.ID)
		go func() {
			_, err := e.try("pollux/resolveDiff", obj{"diffId": p.ID, "outcome": "accepted", "content": p.New, "edit": 1})
			resolved <- err
		}()
		<-d.Ended()
		return obj{"opened": true}, nil
	})
	owner, delivering, written := &reviewtest.Owner{Name: "a"}, make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = e.reg.Open(t.Context(), owner, review.Proposal{Key: "/p/a", Path: "/p/a", New: after}, func(d *review.Diff) {
			close(delivering)
			<-written
			owner.Deliver(d)
		})
	}()
	<-delivering
	e.drain()                         // an agent that takes no answer holds up no other message of the editor's
	time.Sleep(50 * time.Millisecond) // what is wrong would be said by now
	if said := e.last("pollux/closeDiff"); said != nil {
		t.Errorf("closed before the decision was written down: %s", said)
	}
	select {
	case err := <-resolved:
		close(written)
		t.Fatalf("answered (%v) before the decision was written down", err)
	default:
	}
	close(written)
	if err := <-resolved; err != nil {
		t.Error(err)
	}
	owner.ExpectTold(t, review.Accepted)
}

// SPEC F-7: a proposal that is replaced goes from the editor before the next one of its file comes, so that nobody decides the old one.
func TestReplacedGoesFirstF7(t *testing.T) {
	for range 50 {
		e, owner := full(t), &reviewtest.Owner{Name: "a"}
		for _, content := range []string{"1", "2"} {
			if _, err := e.open(owner, review.Proposal{Key: "/p/a", Path: "/p/a", New: content}); err != nil {
				t.Fatal(err)
			}
		}
		e.until("the first to go", func() bool { return e.last("pollux/closeDiff") != nil })
		e.mu.Lock()
		diffs := slices.DeleteFunc(slices.Clone(e.came), func(method string) bool { return !strings.HasSuffix(method, "Diff") })
		e.mu.Unlock()
		if want := []string{"pollux/openDiff", "pollux/closeDiff", "pollux/openDiff"}; !slices.Equal(diffs, want) {
			t.Fatalf("the editor was told %v", diffs)
		}
	}
}
