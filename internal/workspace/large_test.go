package workspace

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// indexLarge gives w an index of 200,000 files in 1,000 folders, as a walk makes it.
func indexLarge(w *Workspace) {
	var b builder
	for i := range 1000 {
		var names []string
		for j := range 200 {
			names = append(names, fmt.Sprintf("file_with_a_name_%d.go", j))
		}
		b.add("/root", fmt.Sprintf("/root/internal/some/Package%d", i), names)
	}
	w.index.folders, w.index.whole, w.index.built = b.folders, true, time.Now().Add(time.Hour)
}

// A large workspace's index is small, and each key of a query is answered at once.
func TestFindLarge(t *testing.T) {
	pace.NotRaced(t, "it measures")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := &Workspace{}
	indexLarge(w)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if mb := float64(after.HeapAlloc-before.HeapAlloc) / 1e6; mb > 8 {
		t.Errorf("the index takes %.1f MB", mb)
	}
	for query, want := range map[string]string{
		"":               "/root/internal/some/Package0/file_with_a_name_0.go",
		"F":              "/root/internal/some/Package0/file_with_a_name_0.go",
		"package77name9": "/root/internal/some/Package77/file_with_a_name_9.go",
		"ISPA999NAME198": "/root/internal/some/Package999/file_with_a_name_198.go",
		"nothing like x": "",
	} {
		watch := pace.Start(t)
		found, err := w.Find(t.Context(), query, 50)
		if took := watch.Took(); took > pace.Slack*100*time.Millisecond {
			t.Errorf("%q took %v", query, took)
		}
		if got := strings.Join(found.Files[:min(1, len(found.Files))], ""); err != nil || got != want {
			t.Errorf("%q: %q, want %q; %v", query, got, want, err)
		}
	}
	runtime.KeepAlive(w)
}

func BenchmarkFind(b *testing.B) {
	w := &Workspace{}
	indexLarge(w)
	for _, query := range []string{"", "f", "pkgname12", "nothinglikex"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				if _, err := w.Find(context.Background(), query, 50); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
