//go:build unix

package editors

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/agent"
	"github.com/pollux-companion/pollux/internal/control"
)

var (
	interleavings = flag.Int("interleavings", 3, "how many random interleavings TestNothingIsLost plays in each editor")
	firstSeed     = flag.Int("first", 0, "the seed of the first of them")
)

// TestNothingIsLost: whatever users of real editors, other programs, two agents, crashes and restarts do to two files and the
// proposals for them, every word that anybody has saved, or edited into a proposal, is in the file or in the history; what was typed
// into a file and not saved is in the editor (SPEC F-12, F-13, L-3, L-4).
func TestNothingIsLost(t *testing.T) {
	play(t, map[string]func(*testing.T, flavour){"interleavings": func(t *testing.T, f flavour) {
		for n := range *interleavings {
			if !t.Run(fmt.Sprint(*firstSeed+n), func(t *testing.T) { interleave(t, f, *firstSeed+n) }) {
				break
			}
		}
	}})
}

// A tangle is two files, the user of an editor, who has one of them open, two agents and whoever else writes the files. Each write has
// a word of its own.
type tangle struct {
	*bench
	r      *rand.Rand
	began  time.Time
	log    []string
	agents []*party
	words  int
	saved  []string // words that were saved to the disk or edited into a proposal
	edited []string // those of a proposal's since the editor was started
	typed  []string // words in the file's buffer that were not saved
	runs   bool     // the editor
}

// A party is one agent, which writes what was accepted a while later.
type party struct {
	*agent.Agent
	name  string
	file  string  // that it is at
	open  string  // the id of its proposal
	write *string // what it is to write
}

// tangled are the files; the user has the first one open.
var tangled = [2]string{"a.txt", "b.txt"}

// interleave plays one interleaving.
func interleave(t *testing.T, f flavour, seed int) {
	w := &tangle{bench: newBench(t, f, map[string]string{tangled[0]: "a\nb\nc\nd\ne\nf\n", tangled[1]: "a\nb\nc\nd\ne\nf\n"}), r: rand.New(rand.NewPCG(uint64(seed), 7)), began: time.Now()}
	if seed%4 > 0 {
		w.withKeeper()
	}
	t.Cleanup(w.endAll)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(w.log, "\n"))
		}
	}()
	w.starts()
	for _, name := range []string{"one", "two"} {
		w.agents = append(w.agents, &party{name: name, file: tangled[0]})
	}
	for range 25 {
		w.does()
		w.hears()
		if t.Failed() {
			return
		}
	}
	w.ends()
}

func (w *tangle) note(format string, args ...any) {
	w.now = fmt.Sprintf(format, args...)
	w.log = append(w.log, fmt.Sprintf("%6d ms  %s", time.Since(w.began).Milliseconds(), w.now))
	w.now += ": "
}

// word is what nobody has written before.
func (w *tangle) word(who string) string {
	w.words++
	return fmt.Sprintf("%s-%d.", who, w.words)
}

// change puts a word into a text: as a new line, or in the place of one that is nobody's word.
func (w *tangle) change(s, word string) string {
	lines := strings.SplitAfter(s, "\n")
	lines = lines[:len(lines)-1]
	i := w.r.IntN(len(lines) + 1)
	if i < len(lines) && w.r.IntN(2) == 0 && !strings.Contains(lines[i], "-") {
		lines[i] = word + "\n"
		return strings.Join(lines, "")
	}
	return strings.Join(lines[:i], "") + word + "\n" + strings.Join(lines[i:], "")
}

func (w *tangle) disk(file string) string {
	w.Helper()
	data, err := os.ReadFile(w.path(file))
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}

// awaited says whether an agent is about to write a file: no program could know of that.
func (w *tangle) awaited(file string) bool {
	for _, p := range w.agents {
		if p.write != nil && p.file == file {
			return true
		}
	}
	return false
}

