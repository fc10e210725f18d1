package proc

import (
	"cmp"
	"slices"
	"sync"
)

// maxSet bounds a Set.
const maxSet = 4096

// A Set remembers processes as long as they live. The zero value is ready; its methods may be called from any goroutine.
type Set struct {
	mu   sync.Mutex // guards the below
	all  map[int]Info
	full bool // a living process was left out
	most int  // for tests; 0 for maxSet
}

// Add remembers processes. One of the same number takes the place of one that has ended.
func (s *Set) Add(processes ...Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := cmp.Or(s.most, maxSet)
	for _, p := range processes {
		if _, there := s.all[p.PID]; !there && len(s.all) >= most {
			s.prune()
		}
		old, there := s.all[p.PID]
		switch {
		case there && Same(old.PID, old.Start):
		case !there && len(s.all) >= most:
			s.full = true
		case s.all == nil:
			s.all = map[int]Info{p.PID: p}
		default:
			s.all[p.PID] = p
		}
	}
}

// Has says whether the set has this very process, which may have ended, or may have had it: a living one did not fit.
func (s *Set) Has(p Info) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.all[p.PID]
	return s.full || there && old.Start == p.Start
}

// Clear forgets all.
func (s *Set) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.full = nil, false
}

// Living returns the processes that still live, by number. With full, others may live that it does not know any more.
func (s *Set) Living() (living []Info, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune()
	return s.list(), s.full
}

// All is Living without a look at each process: some may have ended.
func (s *Set) All() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

func (s *Set) list() []Info {
	list := make([]Info, 0, len(s.all))
	for _, p := range s.all {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Info) int { return a.PID - b.PID })
	return list
}

// prune forgets processes that have ended. The caller holds mu.
func (s *Set) prune() {
	for pid, p := range s.all {
		if !Same(pid, p.Start) {
			delete(s.all, pid)
		}
	}
}
