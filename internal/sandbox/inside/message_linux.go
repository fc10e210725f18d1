package inside

import (
	"errors"
	"io"
	"strconv"
	"syscall"
)

// SetupVersion is checked on arrival: the binary could have been replaced between the two starts. (The second start
// goes by descriptor, so this should not happen.)
const SetupVersion = 2

// The largest messages, in bytes. A setup carries the files of copies and long arguments; a report is short.
const (
	maxSetup  = 64 << 20
	maxReport = 64 << 10
)

// A wire writes values one after the other, or reads them in the same order. JSON would need packages that are not
// initialised this early.
type wire struct {
	data    []byte
	reading bool
	broken  bool // the data ended too early or is invalid
}

func (w *wire) setup(s *Setup) {
	w.int(&s.Version)
	w.flag(&s.Reduced)
	w.text(&s.Private)
	w.flag(&s.Root.Host)
	w.flag(&s.Root.Write)
	list(w, &s.Mounts, w.mount)
	network := s.Net != nil
	if w.flag(&network); network {
		if w.reading {
			s.Net = new(Network)
		}
		w.int(&s.Net.Proxy)
		list(w, &s.Net.Ports, w.int)
		list(w, &s.Net.Tap, w.instruction)
	}
	w.text(&s.Path)
	list(w, &s.Args, w.text)
	list(w, &s.Env, w.text)
	w.text(&s.Dir)
	w.number((*int64)(&s.Limits.CPU))
	w.number(&s.Limits.Memory)
	w.number(&s.Limits.Scratch)
	w.number(&s.Limits.FileSize)
	w.int(&s.Limits.Processes)
	w.int(&s.Limits.Files)
	w.flag(&s.PIDMax)
	list(w, &s.Canary, w.text)
	list(w, &s.Filter, w.instruction)
	w.text(&s.Fail)
}

func (w *wire) mount(m *Mount) {
	w.text(&m.Show)
	w.text(&m.Target)
	w.text(&m.Source)
	w.flag(&m.Write)
	w.text(&m.Data)
	list(w, &m.Files, func(f *File) {
		w.text(&f.Name)
		w.bytes(&f.Data)
		w.flag(&f.Executable)
	})
}

func (w *wire) instruction(f *syscall.SockFilter) {
	v := int64(f.Code)<<48 | int64(f.Jt)<<40 | int64(f.Jf)<<32 | int64(f.K)
	w.number(&v)
	*f = syscall.SockFilter{Code: uint16(v >> 48), Jt: uint8(v >> 40), Jf: uint8(v >> 32), K: uint32(v)}
}

func (w *wire) report(r *Report) {
	w.flag(&r.Hello)
	w.flag(&r.Ready)
	w.flag(&r.Started)
	w.text(&r.Phase)
	w.text(&r.Cause)
	w.int(&r.Errno)
	w.flag(&r.Ended)
	w.int(&r.Status)
	w.number(&r.Memory)
	w.number(&r.CPU)
}

// number is eight bytes, little endian.
func (w *wire) number(v *int64) {
	if !w.reading {
		for i := range 8 {
			w.data = append(w.data, byte(*v>>(8*i)))
		}
		return
	}
	var n uint64
	for i, b := range w.take(8) {
		n |= uint64(b) << (8 * i)
	}
	*v = int64(n)
}

func (w *wire) int(v *int) {
	n := int64(*v)
	w.number(&n)
	*v = int(n)
}

func (w *wire) flag(v *bool) {
	if !w.reading {
		w.data = append(w.data, 0)
		if *v {
			w.data[len(w.data)-1] = 1
		}
		return
	}
	b := w.take(1)
	*v = len(b) == 1 && b[0] != 0
}

func (w *wire) text(v *string) {
	n := len(*v)
	if w.int(&n); w.reading {
		*v = string(w.take(n))
		return
	}
	w.data = append(w.data, *v...)
}

func (w *wire) bytes(v *[]byte) {
	n := len(*v)
	if w.int(&n); w.reading {
		*v = w.take(n)
		return
	}
	w.data = append(w.data, *v...)
}

// take returns the next n bytes, or nil if fewer are left.
func (w *wire) take(n int) []byte {
	if n < 0 || n > len(w.data) {
		w.broken, w.data = true, nil
		return nil
	}
	taken := w.data[:n:n]
	w.data = w.data[n:]
	return taken
}

// list is the number of elements, then each element.
func list[T any](w *wire, v *[]T, each func(*T)) {
	n := len(*v)
	if w.int(&n); w.reading {
		if n < 0 || n > len(w.data) { // each element takes at least one byte
			w.broken, w.data = true, nil
			return
		}
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		each(&(*v)[i])
	}
}

// EncodeSetup returns the message that carries a setup.
func EncodeSetup(s *Setup) ([]byte, error) {
	w := wire{data: make([]byte, 4, 16<<10)}
	w.setup(s)
	return w.message(maxSetup)
}

// message returns what was written, preceded by its length.
func (w *wire) message(most int) ([]byte, error) {
	n := len(w.data) - 4
	if n > most {
		return nil, tooLong(n)
	}
	for i := range 4 {
		w.data[i] = byte(n >> (8 * i))
	}
	return w.data, nil
}

func tooLong(n int) error { return errors.New("a message of " + strconv.Itoa(n) + " bytes") }

// readMessage reads and decodes one message. Leftover bytes are an error.
func readMessage(r io.Reader, most int, decode func(*wire)) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16 | int(head[3])<<24
	if n > most {
		return tooLong(n)
	}
	w := wire{data: make([]byte, n), reading: true}
	if _, err := io.ReadFull(r, w.data); err != nil {
		return err
	}
	if decode(&w); w.broken || len(w.data) > 0 {
		return errors.New("a message that makes no sense")
	}
	return nil
}

// ReadReport reads the next report of the process inside.
func ReadReport(r io.Reader, rep *Report) error {
	return readMessage(r, maxReport, func(w *wire) { w.report(rep) })
}

// tell sends a report to the parent.
func tell(rep Report) error {
	if len(rep.Cause) > 8<<10 {
		rep.Cause = rep.Cause[:8<<10]
	}
	w := wire{data: make([]byte, 4)}
	w.report(&rep)
	data, err := w.message(maxReport)
	if err != nil {
		return err
	}
	return writeAll(controlFD, data)
}

// A descriptor is a file descriptor that is read without the runtime's poller.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	n, err := ignoringEINTR(func() (int, error) { return syscall.Read(int(d), p) })
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := ignoringEINTR(func() (int, error) { return syscall.Write(fd, data) })
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func ignoringEINTR[T any](f func() (T, error)) (T, error) {
	for {
		if v, err := f(); !errors.Is(err, syscall.EINTR) {
			return v, err
		}
	}
}
