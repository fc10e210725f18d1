package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pollux-companion/pollux/internal/safefile"
)

const (
	recordPrefix = "run-"
	recordNew    = "new-" // a record that is still being written
	// recordVersion is the version of the record format.
	recordVersion = 1
	// maxRecord bounds the size of a record that is read, in bytes.
	maxRecord = 256 * mib
	// dying bounds how long a sandbox may take to end after pollux was killed.
	dying = 10 * time.Second
)

// A record lets a later start of pollux finish the quarantine of a run whose pollux was killed. The file is locked
// while that pollux lives.
type record struct {
	Version int   `json:"version"`
	Stage   int   `json:"stage"`   // the first process of the sandbox; all others end with it
	Started int64 `json:"started"` // its start time from /proc, because process numbers are reused
	Until   int64 `json:"until"`   // the command cannot live longer; nanoseconds
	Watch   watch `json:"watch"`
}

// A recordFile is a record on disk.
type recordFile struct{ f *os.File }

// keep writes the record of a run that is about to start.
func (s *Sandbox) keep(w *watch, stage int, most time.Duration) (_ *recordFile, err error) {
	if s.o.Records == "" || w.empty() {
		return nil, nil
	}
	defer func() {
		if err != nil {
			err = &SetupError{Phase: "record", Cause: fmt.Sprintf("what a later start of pollux needs, should this one be killed, could not be written: %v", err),
				Fix: fmt.Sprintf("make %q writable, or set XDG_STATE_HOME to a folder that is", s.o.Records)}
		}
	}()
	if err := safefile.PrivateDir(s.o.Records); err != nil {
		return nil, err
	}
	data, err := json.Marshal(record{Version: recordVersion, Stage: stage, Started: startOf(stage), Until: time.Now().Add(most + time.Minute).UnixNano(), Watch: *w})
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(s.o.Records, recordNew)
	if err != nil {
		return nil, err
	}
	r := &recordFile{f}
	if _, err = safefile.TryLock(f); err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = os.Rename(f.Name(), r.final())
	}
	if err != nil {
		r.drop(f.Name())
		return nil, err
	}
	return r, nil
}

// done removes the record after the quarantine.
func (r *recordFile) done() {
	if r != nil {
		r.drop(r.final())
	}
}

// final returns the path of a complete record.
func (r *recordFile) final() string {
	dir, name := filepath.Split(r.f.Name())
	return filepath.Join(dir, strings.Replace(name, recordNew, recordPrefix, 1))
}

func (r *recordFile) drop(path string) {
	_ = os.Remove(path) // if it stays, the next start does the quarantine again
	r.f.Close()
}

// finish does the quarantine of runs that were killed.
func (s *Sandbox) finish() []Quarantine {
	if s.o.Records == "" {
		return nil
	}
	names, _ := os.ReadDir(s.o.Records) // before the first run there is no folder
	var all []Quarantine
	for _, e := range names {
		path := filepath.Join(s.o.Records, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), recordPrefix):
			all = append(all, s.finishOne(path)...)
		case strings.HasPrefix(e.Name(), recordNew):
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
				_ = os.Remove(path) // its command was never started
			}
		}
	}
	return all
}

// finishOne does the quarantine of one record, unless its pollux lives.
func (s *Sandbox) finishOne(path string) []Quarantine {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil // another pollux has just done it
	}
	defer f.Close()
	if locked, err := safefile.TryLock(f); err != nil || !locked {
		return nil
	}
	if here, err := os.Lstat(path); err != nil || !same(f, here) {
		return nil // another pollux did it between the two calls
	}
	var r record
	data, err := safefile.ReadPrivate(path, maxRecord)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.Version != recordVersion {
		err = errors.New("another version of pollux wrote it")
	}
	if err == nil && !ended(r.Stage, r.Started) {
		return nil // the sandbox still lives; try at the next start
	}
	_ = os.Remove(path) // even on an error, or it would be tried forever
	if err != nil {
		return []Quarantine{{Path: path, Err: "the record of a command that was cut off cannot be used: " + err.Error(), Earlier: true}}
	}
	found := r.Watch.quarantine(r.Until)
	for i := range found {
		found[i].Earlier = true
	}
	return found
}

func same(f *os.File, other os.FileInfo) bool {
	info, err := f.Stat()
	return err == nil && os.SameFile(info, other)
}

// ended waits for a process, and so its sandbox, to be gone; false if it is not within dying.
func ended(pid int, started int64) bool {
	for deadline := time.Now().Add(dying); ; time.Sleep(5 * time.Millisecond) {
		if now := startOf(pid); now == 0 || now != started {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// startOf returns when a process started, in ticks since boot; 0 if it has ended.
func startOf(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	started, _ := strconv.ParseInt(fields[19], 10, 64) // 0: it has ended
	return started
}
