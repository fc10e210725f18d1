package history

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

var update = flag.Bool("update", false, "rewrite the vectors of contract/ with what is really seen")

// The vectors of contract/ on the history: entries as they are kept (SPEC F-12).
func TestContract(t *testing.T) {
	all, err := contract.PlayedBy("internal/history")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		t.Run(a.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, a) })
		})
	}
}

func play(t *testing.T, a *contract.Archive) {
	p := newContractPlayer(t, a.Settings)
	got, err := contract.Perform(a, p.dir, p.act, p.see)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := a.Rewrite(filepath.Join("..", "..", "contract"), got); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(a.Steps, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", a.About, diff)
	}
}

// A contractPlayer is an agent that proposes and a user who decides.
type contractPlayer struct {
	t     *testing.T
	dir   string
	opt   Options
	h     *History
	r     *review.Registry
	owner *reviewtest.Owner
	holds map[string]string // what files hold now, by path
}

func newContractPlayer(t *testing.T, settings map[string]string) *contractPlayer {
	p := &contractPlayer{t: t, dir: t.TempDir(), owner: &reviewtest.Owner{Name: "Gemini CLI #1"}}
	p.opt = Options{Roots: []string{"/w"}, Off: settings["off"] != ""}
	p.opt.MaxEntries, _ = strconv.Atoi(settings["maxEntries"])
	p.opt.MaxBytes, _ = strconv.ParseInt(settings["maxBytes"], 10, 64)
	p.opt.MaxAge, _ = time.ParseDuration(settings["maxAge"])
	p.h = start(t, p.dir, &p.opt)
	p.r = review.New(review.Options{View: &reviewtest.View{}})
	p.h.Follow(p.r)
	return p
}

// act does what one line of a do step says; the user decides on the oldest diff.
func (p *contractPlayer) act(line string) error {
	var do struct {
		Propose                *struct{ Path, Old, New string }
		Edit                   *string
		Accept, Reject, Policy bool
		Withdraw, Wait         string
		Holds                  map[string]string // the files' texts now, by path
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	time.Sleep(time.Millisecond) // which order the entries
	switch {
	case do.Propose != nil:
		p.owner.Propose(p.t, p.r, do.Propose.Path, do.Propose.Old, do.Propose.New)
		return nil
	case do.Policy:
		p.r.SetRule(review.Rule{Mode: review.AcceptAll})
		return nil
	case do.Holds != nil:
		p.holds = do.Holds
		return nil
	case do.Withdraw != "":
		_, err := p.r.Withdraw(p.t.Context(), p.owner, do.Withdraw)
		return err
	case do.Wait != "":
		d, err := time.ParseDuration(do.Wait)
		time.Sleep(d)
		return err
	}
	pending := p.r.Pending()
	switch {
	case len(pending) == 0:
		return errors.New("no diff is open")
	case do.Edit != nil:
		_, err := p.r.Edit(pending[0].ID(), review.Edit{Text: *do.Edit})
		return err
	case do.Accept:
		return p.r.Accept(pending[0].ID(), pending[0].Now().Seen, nil)
	case do.Reject:
		return p.r.Reject(pending[0].ID())
	}
	return errors.New("nothing to do")
}

var (
	entryID   = regexp.MustCompile(`"id":"[^"]*"`)
	entryTime = regexp.MustCompile(`"(opened|settled)":"[^"]*"`)
)

// see shows what a see step asks for, after the history has been closed and opened again.
func (p *contractPlayer) see(what string) (string, error) {
	finish(p.t, p.h)
	p.h = start(p.t, p.dir, &p.opt)
	p.h.Follow(p.r)
	switch what {
	case "entries":
		return p.entries()
	case "undoable":
		return p.undoable()
	}
	return "", fmt.Errorf("nothing to see of %q", what)
}

// undoable says of each entry, newest first, whether its change can be undone.
func (p *contractPlayer) undoable() (string, error) {
	list, err := p.h.List()
	var b strings.Builder
	for _, i := range list {
		var current *string
		if text, ok := p.holds[i.Path]; ok {
			current = &text
		}
		fmt.Fprintf(&b, "%s: %v\n", i.Path, i.Undoable(current))
	}
	return b.String(), err
}

// entries shows them as they lie in their files, oldest first.
func (p *contractPlayer) entries() (string, error) {
	files, err := entryFiles(p.h.dir)
	var b strings.Builder
	for _, f := range files {
		data, readErr := os.ReadFile(filepath.Join(p.h.dir, f.name))
		err = errors.Join(err, readErr)
		head, texts, _ := strings.Cut(string(data), "\n")
		head = entryID.ReplaceAllString(head, `"id":"{{id}}"`)
		head = entryTime.ReplaceAllString(head, `"$1":"{{time}}"`)
		fmt.Fprintf(&b, "%s\n%q\n", head, texts)
	}
	return b.String(), err
}
