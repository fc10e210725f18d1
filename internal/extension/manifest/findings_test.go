package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata and the files in docs")

// TestFindings runs the archives of testdata/findings: an extension's files,
// and what Load says about them (SPEC E-1…E-4).
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("testdata/findings/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d archives, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir, want := t.TempDir(), ""
			var kept []txtar.File
			for _, f := range archive.Files {
				if f.Name == "findings" {
					want = string(f.Data)
					continue
				}
				kept = append(kept, f)
				write(t, filepath.Join(dir, f.Name), string(f.Data))
			}
			got := findingsOf(t, dir)
			if *update {
				archive.Files = append(kept, txtar.File{Name: "findings", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings differ (-want +got); go test -update rewrites them\n%s", diff)
			}
		})
	}
}

func findingsOf(t *testing.T, dir string) string {
	t.Helper()
	_, found, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range found {
		if filepath.Dir(f.File) != dir {
			t.Errorf("finding in %s", f.File)
		}
		f.File = filepath.Base(f.File)
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
