package qwen

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
)

// SPEC: which of several locks Qwen Code takes.
func TestChoose(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	app, link := filepath.Join(base, "app"), filepath.Join(base, "link")
	if err := os.MkdirAll(filepath.Join(app, "..sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(app, link); err != nil {
		t.Fatal(err)
	}
	const living, gone = 7, 8
	lock := func(pid int, root string) string {
		return fmt.Sprintf(`{"port":1,"ppid":%d,"workspacePath":"[%s]"}`, pid, fmt.Sprintf(`\"%s\"`, filepath.ToSlash(root)))
	}
	for name, tt := range map[string]struct {
		locks []string // the oldest first; the n-th is called n.lock
		dir   string   // where Qwen Code starts; the app's folder when ""
		port  string
		taken string
	}{
		"none":                      {},
		"the only one":              {locks: []string{lock(living, app)}, taken: "1.lock"},
		"the newest":                {locks: []string{lock(living, app), lock(living, app)}, taken: "2.lock"},
		"the newest is elsewhere":   {locks: []string{lock(living, app), lock(living, base+"/other")}, taken: "1.lock"},
		"the newest is dead":        {locks: []string{lock(living, app), lock(gone, app)}, taken: "1.lock"},
		"the newest is broken":      {locks: []string{lock(living, app), "{"}, taken: "1.lock"},
		"the variable's":            {locks: []string{lock(living, app), lock(living, app)}, port: "1", taken: "1.lock"},
		"the variable's, elsewhere": {locks: []string{lock(living, base+"/other"), lock(living, app)}, port: "1", taken: "2.lock"},
		"the variable's is missing": {locks: []string{lock(living, app)}, port: "9", taken: "1.lock"},
		"through a link":            {locks: []string{lock(living, link)}, taken: "1.lock"},
		"in a link":                 {locks: []string{lock(living, app)}, dir: link, taken: "1.lock"},
		"a folder below":            {locks: []string{lock(living, app)}, dir: filepath.Join(app, "..sub"), taken: "1.lock"},
		"the folder above":          {locks: []string{lock(living, app)}, dir: base},
		"a neighbour's name":        {locks: []string{lock(living, app[:len(app)-1])}},
		"a plain path":              {locks: []string{`{"port":1,"workspacePath":"` + filepath.ToSlash(app) + `"}`}, taken: "1.lock"},
		"no folder":                 {locks: []string{`{"port":1,"workspacePath":""}`}},
	} {
		home := t.TempDir()
		for i, text := range tt.locks {
			path := filepath.Join(lockfile.Dir(home), fmt.Sprintf("%d.lock", i+1))
			write(t, path, text)
			at := time.Now().Add(time.Duration(i-100) * time.Minute)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(lockfile.Dir(home), "x.lock"), lock(living, app))
		if tt.dir == "" {
			tt.dir = app
		}
		c := Choose(lockfile.World{Home: home, Dir: tt.dir, Alive: func(pid int) bool { return pid == living }, Getenv: func(name string) string {
			return map[string]string{PortVariable: tt.port}[name]
		}})
		taken := ""
		if c.Taken >= 0 {
			taken = c.Candidates[c.Taken].Name
		}
		if taken != tt.taken || len(c.Candidates) != len(tt.locks) {
			t.Errorf("%s: %q of %+v, want %q", name, taken, c.Candidates, tt.taken)
		}
	}
}
