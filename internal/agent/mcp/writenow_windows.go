package mcp

// writeNow writes nothing. Sockets are not in non-blocking mode on this system, so the
// stream's goroutine does every write.
func writeNow(uintptr, []byte) int { return 0 }
