package settings

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// maxLog is the size in bytes at which the log is rotated. One old file is kept.
const maxLog = 4 << 20

// Level converts the user's word to a slog level.
func Level(word string) (slog.Level, error) {
	var l slog.Level
	if oneOf(word, "debug", "info", "warn", "error") != nil || l.UnmarshalText([]byte(word)) != nil {
		return 0, fmt.Errorf("%q is not a log level; use debug, info, warn or error", word)
	}
	return l, nil
}

// OpenLog returns a logger that writes to the log file in the state folder and, unless also is nil, to also. It opens
// the file at the first line; all of the user's companions share it. If the log cannot be written, it drops lines
// silently: a log must not stop the program.
func OpenLog(d Dirs, level slog.Level, also io.Writer) (*slog.Logger, io.Closer) {
	f := &logFile{path: d.LogFile(), max: maxLog}
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(f, opts)
	if also != nil {
		h = both{h, slog.NewTextHandler(also, opts)}
	}
	return slog.New(h.WithAttrs([]slog.Attr{slog.Int("pid", os.Getpid())})), f
}

// both passes each record to two handlers.
type both [2]slog.Handler

func (b both) Enabled(ctx context.Context, l slog.Level) bool { return b[0].Enabled(ctx, l) }

func (b both) Handle(ctx context.Context, r slog.Record) error {
	err := b[0].Handle(ctx, r.Clone())
	if err2 := b[1].Handle(ctx, r); err == nil {
		err = err2
	}
	return err
}

func (b both) WithAttrs(as []slog.Attr) slog.Handler {
	return both{b[0].WithAttrs(as), b[1].WithAttrs(as)}
}

func (b both) WithGroup(name string) slog.Handler {
	return both{b[0].WithGroup(name), b[1].WithGroup(name)}
}

// A logFile appends whole lines to a file that several processes share, and rotates it when it is full. Each line is
// one write in append mode, so lines never mix. (A rotating writer for one process would overwrite the lines of
// others.)
type logFile struct {
	path string
	max  int64

	mu     sync.Mutex // guards the fields below
	f      *os.File
	broken bool // opening failed; no retry
	closed bool
}

func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.broken {
		return len(line), nil
	}
	if err := l.ready(); err != nil {
		l.broken = true
		return 0, err
	}
	return l.f.Write(line)
}

// ready opens the file. It reopens it when the file is full or another process has rotated it.
func (l *logFile) ready() error {
	if l.f != nil {
		info, err := l.f.Stat()
		if err == nil && info.Size() < l.max {
			return nil
		}
		// Full. Only the first process to notice rotates it.
		if now, err2 := os.Lstat(l.path); err == nil && err2 == nil && os.SameFile(info, now) {
			_ = os.Rename(l.path, l.path+".1")
		}
		l.f.Close()
		l.f = nil
	}
	if err := safefile.PrivateDir(filepath.Dir(l.path)); err != nil {
		return err
	}
	if info, err := os.Lstat(l.path); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("the log %q is not a regular file", l.path)
		}
		if info.Size() >= l.max {
			_ = os.Rename(l.path, l.path+".1")
		}
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|safefile.NoWait, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	l.f = f
	return nil
}

// Close ends the log. Later lines are dropped.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}
