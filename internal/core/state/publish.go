package state

import (
	"slices"
	"time"
)

// Subscribe calls f with each published snapshot, in order and never twice
// with an equal one, from the store's timer. f must not block. The returned
// function ends the subscription; after it returns f is not called again: it
// waits for a call in progress, so it must not be called with a lock held
// that f takes, nor from within f.
func (s *Store) Subscribe(f func(*Snapshot)) (cancel func()) { return s.subscribers.Add(f) }

// FollowOpen calls f with the paths of all open files when the list has changed, also with the files that Keep leaves out. The call
// comes from the timer's goroutine, so f must not block. The slice must not be changed. After cancel returns f is not called again.
func (s *Store) FollowOpen(f func(paths []string)) (cancel func()) { return s.followers.Add(f) }

// Shut stops the timer; what is pending is not published any more, and no
// subscriber is called after it has returned. Later changes are still seen by Snapshot.
func (s *Store) Shut() {
	s.mu.Lock()
	s.shut = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.subscribers.Close()
	s.pauses.Close()
}

// Waiting says whether a change has not been published yet, or subscribers are just being told of one.
func (s *Store) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed && !s.shut
}

// changed notes that there is something to publish. The caller holds mu.
func (s *Store) changed() {
	s.focus()
	if s.shut {
		return
	}
	s.latest = time.Now()
	if s.first.IsZero() {
		s.first = s.latest
	}
	if s.armed {
		return // the timer looks at latest when it fires
	}
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.debounce, s.fire)
		return
	}
	s.timer.Reset(s.due())
}

// due is how long what waits has to wait yet: until there has been quiet for
// the debounce, or the first change is as old as the longest delay. The caller holds mu.
func (s *Store) due() time.Duration {
	return min(time.Until(s.latest.Add(s.debounce)), time.Until(s.first.Add(s.maxDelay)))
}

// fire runs on the timer's goroutine, never twice at a time.
func (s *Store) fire() {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return
	}
	if wait := s.due(); wait > 0 {
		s.timer.Reset(wait)
		s.mu.Unlock()
		return
	}
	s.first = time.Time{}
	snap := s.collect()
	s.mu.Unlock()
	s.tellOpen(snap.Files)

	snap = s.shareable(snap)
	if !equal(s.published, snap) {
		s.published = snap
		s.subscribers.Send(snap)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = !s.first.IsZero() && !s.shut
	if s.armed {
		s.timer.Reset(s.due())
	}
}

// tellOpen tells the followers of open files. Only fire calls it.
func (s *Store) tellOpen(files []File) {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	slices.Sort(paths)
	if !slices.Equal(paths, s.told) {
		s.told = paths
		s.followers.Send(paths)
	}
}
