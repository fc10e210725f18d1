package lsp

import (
	"os"
	"slices"
	"time"

	"github.com/pollux-companion/pollux/internal/paths"
)

// fillWithin is how long an empty file is given to be filled: programs that write a file anew empty it first.
const fillWithin = 150 * time.Millisecond

// watch takes the files that the editor has open, absolute.
func (s *Server) watch(files []string) {
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	s.mu.Lock()
	same := slices.Equal(files, s.buffers)
	s.buffers = files
	s.mu.Unlock()
	if !same {
		poke(s.opened)
	}
}

// watchEvery is how long a change of the watched set waits for further ones.
const watchEvery = 20 * time.Millisecond

// watchFiles tells the editor which of its files other programs have changed, until the
// server ends. It works only while an agent is connected, so that pollux otherwise sleeps.
func (s *Server) watchFiles() {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	watcher := s.core.Watch(s.filesChanged)
	defer watcher.Close()
	var watched []string
	for {
		s.mu.Lock()
		files := s.buffers
		s.mu.Unlock()
		if len(files) > 0 && len(s.status().sessions()) == 0 {
			files = nil
		}
		if !slices.Equal(files, watched) {
			watcher.Set(files, nil)
			// The files may have changed before the watch began.
			s.filesChanged(slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(watched, f) }))
			watched = files
		}
		select {
		case <-s.opened:
		case <-s.ctx.Done():
			return
		}
		select { // many sessions that begin together are looked at once
		case <-time.After(watchEvery):
		case <-s.ctx.Done():
			return
		}
	}
}

// filesChanged tells the editor to look at files again. It waits a moment with empty files, and tells of them only if they are still empty.
func (s *Server) filesChanged(files []string) {
	var empty []string
	files = slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		is := isEmpty(file)
		if is {
			empty = append(empty, file)
		}
		return is
	})
	s.tellChanged(files)
	if len(empty) == 0 {
		return
	}
	s.tasks.Go(func() {
		select {
		case <-time.After(fillWithin):
			s.tellChanged(slices.DeleteFunc(empty, func(file string) bool { return !isEmpty(file) }))
		case <-s.ctx.Done():
		}
	})
}

func isEmpty(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

func (s *Server) tellChanged(files []string) {
	if len(files) == 0 {
		return
	}
	uris := make([]string, len(files))
	for i, file := range files {
		uris[i] = paths.URI(file)
	}
	s.peer.Notify("pollux/filesChanged", obj{"uris": uris})
}
