package review_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pollux-companion/pollux/internal/core/review"
	"github.com/pollux-companion/pollux/internal/core/review/reviewtest"
)

// A scene is a registry with a fake editor and two sessions.
type scene struct {
	view     *reviewtest.View
	one, two *reviewtest.Owner
	*review.Registry
}

func newScene(o review.Options) *scene {
	s := &scene{view: &reviewtest.View{}, one: &reviewtest.Owner{Name: "CLI 1"}, two: &reviewtest.Owner{Name: "CLI 2"}}
	o.View = s.view
	s.Registry = review.New(o)
	return s
}

func (s *scene) open(ctx context.Context, path, proposed string) (*review.Diff, error) {
	return s.Open(ctx, s.one, review.Proposal{Key: path, Path: path, New: proposed}, s.one.Deliver)
}

// expect asserts who was told what, that nothing is left open, and that no
// call broke a contract.
func (s *scene) expect(t *testing.T, kinds ...review.Kind) {
	t.Helper()
	s.one.ExpectTold(t, kinds...)
	if s.view.ExpectVisible(t, 0); len(s.Pending()) != 0 {
		t.Errorf("%d diffs are still open", len(s.Pending()))
	}
}

// edit is an edit in a view that has the newest text.
func (s *scene) edit(d *review.Diff, content string) error {
	_, err := s.Edit(d.ID(), review.Edit{Text: content})
	return err
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error %v, want %v", got, want)
	}
}

func ptr(s string) *string { return &s }

func TestAccept(t *testing.T) { // SPEC F-3
	for _, tt := range []struct {
		name    string
		edits   []string
		content *string
		want    review.Outcome
	}{
		{"as proposed", nil, nil, review.Outcome{Kind: review.Accepted, Content: "new"}},
		{"as edited", []string{"a", "b"}, nil, review.Outcome{Kind: review.Accepted, Content: "b", Edited: true}},
		{"edited and back", []string{"a", "new"}, nil, review.Outcome{Kind: review.Accepted, Content: "new"}},
		{"with the last text", []string{"a"}, ptr("c"), review.Outcome{Kind: review.Accepted, Content: "c", Edited: true}},
		{"with the proposal's text", []string{"a"}, ptr("new"), review.Outcome{Kind: review.Accepted, Content: "new"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(review.Options{})
			d := s.one.Propose(t, s.Registry, "/a", "old", "new")
			for i, edit := range tt.edits {
				if _, err := s.Edit(d.ID(), review.Edit{Text: edit}); err != nil {
					t.Fatal(err)
				}
				if text, version := d.Text(); text != edit || version != i+1 {
					t.Errorf("text %q in version %d after edit %d", text, version, i+1)
				}
			}
			if err := s.Accept(d.ID(), d.Now().Seen, tt.content); err != nil {
				t.Fatal(err)
			}
			s.expect(t, review.Accepted)
			if got := s.one.Told()[0].Outcome; got != tt.want {
				t.Errorf("outcome %+v, want %+v", got, tt.want)
			}
			wantErr(t, s.Accept(d.ID(), d.Now().Seen, nil), review.ErrSettled)
			wantErr(t, s.Reject(d.ID()), review.ErrSettled)
			wantErr(t, s.edit(d, "x"), review.ErrSettled)
			_, err := s.Withdraw(t.Context(), s.one, "/a")
			wantErr(t, err, review.ErrNoDiff)
		})
	}
}

func TestReject(t *testing.T) { // SPEC F-3
	s := newScene(review.Options{})
	d := s.one.Propose(t, s.Registry, "/a", "old", "new")
	if got, ok := s.Get(d.ID()); !ok || got != d || d.Owner() != review.Owner(s.one) || d.Label() != "CLI 1" || d.Proposal().Old != "old" {
		t.Errorf("Get returns %v, %v", got, ok)
	}
	wantErr(t, s.Reject("unknown"), review.ErrSettled)
	if err := s.Reject(d.ID()); err != nil {
		t.Fatal(err)
	}
	s.expect(t, review.Rejected)
	if o := s.one.Told()[0].Outcome; o != (review.Outcome{Kind: review.Rejected}) {
		t.Errorf("outcome %+v", o)
	}
}

