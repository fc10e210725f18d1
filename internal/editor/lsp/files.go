package lsp

import "slices"

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

// watchFiles tells the editor which of its files others have changed, as long
// as an agent is connected, until the server ends. Nothing wakes up without one.
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
		var files []string
		if len(s.status().sessions()) > 0 {
			s.mu.Lock()
			files = s.buffers
			s.mu.Unlock()
		}
		if !slices.Equal(files, watched) {
			watcher.Set(files, nil)
			// What has happened before it was watched.
			s.filesChanged(slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(watched, f) }))
			watched = files
		}
		select {
		case <-s.opened:
		case <-s.ctx.Done():
			return
		}
	}
}

// filesChanged tells the editor to look at files again.
func (s *Server) filesChanged(files []string) {
	if len(files) == 0 {
		return
	}
	uris := make([]string, len(files))
	for i, file := range files {
		uris[i] = uriOf(file)
	}
	s.peer.Notify("pollux/filesChanged", obj{"uris": uris})
}
