// Package screen lets the output of programs that nobody trusts onto a
// terminal: text, colours and the cursor's movements pass, and nothing that a terminal obeys beyond its picture.
package screen

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// maxSequence bounds a control sequence, in bytes; longer ones are left out.
	maxSequence = 256
	// maxNumber bounds the numbers in one: no screen is larger, and some terminals count them off one by one.
	maxNumber = 9999
)

// A Filter passes on what may reach a terminal. Sequences pass whole or not at
// all, whichever way they are cut into writes. The terminal is taken to read UTF-8.
type Filter struct {
	to io.Writer
	mu *sync.Mutex // guards everything here, and the terminal

	state   state
	partial []byte // of a character of UTF-8
	seq     []byte // of a control sequence, after its introducer
	out     []byte // of the write in progress
	left    int    // sequences that were left out
	last    rune   // of a control string: what may be the first half of its end

	modes map[int]bool    // private modes as the program set them
	undo  map[string]bool // what puts back the rest of what it changed
}

type state int

const (
	text    state = iota
	escape        // after ESC
	charset       // after ESC and one of ()*+
	other         // after ESC and another intermediate byte
	control       // in a control sequence
	str           // in a control string, whose end is ST or BEL
)

// Pair makes two filters for one terminal, such as for a program's standard
// output and standard error: no sequence can be put together from both.
func Pair(out, err io.Writer) (*Filter, *Filter) {
	mu := new(sync.Mutex)
	make1 := func(w io.Writer) *Filter {
		return &Filter{to: w, mu: mu, modes: map[int]bool{}, undo: map[string]bool{}}
	}
	return make1(out), make1(err)
}