func TestEmptied(t *testing.T) { // SPEC F-8
	s := newScene(review.Options{})
	d := s.one.Propose(t, s.Registry, "/a", "old", "new")
	wantErr(t, s.Accept(d.ID(), d.Now().Seen, ptr("")), review.ErrEmptied)
	if _, err := s.Edit(d.ID(), review.Edit{Text: ""}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, s.Accept(d.ID(), d.Now().Seen, nil), review.ErrEmptied)
	if err := s.Reject(d.ID()); err != nil { // it is still open
		t.Error(err)
	}
	if err := s.Accept(s.one.Propose(t, s.Registry, "/b", "old", "").ID(), review.Seen{}, nil); err != nil {
		t.Errorf("a proposal that was empty from the start: %v", err)
	}
	s.expect(t, review.Rejected, review.Accepted)
}

func TestReplaced(t *testing.T) { // SPEC F-7
	s := newScene(review.Options{MaxPerOwner: 2})
	first := s.one.Propose(t, s.Registry, "/a", "old", "first")
	s.two.Propose(t, s.Registry, "/a", "old", "another session's")
	s.one.Propose(t, s.Registry, "/b", "old", "another file")
	second := s.one.Propose(t, s.Registry, "/a", "old", "second") // within the bound: it takes the first's place
	wantErr(t, s.Accept(first.ID(), first.Now().Seen, nil), review.ErrSettled)
	if n := len(s.Pending()); n != 3 {
		t.Errorf("%d diffs are open, want 3", n)
	}
	s.view.ExpectVisible(t, 3)
	if err := s.Accept(second.ID(), second.Now().Seen, nil); err != nil {
		t.Error(err)
	}
	s.Leave(s.two)
	s.two.ExpectTold(t) // SPEC F-9
	s.Shut()
	s.expect(t, review.Accepted, review.Rejected)
}

func TestBounds(t *testing.T) { // SPEC A-4
	s := newScene(review.Options{MaxPerOwner: 2, MaxProposal: 10, MaxTotal: 30})
	long := strings.Repeat("x", 11)
	_, err := s.open(t.Context(), "/long", long)
	wantErr(t, err, review.ErrTooBig)
	_, err = s.Open(t.Context(), s.one, review.Proposal{Key: "/o", Path: "/o", Old: long}, nil)
	wantErr(t, err, review.ErrTooBig)
	a := s.one.Propose(t, s.Registry, "/a", "", "0123456789")
	wantErr(t, s.edit(a, long), review.ErrTooBig)
	wantErr(t, s.Accept(a.ID(), a.Now().Seen, &long), review.ErrTooBig)
	s.one.Propose(t, s.Registry, "/b", "", "0123456789")
	_, err = s.open(t.Context(), "/c", "")
	wantErr(t, err, review.ErrTooMany)
	if _, err := s.Edit(a.ID(), review.Edit{Text: "abcdefghij"}); err != nil { // all 30 are used now
		t.Error(err)
	}
	_, err = s.Open(t.Context(), s.two, review.Proposal{Key: "/c", Path: "/c", New: "1"}, nil)
	wantErr(t, err, review.ErrTooMany)
	wantErr(t, s.edit(s.two.Propose(t, s.Registry, "/e", "", ""), "x"), review.ErrTooBig)
	if _, err := s.Edit(a.ID(), review.Edit{Text: "0123456789"}); err != nil { // as proposed costs nothing
		t.Error(err)
	}
	s.two.Propose(t, s.Registry, "/c", "", "0123456789")
	s.Leave(s.one)
	s.Leave(s.two)
	for i := range 2 { // what is settled counts no more
		s.one.Propose(t, s.Registry, fmt.Sprint(i), "01234", "0123456789")
	}
	s.Leave(s.one)
	s.expect(t)
}

func TestNoView(t *testing.T) { // SPEC F-2
	r := review.New(review.Options{})
	_, err := r.Open(t.Context(), &reviewtest.Owner{}, review.Proposal{Path: "/a"}, nil)
	wantErr(t, err, review.ErrNoView)
}

// A view that errs, panics, hangs or comes late: Open says so in time, and
// nothing stays visible.
func TestShowFails(t *testing.T) {
	broken := errors.New("no page is open")
	for _, tt := range []struct {
		name string
		show func(ctx context.Context) error
		want error
		wait time.Duration
	}{
		{"error", func(context.Context) error { return broken }, broken, 0},
		{"panic", func(context.Context) error { panic("on purpose, by a test") }, review.ErrNoView, 0},
		{"heeds the deadline", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, 5 * time.Second},
		{"hangs, then shows it after all", func(context.Context) error { time.Sleep(time.Minute); return nil }, review.ErrNoView, 5 * time.Second},
		{"hangs, then errs", func(context.Context) error { time.Sleep(time.Minute); return broken }, review.ErrNoView, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(review.Options{})
				s.Watch(func(e review.Event) { t.Errorf("watchers heard of it: %+v", e) })
				s.view.OnShow = func(ctx context.Context, _ *review.Diff) error { return tt.show(ctx) }
				start := time.Now()
				_, err := s.open(t.Context(), "/a", "new")
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if d := time.Since(start); d != tt.wait {
					t.Errorf("Open took %v, want %v", d, tt.wait)
				}
				time.Sleep(2 * time.Minute)
				s.expect(t)
			})
		})
	}
}

