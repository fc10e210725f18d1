package state

import (
	"slices"
	"time"
)

// Subscribe calls f with each published snapshot, in order, from the store's timer.
// f never gets two equal snapshots in a row. f must not block. After cancel returns, f is
// not called again. Cancel waits for a call in progress, so call it neither from within f
// nor while you hold a lock that f takes.
func (s *Store) Subscribe(f func(*Snapshot)) (cancel func()) { return s.subscribers.Add(f) }

// FollowOpen calls f with the absolute paths of all open files whenever that list changes. The list also has the files that Keep
// leaves out. f runs on the timer's goroutine and must not block. The slice must not be changed. After cancel returns, f is not called again.
func (s *Store) FollowOpen(f func(paths []string)) (cancel func()) { return s.followers.Add(f) }

// Shut stops the timer. Pending changes are not published any more, and no
// subscriber is called after Shut has returned. Snapshot still sees later changes.
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

// Waiting says whether a change is not published yet, or subscribers are being told of one just now.
func (s *Store) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed && !s.shut
}

// changed notes that there is something to publish, and arms the timer. The caller holds mu.
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
		return // the timer is set: it looks at latest when it fires
	}
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.debounce, s.fire)
		return
	}
	s.timer.Reset(s.due())
}

// due returns how long the waiting changes must still wait: until the debounce has passed
// quietly, or the first change is as old as the longest delay. The caller holds mu.
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
