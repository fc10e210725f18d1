//go:build unix

package doctor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/review"
)

// A teller is the control channel of a companion; what doctor does not ask it panics. It is not changed once it is asked.
type teller struct {
	control.Backend
	connection control.Connection
	views      *control.Views
	rules      []review.Rule
	roots      []string
	troubles   []control.Trouble
}

func (b *teller) Status() control.Status {
	return control.Status{PID: os.Getpid(), Views: b.views, Roots: b.roots, Troubles: b.troubles}
}
func (b *teller) Connection() control.Connection { return b.connection }
func (b *teller) Sessions() []control.Session    { return nil }
func (b *teller) Watch(context.Context, uint64) control.Queue {
	return control.Queue{Version: 1, Rules: b.rules}
}

// tell gives the patient's companion a control channel.
func (p *patient) tell(b *teller) {
	p.t.Helper()
	root, err := os.MkdirTemp("", "px") // short, for a socket
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { os.RemoveAll(root) })
	p.run = append(p.run, filepath.Join(root, "run"))
	s, err := control.Listen(p.run[len(p.run)-1:], b, slog.New(slog.DiscardHandler))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Close)
}

// A CLI that is connected, and whose diffs nobody would see, has no diffs.
func TestViews(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		views *control.Views
		rules []review.Rule
		level Level
		what  string
		mend  string
	}{
		"an older one":        {nil, nil, Note, "cannot be known", ""},
		"nobody":              {&control.Views{}, nil, Fault, "no editor and no page is open", "pollux page"},
		"its editor":          {&control.Views{Editor: true, Browser: true}, nil, OK, "in the editor", ""},
		"a page":              {&control.Views{Page: true}, nil, OK, "on an open page", ""},
		"a reviewer":          {&control.Views{Reviewer: true}, nil, OK, "in pollux review", ""},
		"a browser to be":     {&control.Views{Browser: true}, nil, Note, "opens the browser", "pollux page"},
		"accepted unseen":     {&control.Views{}, []review.Rule{{Mode: review.AcceptAll}}, OK, "accepts every diff", ""},
		"one file's accepted": {&control.Views{}, []review.Rule{{Mode: review.AcceptAll, Pattern: "/x"}}, Fault, "no editor", "pollux page"},
		"left to terminal":    {&control.Views{Page: true}, []review.Rule{{Mode: review.Terminal}}, Note, "leaves every diff to the terminal", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, nil)
			p.tell(&teller{connection: control.Connection{Port: 1, Token: "another"}, views: &control.Views{Page: true}})
			p.tell(&teller{connection: control.Connection{Port: p.c.Port, Token: p.c.Token}, views: test.views, rules: test.rules})
			r := p.examine()
			f, ok := r.find("views")
			if !ok || f.Level != test.level || !strings.Contains(f.What, test.what) || f.Mend != test.mend || f.Level != OK && f.Why == "" {
				t.Errorf("%+v", f)
			}
			if r.Connects != (test.level != Fault) || r.Says != "Connected to Test Editor" {
				t.Errorf("connects %v, says %q", r.Connects, r.Says)
			}
		})
	}
}

// Of what is no companion of pollux's, nothing is known, and it is not held against it.
func TestViewsOfAnother(t *testing.T) {
	t.Parallel()
	p := newPatient(t, nil)
	if f, ok := p.examine().find("views"); !ok || f.Level != Note || !strings.Contains(f.What, "cannot be known") {
		t.Errorf("%+v", f)
	}
	p.command("/bin/cat")
	if f, ok := p.examine().find("views"); ok {
		t.Errorf("it speaks no MCP, and: %+v", f)
	}
}

// SPEC A-5: what a companion of this folder does without is said, with what helps; another folder's says nothing here.
func TestTroubles(t *testing.T) {
	t.Parallel()
	p := newPatient(t, nil)
	users := control.Trouble{ID: "users", What: "users are not told apart", Why: "somebody gets in", Do: "run it elsewhere"}
	p.tell(&teller{roots: []string{p.examine().Dir}, troubles: []control.Trouble{users}})
	p.tell(&teller{roots: []string{t.TempDir()}, troubles: []control.Trouble{{ID: "folder", What: "not here"}}})
	r := p.examine()
	f, ok := r.find("users")
	if !ok || f.Level != Warning || !strings.Contains(f.What, users.What) || f.Why != users.Why || f.Remark != users.Do || !r.Connects {
		t.Errorf("%+v", f)
	}
	if f, ok := r.find("folder"); ok {
		t.Errorf("another folder's: %+v", f)
	}
}