// does has one thing happen.
func (w *tangle) does() {
	p := w.agents[w.r.IntN(len(w.agents))]
	k := w.r.IntN(100)
	if p.write == nil && p.open == "" && w.r.IntN(3) == 0 {
		w.proposes(p)
	}
	switch {
	case k < 14 && !w.awaited(p.file):
		w.others(p)
	case k < 34 && p.write != nil:
		w.writes(p)
	case k < 44 && p.open != "" && w.serving():
		w.note("%s takes its proposal back", p.name)
		p.CloseDiff(w.path(p.file))
		p.open = ""
	case k < 48 && w.runs:
		w.crashes()
	case k < 51 && w.runs:
		w.killed()
	case k < 56 && w.runs:
		w.quits()
	case !w.runs:
		if w.r.IntN(2) == 0 {
			w.starts()
		}
	case k < 75:
		w.jot()
	default:
		w.decides()
	}
	if w.r.IntN(2) == 0 {
		time.Sleep(time.Duration(w.r.IntN(300)) * time.Millisecond)
	}
}

// others write the file of an agent: often a line that its proposal has changed as well.
func (w *tangle) others(p *party) {
	word := w.word("disk")
	text, ok := w.clash(p, word)
	if !ok || w.r.IntN(2) == 0 {
		text = w.change(w.disk(p.file), word)
	}
	w.write(p.file, text)
	w.saved = append(w.saved, word)
	w.note("disk %s: %q", p.file, text)
}

// clash puts a word in the place of a line that an open proposal has changed as well, and that is nobody's word.
func (w *tangle) clash(p *party, word string) (text string, ok bool) {
	c := w.client()
	if c == nil || p.open == "" {
		return "", false
	}
	defer c.Close()
	proposed, _, err := c.Text(w.Context(), p.open)
	if err != nil {
		return "", false
	}
	lines := strings.SplitAfter(w.disk(p.file), "\n")
	for i, line := range lines {
		if line != "" && !strings.Contains(line, "-") && !strings.Contains("\n"+proposed, "\n"+line) {
			lines[i] = word + "\n"
			return strings.Join(lines, ""), true
		}
	}
	return "", false
}

// starts opens the editor.
func (w *tangle) starts() {
	w.note("the editor is opened")
	_ = os.Remove(filepath.Join(w.root, "n")) // Neovim does not listen where a killed one did
	_ = os.Remove(w.path(".#" + tangled[0]))  // a killed Emacs keeps its number until tmux waits for it, and its lock would ask a question
	w.open(tangled[0])
	w.runs = true
	w.edited = nil
}

// client is the companion's control channel, nil while none serves.
func (w *tangle) client() *control.Client {
	all := control.List(w.Context(), []string{filepath.Join(w.root, "r", "pollux"), filepath.Join(w.root, "s", "pollux", "run")})
	if len(all) == 1 {
		return all[0]
	}
	for _, c := range all {
		c.Close()
	}
	return nil
}

// serving says whether a companion serves.
func (w *tangle) serving() bool {
	c := w.client()
	if c == nil {
		return false
	}
	c.Close()
	files := w.files()
	return len(files) == 1 && serves(files[0])
}

// shown are the open proposals; ok is false while no companion serves.
func (w *tangle) shown() (diffs []control.Diff, ok bool) {
	c := w.client()
	if c == nil {
		return nil, false
	}
	defer c.Close()
	diffs, err := c.Diffs(w.Context())
	return diffs, err == nil
}

// joins connects an agent which has no session, or whose session hears nothing more.
func (w *tangle) joins(p *party) bool {
	if p.Agent != nil && !p.Lost() {
		return true
	}
	if !w.serving() {
		return false
	}
	if p.Agent != nil {
		w.note("%s starts anew", p.name)
		p.open = ""
	}
	p.Agent = w.connect()
	return true
}

func (w *tangle) proposes(p *party) {
	if p.open != "" || p.write != nil || !w.joins(p) || !w.serving() {
		return
	}
	before, ok := w.shown()
	if !ok {
		return
	}
	p.file = tangled[w.r.IntN(len(tangled))]
	text := w.change(w.disk(p.file), w.word(p.name))
	w.note("%s proposes %s %q", p.name, p.file, text)
	p.OpenDiff(w.path(p.file), text)
	diffs, ok := w.shown()
	if !ok {
		w.Fatal("no companion after a proposal")
	}
	for _, d := range diffs[len(before):] {
		p.open = d.ID
	}
}

func (w *tangle) writes(p *party) {
	w.write(p.file, *p.write)
	p.write = nil
	w.note("%s writes %s %q", p.name, p.file, w.disk(p.file))
}