// Write passes on what is harmless. It holds back what is not complete.
func (f *Filter) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out = f.out[:0]
	data := p
	if len(f.partial) > 0 {
		data = append(slices.Clone(f.partial), p...)
		f.partial = nil
	}
	for len(data) > 0 {
		if !utf8.FullRune(data) {
			f.partial = slices.Clone(data)
			break
		}
		r, n := utf8.DecodeRune(data)
		f.rune(r)
		data = data[n:]
	}
	if len(f.out) == 0 {
		return len(p), nil
	}
	if _, err := f.to.Write(f.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close puts back what the program changed and did not put back itself: colours, modes, the alternate screen. It returns
// how many control sequences were left out.
func (f *Filter) Close() (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state != text {
		f.left++
		f.state = text
	}
	var b strings.Builder
	if len(f.partial) > 0 {
		b.WriteRune(utf8.RuneError)
	}
	for _, mode := range sorted(f.modes) {
		if f.modes[mode] != atStart(mode) {
			b.WriteString("\x1b[?" + strconv.Itoa(mode) + final(atStart(mode)))
		}
	}
	for _, text := range sorted(f.undo) {
		b.WriteString(text)
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(f.to, b.String()) // a terminal that has gone needs nothing
	}
	f.partial, f.modes, f.undo = nil, map[int]bool{}, map[string]bool{}
	return f.left
}

func sorted[K int | string](m map[K]bool) []K {
	var all []K
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// atStart says whether a mode is set on a terminal as shells use it: the cursor is seen and lines wrap.
func atStart(mode int) bool { return mode == 25 || mode == 7 }

func final(on bool) string {
	if on {
		return "h"
	}
	return "l"
}

// rune takes the next character.
func (f *Filter) rune(r rune) {
	switch f.state {
	case text:
		f.plain(r)
	case escape:
		f.escaped(r)
	case charset:
		f.designated(r)
	case other:
		if r < 0x20 || r > 0x2f {
			f.drop(r, r < 0x30 || r > 0x7e)
		}
	case control:
		f.inControl(r)
	case str:
		f.inString(r)
	}
}

// plain is a character outside of sequences.
func (f *Filter) plain(r rune) {
	switch {
	case r == 0x1b:
		f.state = escape
	case r == 0x9b:
		f.state, f.seq = control, f.seq[:0]
	case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
		f.state, f.last = str, 0
	case r >= '\a' && r <= '\r' || r == 0x0f:
		f.out = append(f.out, byte(r))
	case r == 0x0e: // the second set of characters
		f.out = append(f.out, byte(r))
		f.undo["\x0f"] = true
	case r == 0, r == 0x7f: // terminals do nothing about them
	case r < 0x20 || r >= 0x80 && r < 0xa0: // one of them has a terminal answer
		f.left++
	default:
		f.out = utf8.AppendRune(f.out, r)
	}
}

// drop ends a sequence that is left out; again says that r does not belong to it.
func (f *Filter) drop(r rune, again bool) {
	f.left++
	f.state = text
	if again {
		f.plain(r)
	}
}

// escaped is the character after ESC.
func (f *Filter) escaped(r rune) {
	switch {
	case r == '[':
		f.state, f.seq = control, f.seq[:0]
	case strings.ContainsRune("]PX^_", r):
		f.state, f.last = str, 0
	case strings.ContainsRune("()*+", r):
		f.state, f.seq = charset, append(f.seq[:0], byte(r))
	case r >= 0x20 && r <= 0x2f:
		f.state = other
	case strings.ContainsRune("78DEMH=>", r): // the cursor's place, lines, tabs, the keypad
		if r == '=' {
			f.undo["\x1b>"] = true
		}
		f.out = append(f.out, 0x1b, byte(r))
		f.state = text
	default:
		f.drop(r, r < 0x20 || r > 0x7e)
	}
}

// designated ends the choice of a set of characters.
func (f *Filter) designated(r rune) {
	if !strings.ContainsRune("012AB", r) {
		f.drop(r, r < 0x30 || r > 0x7e)
		return
	}
	f.out = append(f.out, 0x1b, f.seq[0], byte(r))
	if r != 'B' {
		f.undo["\x1b"+string(f.seq[:1])+"B"] = true
	}
	f.state = text
}

// inString waits for the end of a control string. None is passed on: titles, the clipboard, links, notifications, colours
// of the palette, pictures, queries and what single terminals have of their own.
func (f *Filter) inString(r rune) {
	switch {
	case r == '\a' || r == 0x9c || r == 0x18 || r == 0x1a || f.last == 0x1b && r == '\\':
		f.drop(r, false)
	case f.last == 0x1b: // something else begins
		f.left++
		f.state = escape
		f.rune(r)
	default:
		f.last = r
	}
}

// inControl collects a control sequence.
func (f *Filter) inControl(r rune) {
	switch {
	case r == 0x1b || r > 0x7e:
		f.drop(r, true)
	case r < 0x20: // a terminal would obey it in the middle of the sequence
		f.drop(r, r != 0x18 && r != 0x1a)
	case r >= 0x40:
		f.state = text
		if seq, ok := f.allowed(string(f.seq), byte(r)); ok && len(f.seq) < maxSequence {
			f.out = append(append(f.out, "\x1b["...), seq...)
		} else {
			f.left++
		}
	case len(f.seq) < maxSequence:
		f.seq = append(f.seq, byte(r))
	}
}

// allowed is a control sequence as it may pass: what moves the cursor, erases, scrolls and colours.
func (f *Filter) allowed(params string, end byte) (string, bool) {
	if mode, ok := strings.CutPrefix(params, "?"); ok {
		return f.private(mode, end)
	}
	whole := params + string(end)
	switch {
	case whole == "!p": // most modes as at the start
		return whole, true
	case end == 'q' && strings.HasSuffix(params, " "): // the cursor's shape
		f.undo["\x1b[0 q"] = true
		return whole, numbers(params[:len(params)-1], ";")
	case end == 'm':
		f.undo["\x1b[0m"] = true
		return whole, numbers(params, ";:")
	case !numbers(params, ";"):
		return "", false
	case end == 'J' && params == "3": // what has scrolled away is the user's
		return "", false
	case end == 'h' && params == "4", end == 'l' && params == "4": // inserting
		f.undo["\x1b[4l"] = true
		return whole, true
	case end == 'r': // the part of the screen that scrolls
		f.undo["\x1b7\x1b[r\x1b8"] = true
		return whole, true
	case (end == 's' || end == 'u') && params == "":
		return whole, true
	}
	return whole, strings.IndexByte("@ABCDEFGHIJKLMPSTXZ`abdefg", end) >= 0
}

// private drops the modes that change more than the picture. With the others a terminal
// would send something by itself, or leave out what protects the user who pastes.
func (f *Filter) private(params string, end byte) (string, bool) {
	if end == 'J' || end == 'K' { // erasing what is not protected
		return "?" + params + string(end), numbers(params, ";") && params != "3"
	}
	if end != 'h' && end != 'l' || !numbers(params, ";") {
		return "", false
	}
	var kept []string
	for word := range strings.SplitSeq(params, ";") {
		mode, err := strconv.Atoi(word)
		if err != nil || !slices.Contains([]int{1, 5, 6, 7, 12, 25, 47, 1047, 1048, 1049, 2026}, mode) {
			continue
		}
		kept = append(kept, word)
		f.modes[mode] = end == 'h'
	}
	return "?" + strings.Join(kept, ";") + string(end), len(kept) > 0
}

// numbers says whether params are numbers of a decent size, and separators.
func numbers(params, separators string) bool {
	for word := range strings.FieldsFuncSeq(params, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if n, err := strconv.ParseUint(word, 10, 32); err != nil || n > maxNumber {
			return false
		}
	}
	return true
}
