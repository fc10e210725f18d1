package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular marks a path without content on a disk: a folder, FIFO, socket, device, or a file that the kernel
// generates while it is read.
var ErrNotRegular = errors.New("not a regular file")

// notRegular is an ErrNotRegular that names the kind of file, as the rest of a sentence that begins with the path.
type notRegular struct{ text string }

func (e *notRegular) Error() string        { return e.text }
func (e *notRegular) Is(target error) bool { return target == ErrNotRegular }

// ErrTooBig marks a file that is larger than its reader allows.
var ErrTooBig = errors.New("too large")

// ErrChanging marks a file that was replaced or written while it was being read.
var ErrChanging = errors.New("changed while it was being read; try again")

// OpenRegular opens a file whose name came from somebody else. It follows links and never blocks: it checks the file
// before opening it, opens without blocking, and checks again. The error is ErrNotRegular, ErrChanging or the
// system's. None names the path; the first two complete a sentence that begins with it: "x is a folder".
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	before, err := os.Stat(path)
	if err != nil {
		return nil, nil, Cause(err)
	}
	if err := regular(before); err != nil {
		return nil, nil, err
	}
	if err := notMadeUp(path); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|NoWait, 0)
	if err != nil {
		return nil, nil, Cause(err)
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = ErrChanging
	}
	if err != nil {
		f.Close()
		return nil, nil, Cause(err)
	}
	return f, after, nil
}

// readTries is how often ReadRegular starts again when the file is written meanwhile.
const readTries = 3

// ReadRegular reads a file of at most limit bytes, opened like OpenRegular. It returns the content at one moment. A
// file that is written again and again meanwhile is ErrChanging, a larger one ErrTooBig.
func ReadRegular(path string, limit int64) (data []byte, info fs.FileInfo, err error) {
	for range readTries {
		data, info, err = readOnce(path, limit)
		if !errors.Is(err, ErrChanging) {
			break
		}
	}
	return data, info, err
}

func readOnce(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, before, err := OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if before.Size() > limit {
		return nil, nil, ErrTooBig
	}
	data := make([]byte, before.Size()+1) // one more byte, to notice a larger file
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, nil, Cause(err)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, nil, Cause(err)
	}
	if int64(n) != before.Size() || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return nil, nil, ErrChanging
	}
	return data[:n], after, nil
}

// regular returns an error that names the kind of an irregular file.
func regular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &notRegular{"is a folder"}
	case mode&fs.ModeNamedPipe != 0:
		return &notRegular{"is a FIFO, not a regular file"}
	case mode&fs.ModeSocket != 0:
		return &notRegular{"is a socket, not a regular file"}
	case mode&fs.ModeDevice != 0:
		return &notRegular{"is a device, not a regular file"}
	}
	return &notRegular{"is not a regular file"}
}
