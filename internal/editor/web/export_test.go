package web

import "time"

// SetGrace changes how long a page that has gone keeps its window; before Serve.
func (s *Server) SetGrace(d time.Duration) { s.grace = d }

// PagesLeft has the last page gone for so long.
func (s *Server) PagesLeft(ago time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = time.Now().Add(-ago)
}
