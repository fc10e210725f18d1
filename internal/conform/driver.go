package conform

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrUnsupported: the driver cannot do what it was asked.
var ErrUnsupported = errors.New("the driver does not support it")

// A Driver plays the user in front of an editor. Do performs one line (docs/conform.md lists them) and returns when
// the editor shows the result.
type Driver interface {
	Do(ctx context.Context, line string) error
}

// driverWait bounds the time for one line.
const driverWait = 20 * time.Second

// contextDelay is longer than a companion may delay a context.
const contextDelay = 250 * time.Millisecond

// drive performs one line of a vector: file lines itself, the rest by the driver.
func (r *run) drive(line string) error {
	var do struct {
		File, Content, Remove string
		Settle                bool
		Fails                 json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &do); err != nil {
		return err
	}
	switch {
	case do.File != "":
		return os.WriteFile(filepath.Join(r.dir, do.File), []byte(do.Content), 0o600)
	case do.Remove != "":
		return os.Remove(filepath.Join(r.dir, do.Remove))
	case do.Settle:
		return r.pause(contextDelay)
	case do.Fails != nil:
		err := r.t.Driver.Do(r.ctx, string(do.Fails))
		if err == nil {
			return fmt.Errorf("%s was done", do.Fails)
		}
		if errors.Is(err, ErrUnsupported) {
			return err
		}
		return nil
	}
	return r.t.Driver.Do(r.ctx, line)
}

func (r *run) pause(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// A LineDriver speaks the line protocol: it writes one JSON object per line and reads one answer to each.
type LineDriver struct {
	out   io.Writer
	lines chan string // the driver's output; closed at its end
}

// NewLineDriver starts a goroutine that reads in until its end.
func NewLineDriver(in io.Reader, out io.Writer) *LineDriver {
	d := &LineDriver{out: out, lines: make(chan string, 1)}
	go func() {
		defer close(d.lines)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			d.lines <- lines.Text()
		}
	}()
	return d
}

// Do writes a line and waits for the answer: {"ok":true}, {"error":"why"} or {"unsupported":true}.
func (d *LineDriver) Do(ctx context.Context, line string) error {
	if _, err := io.WriteString(d.out, line+"\n"); err != nil {
		return fmt.Errorf("the driver is gone: %w", err)
	}
	timer := time.NewTimer(driverWait)
	defer timer.Stop()
	select {
	case text, ok := <-d.lines:
		if !ok {
			return errors.New("the driver has ended")
		}
		return reply(text)
	case <-timer.C:
		return fmt.Errorf("the driver has not answered %.80q within %v", line, driverWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func reply(text string) error {
	var a struct {
		OK          bool   `json:"ok"`
		Error       string `json:"error"`
		Unsupported bool   `json:"unsupported"`
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return fmt.Errorf("the driver says %.80q, which is not JSON", text)
	}
	switch {
	case a.Unsupported:
		return ErrUnsupported
	case a.OK:
		return nil
	case a.Error == "":
		return fmt.Errorf("the driver says %.80q: neither ok nor error nor unsupported", text)
	}
	return errors.New(a.Error)
}
