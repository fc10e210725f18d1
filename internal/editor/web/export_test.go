package web

import "time"

// SetGrace changes how long a page that has gone keeps its window; before Serve.
func (s *Server) SetGrace(d time.Duration) { s.grace = d }
