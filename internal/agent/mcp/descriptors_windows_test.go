package mcp_test

import "testing"

// descriptors is how many files and connections this process may have open.
func descriptors(*testing.T) int { return 1 << 20 }
