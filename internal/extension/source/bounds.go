package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measure checks the sizes in a commit before checkout: a small pack can contain a tree that fills the disk.
func (g *git) measure(ctx context.Context, dir, id, sub string, l Limits) error {
	args := []string{"ls-tree", "-r", "-l", "-z", "--full-tree", id}
	if sub != "" {
		args = append(args, "--", sub+"/")
	}
	out, err := g.run(ctx, dir, args...)
	if errors.Is(err, errTooMuch) {
		return refuse("the repository", "lists more than %d entries", l.Files)
	}
	if err != nil {
		return err
	}
	if out == "" && sub != "" {
		return fmt.Errorf("%w: the repository has no folder %q at this commit", ErrNotFound, sub)
	}
	m := &meter{Limits: l}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		if err := m.entry(name); err != nil {
			return err
		}
		fields := strings.Fields(head) // mode, kind, id, size; "-" is the size of a submodule
		size, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
		if err != nil {
			continue
		}
		if err := m.size(name, size, size); err != nil {
			return err
		}
	}
	return nil
}

// boundPacks cancels the context when a server sends more than limit.
func boundPacks(ctx context.Context, dir string, limit int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	tick := time.NewTicker(500 * time.Millisecond)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if packed(dir) > limit {
					cancel(refuse("the repository", "is larger than the %d MiB that an extension may have", limit>>20))
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// packed returns the size of what git has received so far, in bytes.
func packed(dir string) (n int64) {
	entries, err := os.ReadDir(filepath.Join(dir, ".git", "objects", "pack"))
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// errTooMuch ends a git whose answer is too long.
var errTooMuch = errors.New("git answers with more than 8 MiB")

// limited is a writer that fails after left bytes.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errTooMuch
	}
	return l.w.Write(p)
}