// What happens to a diff while it is being shown.
func TestDuringShow(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s *scene, cancel func(), d *review.Diff)
		want error // of Open; nil: the outcome is told after the answer
		told []review.Kind
	}{
		{"accepted", func(s *scene, _ func(), d *review.Diff) { s.Accept(d.ID(), d.Now().Seen, nil) }, nil, []review.Kind{review.Accepted}},
		{"edited and rejected", func(s *scene, _ func(), d *review.Diff) { _ = s.edit(d, "x"); s.Reject(d.ID()) }, nil, []review.Kind{review.Rejected}},
		{"accepted by a new rule", func(s *scene, _ func(), _ *review.Diff) { s.SetRule(review.Rule{Mode: review.AcceptAll}) }, nil, []review.Kind{review.Accepted}},
		{"withdrawn", func(s *scene, _ func(), _ *review.Diff) { s.Withdraw(context.Background(), s.one, "/a") }, review.ErrSettled, nil},
		{"left", func(s *scene, _ func(), _ *review.Diff) { s.Leave(s.one) }, review.ErrSettled, nil},
		{"shut", func(s *scene, _ func(), _ *review.Diff) { s.Shut() }, review.ErrShut, nil},
		{"cancelled", func(_ *scene, cancel func(), _ *review.Diff) { cancel() }, context.Canceled, nil},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, view slow: %v", tt.name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScene(review.Options{})
					ctx, cancel := context.WithCancel(t.Context())
					s.view.OnShow = func(_ context.Context, d *review.Diff) error {
						tt.do(s, cancel, d)
						if late {
							time.Sleep(time.Minute)
						}
						return nil
					}
					start := time.Now()
					if _, err := s.open(ctx, "/a", "new"); !errors.Is(err, tt.want) {
						t.Errorf("error %v, want %v", err, tt.want)
					}
					if d := time.Since(start); d != 0 { // what is settled waits for no view
						t.Errorf("Open took %v", d)
					}
					time.Sleep(2 * time.Minute)
					s.expect(t, tt.told...)
				})
			})
		}
	}
}

// SPEC F-9: a session cancels its calls and leaves; nothing of it gets in later.
func TestOpenAfterLeave(t *testing.T) {
	s := newScene(review.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Leave(s.one)
	_, err := s.open(ctx, "/a", "new")
	wantErr(t, err, context.Canceled)
	s.expect(t)
}

// SPEC F-4: the newest text, but never later than the deadline.
func TestWithdraw(t *testing.T) {
	for _, tt := range []struct {
		name    string
		content func(ctx context.Context) (string, bool)
		want    review.Outcome
		wait    time.Duration
	}{
		{"the view knows newer", func(context.Context) (string, bool) { return "newest", true }, review.Outcome{Content: "newest", Edited: true}, 0},
		{"the view knows the proposal", func(context.Context) (string, bool) { return "new", true }, review.Outcome{Content: "new"}, 0},
		{"the view knows nothing", func(context.Context) (string, bool) { return "?", false }, review.Outcome{Content: "edited", Edited: true}, 0},
		{"the view panics", func(context.Context) (string, bool) { panic("on purpose, by a test") }, review.Outcome{Content: "edited", Edited: true}, 0},
		{"the view hangs", func(context.Context) (string, bool) { time.Sleep(time.Hour); return "late", true }, review.Outcome{Content: "edited", Edited: true}, 500 * time.Millisecond},
		{"the view is slow", func(context.Context) (string, bool) { time.Sleep(400 * time.Millisecond); return "slow", true }, review.Outcome{Content: "slow", Edited: true}, 400 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(review.Options{})
				s.view.OnContent = func(ctx context.Context, _ *review.Diff) (string, bool) {
					s.Pending() // no lock is held
					return tt.content(ctx)
				}
				_ = s.edit(s.one.Propose(t, s.Registry, "/a", "", "new"), "edited")
				start := time.Now()
				o, err := s.Withdraw(t.Context(), s.one, "/a")
				tt.want.Kind = review.Withdrawn
				if err != nil || o != tt.want || time.Since(start) != tt.wait {
					t.Errorf("%+v, %v after %v; want %+v after %v", o, err, time.Since(start), tt.want, tt.wait)
				}
				_, err = s.Withdraw(t.Context(), s.one, "/a")
				wantErr(t, err, review.ErrNoDiff)
				s.expect(t)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// SPEC F-10: the user decides while the agent's question is on its way.
func TestUserIsQuickerThanWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(review.Options{})
		s.view.OnContent = func(_ context.Context, d *review.Diff) (string, bool) {
			s.Accept(d.ID(), d.Now().Seen, nil)
			time.Sleep(time.Minute)
			return "late", true
		}
		s.one.Propose(t, s.Registry, "/a", "", "new")
		start := time.Now()
		_, err := s.Withdraw(t.Context(), s.one, "/a")
		wantErr(t, err, review.ErrNoDiff)
		if time.Since(start) != 0 {
			t.Errorf("it took %v to say so", time.Since(start))
		}
		s.expect(t, review.Accepted)
		time.Sleep(time.Hour)
	})
}

// SPEC L-1: when Shut returns the owners know, also of what was just being answered.
func TestShutWaitsForAnswers(t *testing.T) {
	for slow, want := range map[time.Duration]int{100 * time.Millisecond: 1, time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(review.Options{})
			go s.Open(context.Background(), s.one, review.Proposal{Key: "/a", Path: "/a", New: "x"}, func(d *review.Diff) {
				time.Sleep(slow)
				s.one.Deliver(d)
			})
			synctest.Wait()
			start := time.Now()
			s.Shut()
			if n, d := len(s.one.Told()), time.Since(start); n != want || d > 200*time.Millisecond {
				t.Errorf("%d told after %v, want %d", n, d, want)
			}
			time.Sleep(2 * time.Hour)
			s.expect(t, review.Rejected)
			_, err := s.open(t.Context(), "/b", "x")
			wantErr(t, err, review.ErrShut)
		})
	}
}

