package notify

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSendInOrderOfSubscription(t *testing.T) {
	var l List[int]
	var got []string
	l.Add(func(int) { got = append(got, "a") })
	cancel := l.Add(func(int) { got = append(got, "b") })
	l.Add(func(int) { got = append(got, "c") })
	l.Send(1)
	cancel()
	cancel()
	l.Send(2)
	if want := []string{"a", "b", "c", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("called %q, want %q", got, want)
	}
	l.Close()
	l.Send(3)
	if len(got) != 5 {
		t.Error("called after Close")
	}
}

func TestCancelWaitsForACallInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l List[int]
		ended := false
		cancel := l.Add(func(int) { time.Sleep(time.Second); ended = true })
		go l.Send(1)
		synctest.Wait()
		cancel()
		if !ended {
			t.Error("cancel returned during a call")
		}
	})
}

func TestCancelOfAnotherFromWithin(t *testing.T) {
	var l List[int]
	calls := 0
	var cancelOther func()
	l.Add(func(int) { calls++; cancelOther() })
	cancelOther = l.Add(func(int) { t.Error("called after its cancel") })
	l.Send(1)
	l.Send(2)
	if calls != 2 {
		t.Errorf("called %d times, want twice", calls)
	}
}

func TestAPanicHarmsNobodyElse(t *testing.T) {
	var l List[int]
	called := 0
	cancel := l.Add(func(int) { panic("on purpose, by a test") })
	l.Add(func(int) { called++ })
	l.Send(1)
	cancel() // must not hang
	if called != 1 {
		t.Error("the second subscriber was not called")
	}
}

func TestRace(t *testing.T) {
	var l List[int]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				cancelled := false
				cancel := l.Add(func(int) {
					if cancelled { // a data race too, if cancel did not wait
						t.Error("called after cancel")
					}
				})
				l.Send(1)
				cancel()
				cancelled = true
			}
		})
	}
	wg.Wait()
}

func BenchmarkSend(b *testing.B) {
	var l List[int]
	for range 1000 {
		l.Add(func(int) {})
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Send(1)
	}
}
