package mcp

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRoots: whatever a CLI answers, a folder is absolute, clean and of a bounded length.
func FuzzRoots(f *testing.F) {
	for _, seed := range []string{
		`{"roots":[{"uri":"file:///w/a%20b","name":"x"}]}`, `{"roots":[{"uri":"file://host/w"}]}`, `{"roots":[{"uri":"FILE:///w/../.."}]}`,
		`{"roots":[{"uri":"file:///%00"}]}`, `{"roots":[{"uri":7}]}`, `{"roots":{}}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, result []byte) {
		if folder := firstFolder(result); folder != "" &&
			(!filepath.IsAbs(folder) || filepath.Clean(folder) != folder || len(folder) > maxFolder || strings.ContainsRune(folder, 0)) {
			t.Errorf("of %q: %q", result, folder)
		}
	})
}
