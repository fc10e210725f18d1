package web_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/peers"
)

// The page that is built into pollux is the one that web/ describes.
func TestAssets(t *testing.T) {
	const repair = "repair with: npm ci --prefix web && npm run build --prefix web"
	peers.Need(t, peers.Esbuild)
	node := peers.Need(t, peers.Node)
	build, err := filepath.Abs("../../../web/build.mjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := filepath.Join(t.TempDir(), "assets")
	cmd := exec.CommandContext(ctx, node, build, out)
	cmd.Dir = filepath.Dir(build)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the page does not build: %v\n%s", err, text)
	}
	want, have := tree(t, out), tree(t, "assets")
	for name, data := range want {
		if !bytes.Equal(have[name], data) {
			t.Errorf("assets/%s is not what its sources make; %s", name, repair)
		}
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			t.Errorf("assets/%s is not made by any source; %s", name, repair)
		}
	}
}

// tree reads all files below dir.
func tree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
