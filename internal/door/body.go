package door

import (
	"errors"
	"io"
	"runtime/debug"
	"sync/atomic"
)

// Errors of reading a body.
var (
	// ErrTooLarge: the body is longer than it may be.
	ErrTooLarge = errors.New("the body is too large")
	// ErrNotJSON: the body begins like nothing that was asked for.
	ErrNotJSON = errors.New("the body is not JSON")
	// ErrBusy: the bodies that are being read fill the budget.
	ErrBusy = errors.New("too many large requests at once; try again")
)

// A Budget bounds the memory of the bodies that are in work at one time. Its
// methods may be called from any goroutine. The zero value has no room.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of n bytes.
func NewBudget(n int64) *Budget {
	b := &Budget{}
	b.left.Store(n)
	return b
}

const (
	// freeBody is the size up to which a body costs no budget; half of it is
	// allocated before any of a body of unknown length has come.
	freeBody = 256 << 10
	// pieceSize is the size from which a body of unknown length is kept in
	// pieces: to move it into ever larger memory would take half as much again.
	pieceSize = 8 << 20
	// noticed is the size from which the memory of a body that was refused is
	// given back to the system at once, not when the process gets round to it.
	noticed = 1 << 20
)

// Read reads a whole body of JSON of the given length (-1 when unknown), at most
// limit bytes. It takes memory as bytes arrive, not as they are announced: a
// peer that promises much and sends little holds little, and what cannot be JSON
// is not waited for. A body that is refused leaves nothing behind. release gives
// the budget back; it is never nil.
func (b *Budget) Read(r io.Reader, length, limit int64) (body []byte, release func(), err error) {
	i := &intake{budget: b, length: length, limit: limit}
	if length > limit {
		return nil, i.release, ErrTooLarge
	}
	body, err = i.read(r)
	if err != nil && i.held > noticed {
		i.full, i.buf = nil, nil
		debug.FreeOSMemory()
	}
	return body, i.release, err
}

// An intake is one body on its way in.
type intake struct {
	budget        *Budget
	length, limit int64
	held          int64    // of the budget
	full          [][]byte // the pieces before buf
	size          int64    // of full
	buf           []byte
}

func (i *intake) release() {
	i.budget.left.Add(i.held)
	i.held = 0
}

func (i *intake) read(r io.Reader) ([]byte, error) {
	i.buf = make([]byte, 0, firstSize(i.length))
	for {
		n, err := r.Read(i.buf[len(i.buf):cap(i.buf)])
		i.buf = i.buf[:len(i.buf)+n]
		switch {
		case i.size+int64(len(i.buf)) > i.limit:
			return nil, ErrTooLarge
		case err == io.EOF:
			return i.join()
		case err != nil:
			return nil, err
		}
		if len(i.buf) == cap(i.buf) {
			if err := i.grow(); err != nil {
				return nil, err
			}
		}
	}
}

// grow makes room in buf, which is full.
func (i *intake) grow() error {
	have := int64(cap(i.buf))
	if i.size == 0 && !begins(i.buf) {
		return ErrNotJSON
	}
	if i.length < 0 && have >= pieceSize {
		next := min(pieceSize, i.limit+1-i.size-have)
		if !i.take(i.held + next) {
			return ErrBusy
		}
		i.full, i.size = append(i.full, i.buf), i.size+have
		i.buf = make([]byte, 0, next)
		return nil
	}
	next := min(have*4, i.limit+1)
	if i.length >= have && i.length <= have*50 { // enough of it is here
		next = i.length + 1
	}
	if !i.take(next) {
		return ErrBusy
	}
	i.buf = append(make([]byte, 0, next), i.buf...)
	return nil
}

// take changes what is held of the budget.
func (i *intake) take(bytes int64) bool {
	if i.budget.left.Add(i.held-bytes) < 0 {
		i.budget.left.Add(bytes - i.held)
		return false
	}
	i.held = bytes
	return true
}

// join makes one of the pieces.
func (i *intake) join() ([]byte, error) {
	if i.size == 0 {
		return i.buf, nil
	}
	total := i.size + int64(len(i.buf))
	if !i.take(i.held + total) {
		return nil, ErrBusy
	}
	body := make([]byte, 0, total)
	for _, piece := range i.full {
		body = append(body, piece...)
	}
	body = append(body, i.buf...)
	i.full, i.buf = nil, nil
	i.take(total)
	return body, nil
}

// begins says whether b may be the beginning of an object or an array.
func begins(b []byte) bool {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '{' || c == '['
		}
	}
	return false // nobody begins with that much space
}

// firstSize is what is allocated before a byte has come: all of a small body
// and one byte more, so that its end is seen without growing.
func firstSize(length int64) int64 {
	if length >= 0 && length < freeBody {
		return length + 1
	}
	return freeBody / 2
}
