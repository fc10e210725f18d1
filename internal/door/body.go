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
	// ErrNotJSON: the body does not begin like a JSON object or array.
	ErrNotJSON = errors.New("the body is not JSON")
	// ErrBusy: the bodies that are being read fill the budget; the same request may succeed later.
	ErrBusy = errors.New("too many large requests at once; try again")
)

// A Budget bounds the memory, in bytes, of the bodies that are read and worked on at one time. Its
// methods may be called from any goroutine. The zero value has no room.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of n bytes.
func NewBudget(n int64) *Budget {
	b := &Budget{}
	b.left.Store(n)
	return b
}

const (
	// freeBody is the size up to which a body costs no budget. Half of it is allocated
	// before any byte of a body of unknown length has come.
	freeBody = 256 << 10
	// pieceSize is the size from which a body of unknown length is kept in pieces. Moving
	// it into ever larger memory would take half as much memory again.
	pieceSize = 8 << 20
	// noticed is the size from which the memory of a refused body goes back to the system
	// at once. Three refused bodies of 64 MiB leave 1 MB like this, and 136 MB without it, still after half a minute.
	noticed = 1 << 20
)

// Read reads a whole body of JSON of the given length (-1 when unknown), at most limit
// bytes. It allocates as bytes arrive, not as they are announced, so that a peer that
// promises much and sends little costs little. It does not wait for the rest of a body
// that cannot be JSON. A refused body leaves nothing behind. Call release to give the
// budget back; release is never nil. The errors are ErrTooLarge, ErrNotJSON, ErrBusy,
// and the reader's own.
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
		if !i.reserve(i.held + next) {
			return ErrBusy
		}
		i.full, i.size = append(i.full, i.buf), i.size+have
		i.buf = make([]byte, 0, next)
		return nil
	}
	next := min(have*4, i.limit+1)
	if i.length >= have && i.length <= have*50 { // enough has come to believe the length
		next = i.length + 1
	}
	if !i.reserve(next) {
		return ErrBusy
	}
	i.buf = append(make([]byte, 0, next), i.buf...)
	return nil
}

// reserve changes the intake's share of the budget; false when the budget has no room.
func (i *intake) reserve(bytes int64) bool {
	if i.budget.left.Add(i.held-bytes) < 0 {
		i.budget.left.Add(bytes - i.held)
		return false
	}
	i.held = bytes
	return true
}

// join puts the pieces together.
func (i *intake) join() ([]byte, error) {
	if i.size == 0 {
		return i.buf, nil
	}
	total := i.size + int64(len(i.buf))
	if !i.reserve(i.held + total) {
		return nil, ErrBusy
	}
	body := make([]byte, 0, total)
	for _, piece := range i.full {
		body = append(body, piece...)
	}
	body = append(body, i.buf...)
	i.full, i.buf = nil, nil
	i.reserve(total)
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
	return false // nobody sends that much space first
}

// firstSize is what is allocated before a byte has come: the whole of a small body, and
// one byte more, so that its end is seen without growing.
func firstSize(length int64) int64 {
	if length >= 0 && length < freeBody {
		return length + 1
	}
	return freeBody / 2
}
