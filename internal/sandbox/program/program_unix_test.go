//go:build unix

package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/paths"
)

// FuzzInterpreterFiles: reading files of environments and version managers never panics, and never chooses anything
// outside their folder.
func FuzzInterpreterFiles(f *testing.F) {
	for _, seed := range []string{"home = /usr/bin", "[tools]\npython = [\"3.12\", '3.11']\nnode=\"20\"", "nodejs 20 ref:x path:/y # c", "../../x", "#define NODE_MAJOR_VERSION 20"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	for _, name := range []string{"3.11", "3.12.1", "3.12.10", "v20"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		venvHome(text)
		envProgram(strings.Fields(text))
		all := map[string][]string{}
		miseTools(text, all)
		toolVersions(text, all)
		for _, versions := range all {
			for _, want := range versions {
				if got := filepath.Join(dir, pick(dir, want)); !paths.Within(dir, got) {
					t.Errorf("%q chooses %q", want, got)
				}
			}
		}
		if got := filepath.Join(dir, pick(dir, text)); !paths.Within(dir, got) {
			t.Errorf("%q chooses %q", text, got)
		}
	})
}

// TestNodeVersion: only a Node's headers tell its version; nothing is run.
func TestNodeVersion(t *testing.T) {
	for text, want := range map[string]string{
		"#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 21\n#define NODE_PATCH_VERSION 0\n": "22.21.0",
		"#define NODE_MAJOR_VERSION 22\n": "", "#define NODE_MAJOR_VERSION x\n#define NODE_MINOR_VERSION 1\n#define NODE_PATCH_VERSION 2\n": "", "": "",
	} {
		dir := t.TempDir()
		mark := filepath.Join(dir, "ran")
		for name, content := range map[string]string{"bin/node": "#!/bin/sh\necho x >" + mark + "\necho v22.21.0\n", "include/node/node_version.h": text} {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if got := NodeVersion(filepath.Join(dir, "bin/node")); got != want || exists(mark) {
			t.Errorf("%q: %q", text, got)
		}
	}
}
