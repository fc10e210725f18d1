package settings

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestLevel(t *testing.T) {
	for word, want := range map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		if got, err := Level(word); err != nil || got != want {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	for _, word := range []string{"", "INFO", "info+2", "loud"} {
		if _, err := Level(word); err == nil {
			t.Errorf("%q is a level", word)
		}
	}
}

func TestOpenLog(t *testing.T) {
	d := Dirs{State: filepath.Join(t.TempDir(), "state", "pollux")}
	var also bytes.Buffer
	log, closer := OpenLog(d, slog.LevelInfo, &also)
	if _, err := os.Stat(d.State); err == nil {
		t.Error("the folder was made before there was anything to say")
	}
	log.Debug("unheard")
	log.With("port", 5).WithGroup("g").Warn("heard", "x", 1)
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	log.Warn("after the end")
	data, err := os.ReadFile(d.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("msg=heard pid=%d port=5 g.x=1\n", os.Getpid())
	if strings.Count(string(data), "\n") != 1 || !strings.HasSuffix(string(data), want) {
		t.Errorf("the log holds %q, want one line that ends in %q", data, want)
	}
	if got := also.String(); !strings.Contains(got, want) || strings.Contains(got, "unheard") {
		t.Errorf("standard error got %q", got)
	}
	if info, _ := os.Stat(d.LogFile()); info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the log: %v", info.Mode())
	}
}

// An unwritable log stops nobody.
func TestLogUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	log, closer := OpenLog(Dirs{State: file}, slog.LevelInfo, nil)
	log.Info("x")
	log.Info("y")
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	os.Symlink(file, filepath.Join(dir, "pollux.log"))
	log, closer = OpenLog(Dirs{State: dir}, slog.LevelInfo, nil)
	log.Info("x")
	closer.Close()
	if data, _ := os.ReadFile(file); len(data) > 0 {
		t.Error("the log followed a link")
	}
}

// Several processes share the log. Lines stay whole, only old ones are lost, and the log stays small.
func TestLogShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pollux.log")
	const writers, lines, max = 4, 300, 8 << 10
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			l := &logFile{path: path, max: max} // its own logFile, as another process has
			defer l.Close()
			for i := range lines {
				if _, err := fmt.Fprintf(l, "writer %d line %03d.\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for _, p := range []string{path, path + ".1"} {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > max+writers*30 {
			t.Errorf("%s has %d bytes", p, len(data))
		}
		for line := range strings.Lines(string(data)) {
			if len(line) != len("writer 0 line 000.\n") {
				t.Errorf("%s: a torn line %q", p, line)
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 2 {
		t.Errorf("%d files, want the log and one old one", len(entries))
	}
}
