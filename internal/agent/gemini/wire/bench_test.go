package wire

import (
	"strings"
	"testing"
)

// The response to closeDiff, JSON within JSON, for 5 MB.
func BenchmarkClosed(b *testing.B) {
	content := strings.Repeat("\tif err := s.handle(ctx, message); err != nil {\n\t\treturn fmt.Errorf(\"Größe: %w\", err)\n\t}\n", 5<<20/88)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		_ = Closed([]byte("1"), content, true)
	}
}
