package diagnose

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/contract"
	"github.com/pollux-companion/pollux/internal/conform"
)

// Every check is in a line of the table: those of each vector's chapter.
func TestSummary(t *testing.T) {
	t.Parallel()
	archives, err := contract.All()
	if err != nil || len(archives) == 0 {
		t.Fatal(len(archives), err)
	}
	for _, a := range archives {
		var out bytes.Buffer
		number := strings.TrimRight(a.Name, "abcdefghijklmnopqrstuvwxyz")
		printSummary(&out, []conform.Check{{Number: number, Result: conform.Pass}})
		if lines := strings.Count(out.String(), "\n"); lines != 4 { // an empty one, the head, the chapter, all
			t.Errorf("%s: %q", a.Name, out.String())
		}
	}
}