// hears waits for the outcomes of what is open no more.
func (w *tangle) hears() {
	diffs, ok := w.shown()
	if !ok {
		return
	}
	open := map[string]bool{}
	for _, d := range diffs {
		open[d.ID] = true
	}
	for _, p := range w.agents {
		if p.open == "" || open[p.open] {
			continue
		}
		p.open = ""
		var o agent.Outcome
		heard := false
		w.until("the outcome for "+p.name, func() bool { o, heard = p.Heard(); return heard || p.Lost() })
		w.note("%s hears %s %q", p.name, o.Method, o.Content)
		if heard && o.Method == "ide/diffAccepted" {
			p.write = &o.Content
		}
	}
}

// inProposal waits until the user is in the file, or in a proposal, and returns whose that is; "" in the file.
func (w *tangle) inProposal() (file string) {
	w.Helper()
	at := ""
	w.until("the user to be somewhere", func() bool {
		w.answers()
		at = w.eval(w.place())
		return at == tangled[0] || w.proposed(at) != ""
	})
	return w.proposed(at)
}

// proposed is the file of the proposal at a place; "" where none is.
func (w *tangle) proposed(place string) string {
	for _, file := range tangled {
		if place == file+" <proposal>" {
			return file
		}
	}
	return ""
}

// answers says no to whatever would write over what others have written, and returns whether anything asked.
func (w *tangle) answers() bool {
	screen := w.tm.Screen()
	for question, answer := range w.questions() {
		if strings.Contains(screen, question) {
			w.note("the user answers %q to %q", answer, question)
			w.text(answer)
			w.tm.Until("the question's end", patience, func(s string) bool { return !strings.Contains(s, question) || strings.Contains(s, "Press ENTER") })
			if strings.Contains(w.tm.Screen(), "Press ENTER") {
				w.keys("Enter")
			}
			return true
		}
	}
	return false
}

// jot types a line where the user is, and finds out where that is.
func (w *tangle) jot() {
	w.inProposal()
	word := w.word("key")
	line := 1 + w.r.IntN(6)
	w.note("the user types %s below line %d", word, line)
	w.jots(line, word)
	w.until(word+" to stand somewhere", func() bool {
		asked, file := w.answers(), w.proposed(w.eval(w.place()))
		switch {
		case file != "" && strings.Contains(w.eval(w.proposal(file)), word) && w.proposed(w.eval(w.place())) == file:
			w.saved, w.edited = append(w.saved, word), append(w.edited, word)
			w.note("it is in the proposal")
			return true
		case strings.Contains(w.eval(w.buffer(tangled[0])), word):
			w.typed = append(w.typed, word)
			w.note("it is in the file's buffer")
			return true
		default:
			return asked
		}
	})
}

// decides has the user save or decide, wherever they are.
func (w *tangle) decides() {
	file := w.inProposal()
	if file == "" {
		if len(w.typed) > 0 {
			w.saves()
		}
		return
	}
	what, press := "accept", w.accept
	if w.eval(w.conflicts()) != "" {
		switch w.r.IntN(5) {
		case 0, 1:
			what, press = "keep", w.keep
		case 2, 3:
			what, press = "take", w.take
		}
	}
	if w.r.IntN(5) == 0 {
		what, press = "reject", w.reject
	}
	w.until("a companion", w.serving)
	w.note("the user decides to %s %q on %q", what, w.eval(w.proposal(file)), w.eval(w.original(file)))
	before, refused := w.versions(), w.refusals()
	press()
	if w.r.IntN(8) == 0 {
		w.crashes()
		w.until("a companion", w.serving)
		return
	}
	w.until("what comes of it", func() bool { w.answers(); return w.versions() != before || w.refusals() != refused })
	w.note("that is so, or %s", w.refusals())
}

// versions changes with all that anybody does to a proposal or its file.
func (w *tangle) versions() string {
	diffs, ok := w.shown()
	if !ok {
		return ""
	}
	var all strings.Builder
	for _, d := range diffs {
		fmt.Fprintf(&all, "%s %d %d %v ", d.ID, d.Version, d.Base, d.Conflict != nil)
	}
	return all.String()
}

// refusals is what the user was told last of a decision that does not count.
func (w *tangle) refusals() (all string) {
	for _, line := range strings.Split(w.eval(w.f.messages), "\n") {
		for _, why := range []string{"has changed since this was shown", "keep the proposal", "othing is in conflict", "does not run just now"} {
			if strings.Contains(line, why) {
				all += line + "; "
			}
		}
	}
	return all
}

