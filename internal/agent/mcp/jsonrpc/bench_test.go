package jsonrpc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The decoder alone on a diff of 5 MB, compared with encoding/json.
func BenchmarkDecode(b *testing.B) {
	content, _ := json.Marshal(strings.Repeat("\tif err := s.handle(ctx, message); err != nil {\n\t\treturn fmt.Errorf(\"Größe: %w\", err)\n\t}\n", 5<<20/88))
	body := fmt.Appendf(nil, `{"method":"tools/call","params":{"name":"openDiff","arguments":{"filePath":"/x.go","newContent":%s}},"jsonrpc":"2.0","id":1}`, content)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		work := make([]byte, len(body))
		for b.Loop() {
			copy(work, body)
			if _, err := Decode(work, "filePath", "newContent"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var v map[string]any
			if err := json.Unmarshal(body, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
