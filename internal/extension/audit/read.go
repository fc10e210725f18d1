package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// A Query chooses entries; the zero value chooses all.
type Query struct {
	Extension string    // of this extension alone, in any capitals
	Since     time.Time // not older than this
}

func (q Query) matches(e Entry) bool {
	return (q.Extension == "" || strings.EqualFold(q.Extension, e.Extension)) && !e.Time.Before(q.Since)
}

// followEvery is how late Follow may be.
const followEvery = 200 * time.Millisecond

// Read returns the entries that q chooses, in the order of their writing. It passes over
// damaged lines. A missing log is empty.
func (l *Log) Read(q Query) ([]Entry, error) {
	var all []Entry
	files, err := l.open()
	defer closeAll(files)
	for _, file := range files {
		if err == nil {
			err = file.drain(q, func(e Entry) error { all = append(all, e); return nil })
		}
	}
	return all, err
}

// Last returns the entries in the last bytes of the newest file, at most max, in the order of their writing.
func (l *Log) Last(max int64) (all []Entry, err error) {
	files, err := l.open()
	defer closeAll(files)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	newest := files[len(files)-1]
	if newest.info.Size() > max {
		if _, err := newest.Seek(-max, io.SeekEnd); err != nil { // the first line may then be incomplete, and is passed over
			return nil, err
		}
	}
	err = newest.drain(Query{}, func(e Entry) error { all = append(all, e); return nil })
	return all, err
}

// Follow calls f with the entries that q chooses, first the past ones and then each new
// one, until ctx ends or f fails. The end of ctx is no error.
func (l *Log) Follow(ctx context.Context, q Query, f func(Entry) error) error {
	files, err := l.open()
	defer func() { closeAll(files) }()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for err == nil {
		for i, file := range files {
			if err = file.drain(q, f); err != nil {
				return err
			}
			if i < len(files)-1 {
				file.Close()
			}
		}
		files = files[max(0, len(files)-1):] // the older ones have been read
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		files, err = l.next(files)
	}
	return err
}

// next adds the files that were created since the last one of files was opened.
func (l *Log) next(files []*reader) ([]*reader, error) {
	newer, err := l.open()
	if err != nil || len(files) == 0 {
		return newer, err
	}
	i := slices.IndexFunc(newer, func(r *reader) bool { return os.SameFile(r.info, files[0].info) })
	closeAll(newer[:i+1]) // -1: more was set aside than is kept, and all of it is new
	return append(files, newer[i+1:]...), nil
}

// open opens every file of the log, newest first, and returns the oldest first. A file
// that is rotated meanwhile is then opened twice instead of being missed.
func (l *Log) open() (files []*reader, err error) {
	defer func() { slices.Reverse(files) }()
	for n := range maxOld + 1 {
		path := l.Path()
		if n > 0 {
			path = l.old(n)
		}
		file, err := openLog(path, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, fmt.Errorf("the audit log %q cannot be read: %w", path, safefile.Cause(err))
		}
		info, err := file.Stat()
		if err != nil || !info.Mode().IsRegular() || slices.ContainsFunc(files, func(r *reader) bool { return os.SameFile(info, r.info) }) {
			file.Close()
			continue
		}
		files = append(files, &reader{File: file, info: info})
	}
	return files, nil
}

func closeAll(files []*reader) {
	for _, f := range files {
		f.Close()
	}
}

// A reader reads the complete lines of one file.
type reader struct {
	*os.File
	info os.FileInfo
	half []byte // the beginning of a line
}

// drain gives f what has come since the last call.
func (r *reader) drain(q Query, f func(Entry) error) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		r.half = append(r.half, buf[:n]...)
		for {
			line, rest, complete := bytes.Cut(r.half, []byte("\n"))
			if !complete {
				break
			}
			r.half = rest
			var e Entry
			if json.Unmarshal(line, &e) == nil && e.Event != "" && q.matches(e) {
				if err := f(e); err != nil {
					return err
				}
			}
		}
		if len(r.half) > 4*maxLine {
			r.half = r.half[:0] // not a line of the log
		}
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the audit log %q cannot be read: %w", r.Name(), safefile.Cause(err))
		}
	}
}