// saves has the user save the file, which an editor does after a question where others have written it.
func (w *tangle) saves() {
	if w.awaited(tangled[0]) {
		return
	}
	w.note("the user saves %q over %q", w.eval(w.buffer(tangled[0])), w.disk(tangled[0]))
	before := w.versions()
	w.save()
	asked := false
	for end := time.Now().Add(200 * time.Millisecond); !asked && time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // Neovim says nothing while it asks
		asked = w.answers()
	}
	elsewhere := false
	w.until("the end of saving", func() bool {
		asked = w.answers() || asked
		at := w.eval(w.place())
		saved := w.eval(w.modified(tangled[0])) == "0"
		elsewhere = !saved && (w.proposed(at) != "" || w.versions() != before) // one was shown just before the keys, which it took
		return asked || saved || elsewhere
	})
	if !asked && !elsewhere {
		w.saved, w.typed = append(w.saved, w.typed...), nil
	}
	w.note("the disk has %q", w.disk(tangled[0]))
}

// crashes kills the companion.
func (w *tangle) crashes() {
	pid := 0
	w.until("the companion", func() bool { pid = w.child(); return pid != 0 })
	w.note("the companion is killed")
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended just now
}

// child is the PID of the editor's companion, 0 without one.
func (w *tangle) child() int {
	out, _ := exec.Command("pgrep", "-P", itoa(w.tm.PID()), "-x", "pollux").Output()
	pid, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return pid
}

// killed kills the editor, once what was typed into proposals has left it.
func (w *tangle) killed() {
	for _, word := range w.edited {
		w.until(word+" to leave the editor", func() bool { return w.journal(word) || w.history(word) })
	}
	pid, companion := w.tm.PID(), w.child()
	w.note("the editor is killed")
	w.kill(pid, syscall.SIGKILL)
	w.gone(pid, companion)
}

// quits leaves the editor in good order, and what was not saved.
func (w *tangle) quits() {
	w.inProposal()
	pid, companion := w.tm.PID(), w.child()
	w.note("the user quits the editor")
	w.abandons()
	w.gone(pid, companion)
}

// gone waits until the editor and its companion have ended.
func (w *tangle) gone(pid, companion int) {
	w.runs, w.typed = false, nil
	w.until("the editor's end", func() bool { return !alive(pid) })
	w.until("its companion's end", func() bool { return companion == 0 || !alive(companion) })
}

// ends has everything come to rest: agents write, and the user rejects what is open. Then it looks for every word.
func (w *tangle) ends() {
	if !w.runs {
		w.starts()
	}
	w.until("a companion", w.serving)
	for end := time.Now().Add(patience); ; {
		if time.Now().After(end) {
			diffs, _ := w.shown()
			w.Fatalf("the user is never shown %+v", diffs)
		}
		w.hears()
		for _, p := range w.agents {
			if p.write != nil {
				w.writes(p)
			}
		}
		diffs, ok := w.shown()
		if ok && len(diffs) == 0 && w.inProposal() == "" {
			break
		}
		if file := w.inProposal(); file != "" {
			w.note("the user rejects %q", w.eval(w.proposal(file)))
			before := w.versions()
			w.reject()
			w.until("the rejection", func() bool { return w.versions() != before })
		}
	}
	w.check()
	for _, p := range w.agents {
		if p.Agent != nil {
			p.Leave()
		}
	}
}

// check finds every word.
func (w *tangle) check() {
	for _, word := range w.saved {
		for end := time.Now().Add(10 * time.Second); !strings.Contains(w.disk(tangled[0])+w.disk(tangled[1]), word) && !w.history(word) && !strings.Contains(w.eval(w.everything()), word); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				w.Errorf("%q is lost; the files have %q and %q", word, w.disk(tangled[0]), w.disk(tangled[1]))
				break
			}
		}
	}
	for _, word := range w.typed {
		if got := w.eval(w.everything()); !strings.Contains(got, word) {
			w.Errorf("%q, which was not saved, is lost: the editor has %q", word, got)
		}
	}
}

// endAll ends what a failed interleaving has left.
func (w *tangle) endAll() {
	for end := time.Now().Add(3 * time.Second); w.Failed() && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if c := w.client(); c != nil {
			_ = syscall.Kill(c.Status.PID, syscall.SIGTERM)
			c.Close()
		}
	}
}