// What another goroutine is just telling the watchers is told when Shut
// returns, so that a history closed after it is complete (SPEC F-12).
func TestShutWaitsForWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(review.Options{})
		a, b := s.one.Propose(t, s.Registry, "/a", "", "x"), s.one.Propose(t, s.Registry, "/b", "", "x")
		ends := 0
		s.Watch(func(e review.Event) {
			time.Sleep(50 * time.Millisecond)
			ends++
		})
		go s.Accept(a.ID(), a.Now().Seen, nil)
		synctest.Wait()
		s.Shut()
		if ends != 2 {
			t.Errorf("%d ends were told, want those of %s and %s", ends, a.Proposal().Path, b.Proposal().Path)
		}
	})
}

// Exactly one outcome whoever comes first (SPEC F-10), and events in order.
func TestRaces(t *testing.T) {
	s := newScene(review.Options{MaxPerOwner: 1000})
	log := &eventLog{kinds: make(map[string][]review.Kind)}
	s.Watch(log.add)
	for i := range 300 {
		path := fmt.Sprint("/", i)
		d := s.one.Propose(t, s.Registry, path, "", "new")
		before := len(s.one.Told())
		var wins [5]int
		var wg sync.WaitGroup
		win := func(n int, err error) {
			if err == nil {
				wins[n]++
			}
		}
		wg.Go(func() { win(0, s.Accept(d.ID(), d.Now().Seen, nil)) })
		wg.Go(func() { win(1, s.Reject(d.ID())) })
		wg.Go(func() { _, err := s.Withdraw(context.Background(), s.one, path); win(2, err) })
		wg.Go(func() { _ = s.edit(d, "edited") })
		if i%3 == 0 {
			wg.Go(func() { s.Leave(s.one) })
		}
		wg.Wait()
		decided, withdrawn := wins[0]+wins[1], wins[2]
		if decided+withdrawn > 1 || i%3 != 0 && decided+withdrawn != 1 {
			t.Fatalf("winners %v", wins)
		}
		if told := len(s.one.Told()) - before; told != decided {
			t.Fatalf("told %d times with winners %v", told, wins)
		}
	}
	s.Shut()
	s.view.ExpectVisible(t, 0)
	log.check(t, 300)
}

