package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// maxEvent bounds one event of a stream, in bytes; the CLI has no limit.
const maxEvent = 80 << 20

var errEventSize = errors.New("an event of more than 80 MiB")

// An sseEvent is one event of a stream.
type sseEvent struct {
	id, name string
	data     []byte
}

// readEvents reads an event stream to its end (nil) or a fault. It ignores comments and calls retried for each retry
// line. An id also applies to the events that follow, as the standard says.
func readEvents(r io.Reader, retried func(time.Duration), heard func(sseEvent)) error {
	in := bufio.NewReaderSize(r, 32<<10)
	var e sseEvent
	var data bytes.Buffer
	has, first := false, true
	for {
		line, err := readLine(in, maxEvent-data.Len())
		if errors.Is(err, io.EOF) {
			return nil // an event without a closing empty line does not count
		}
		if err != nil {
			return err
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
			first = false
		}
		if len(line) == 0 {
			if has {
				e.data = bytes.Clone(data.Bytes())
				heard(e)
			}
			e.name, has = "", false
			data.Reset()
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if has {
				data.WriteByte('\n')
			}
			has = true
			data.Write(value)
		case "event":
			e.name = string(value)
		case "id":
			if !strings.ContainsRune(string(value), 0) {
				e.id = string(value)
			}
		case "retry":
			if ms, err := strconv.Atoi(string(value)); err == nil && digits(string(value)) {
				retried(time.Duration(ms) * time.Millisecond)
			}
		}
	}
}

// readLine reads a line without its end, LF or CR LF. (In the standard a lone CR ends a line too; no companion writes
// one.)
func readLine(in *bufio.Reader, room int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > room {
			return nil, errEventSize
		}
		if err == nil {
			return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}
