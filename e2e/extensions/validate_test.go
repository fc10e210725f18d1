package extensions

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/peers"
)

// What pollux finds valid the real CLI takes, and what the CLI refuses pollux
// refuses: held against the archives of the manifest package (SPEC E-1, E-4).
func TestValidateAgainstTheCLI(t *testing.T) {
	h := newHouse(t)
	root, err := peers.Root()
	must(t, err)
	archives, err := filepath.Glob(filepath.Join(root, "internal/extension/manifest/testdata/findings/*.txtar"))
	if err != nil || len(archives) < 20 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	taken, refused := 0, 0
	for _, a := range archives {
		archive, err := txtar.ParseFile(a)
		must(t, err)
		name := strings.TrimSuffix(filepath.Base(a), ".txtar")
		dir := filepath.Join(h.ws, name)
		for _, f := range archive.Files {
			if f.Name != "findings" {
				write(t, filepath.Join(dir, f.Name), string(f.Data))
			}
		}
		_, found, err := manifest.Load(dir)
		must(t, err)
		_, said, code := h.run(append(slices.Clone(h.gemini), "extensions", "validate", dir), "")
		if code == 0 {
			taken++
			continue
		}
		refused++
		if found.Err() == nil {
			t.Errorf("%s: pollux takes it, the CLI does not: %s", name, said)
		}
	}
	if taken < 8 || refused < 6 {
		t.Errorf("the CLI took %d and refused %d", taken, refused)
	}
	t.Logf("of %d the CLI took %d and refused %d", len(archives), taken, refused)
}

// The examples that the CLI brings are valid for pollux.
func TestTheCLIsExamples(t *testing.T) {
	program, err := filepath.EvalSymlinks(peers.Need(t, peers.Gemini))
	must(t, err)
	examples, err := filepath.Glob(filepath.Join(filepath.Dir(program), "examples", "*", manifest.FileName))
	if err != nil || len(examples) < 5 {
		t.Fatalf("%q, %v", examples, err)
	}
	for _, e := range examples {
		if _, found, err := manifest.Load(filepath.Dir(e)); err != nil || found.Err() != nil {
			t.Errorf("%s: %v, %v", e, err, found)
		}
	}
}