// The same with Open, Shut and rules among the racers.
func TestRacesWithOpening(t *testing.T) {
	for range 100 {
		s := newScene(review.Options{})
		log := &eventLog{kinds: make(map[string][]review.Kind)}
		s.Watch(log.add)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() { s.open(context.Background(), fmt.Sprint("/", i%3), "new") })
		}
		wg.Go(func() { s.SetRule(review.Rule{Mode: review.AcceptAll, Pattern: "/1"}) })
		wg.Go(func() { s.Withdraw(context.Background(), s.one, "/2") })
		wg.Go(func() {
			for _, d := range s.Pending() {
				s.Reject(d.ID())
			}
		})
		wg.Go(s.Shut)
		wg.Wait()
		s.view.ExpectVisible(t, 0)
		s.one.ExpectTold(t, kindsOf(s.one.Told())...)
		if n := len(s.Pending()); n != 0 {
			t.Fatalf("%d diffs are left", n)
		}
		log.check(t, -1)
	}
}

func kindsOf(told []reviewtest.Told) (kinds []review.Kind) {
	for _, one := range told {
		kinds = append(kinds, one.Outcome.Kind)
	}
	return kinds
}

// An eventLog holds what a watcher heard of each diff; 0 is "open".
type eventLog struct {
	mu    sync.Mutex
	kinds map[string][]review.Kind
}

func (l *eventLog) add(e review.Event) {
	if e.Diff == nil {
		return // of a rule
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := review.Kind(0)
	if e.Outcome != nil {
		kind = e.Outcome.Kind
	}
	l.kinds[e.Diff.ID()] = append(l.kinds[e.Diff.ID()], kind)
}

// check wants n diffs (any number when negative), each opened first and ended last and once.
func (l *eventLog) check(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= 0 && len(l.kinds) != n {
		t.Errorf("watchers heard of %d diffs, want %d", len(l.kinds), n)
	}
	for id, kinds := range l.kinds {
		for i, kind := range kinds {
			if (kind != 0) != (i == len(kinds)-1) || len(kinds) < 2 {
				t.Errorf("%s: events %v", id, kinds)
				break
			}
		}
	}
}

// A watcher may act on the registry; order holds all the same.
func TestWatcherActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its decisions wait for the agent's answer, which they hold up
		s := newScene(review.Options{})
		var heard []string
		s.Watch(func(e review.Event) {
			if e.Outcome == nil {
				s.Reject(e.Diff.ID())
			}
		})
		cancel := s.Watch(func(e review.Event) { heard = append(heard, fmt.Sprint(e.Outcome != nil)) })
		s.one.Propose(t, s.Registry, "/a", "", "new")
		cancel()
		s.one.Propose(t, s.Registry, "/b", "", "new")
		if got := strings.Join(heard, " "); got != "false true" {
			t.Errorf("heard %q", got)
		}
		s.expect(t, review.Rejected, review.Rejected)
	})
}

func BenchmarkOpenAccept(b *testing.B) {
	s := newScene(review.Options{})
	text := strings.Repeat("x", 100_000)
	b.ReportAllocs()
	for b.Loop() {
		d, err := s.open(context.Background(), "/a", text)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Accept(d.ID(), d.Now().Seen, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// SPEC L-3: when a decision returns, its owner knows it, and has written it down; also when the agent's request is just being
// answered, and when it will be answered only now, since the view has not said yet that it shows the diff.
func TestDecidedWhileAnsweredL3(t *testing.T) {
	for name, decide := range map[string]func(*review.Registry, *review.Diff) error{
		"accept": func(r *review.Registry, d *review.Diff) error { return r.Accept(d.ID(), d.Now().Seen, nil) },
		"reject": func(r *review.Registry, d *review.Diff) error { return r.Reject(d.ID()) },
	} {
		for when, showing := range map[string]bool{"while it is answered": false, "while it is shown": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScene(review.Options{})
					seen, answered := make(chan *review.Diff, 2), make(chan struct{})
					if showing {
						s.view.OnShow = func(ctx context.Context, d *review.Diff) error { seen <- d; <-ctx.Done(); return ctx.Err() }
					}
					go func() {
						_, _ = s.Open(t.Context(), s.one, review.Proposal{Key: "/a", Path: "/a", New: "x"}, func(d *review.Diff) {
							seen <- d
							<-answered
							s.one.Deliver(d)
						})
					}()
					d := <-seen
					done := make(chan error, 1)
					go func() { done <- decide(s.Registry, d) }()
					synctest.Wait()
					select {
					case err := <-done:
						t.Fatalf("decided (%v), and the owner was told %v", err, s.one.Told())
					default:
					}
					close(answered)
					if err := <-done; err != nil || len(s.one.Told()) != 1 {
						t.Errorf("%v, told %v", err, s.one.Told())
					}
					s.Shut()
				})
			})
		}
	}
}
