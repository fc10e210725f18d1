// Package screen filters the output of untrusted programs for a terminal. Text, colours and cursor movement pass; all
// other control sequences are dropped.
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
	// maxSequence bounds a control sequence, in bytes; longer ones are dropped.
	maxSequence = 256
	// maxNumber bounds the numbers in a sequence: no screen is larger, and some terminals count up to them one by
	// one.
	maxNumber = 9999
)

// A Filter passes harmless output to a terminal. Sequences pass whole or not at all, however they are split into
// writes. It assumes that the terminal reads UTF-8.
type Filter struct {
	to io.Writer
	mu *sync.Mutex // guards all fields, and the terminal

	state   state
	partial []byte // of a UTF-8 character
	seq     []byte // of a control sequence, after its introducer
	out     []byte // of the write in progress
	left    int    // number of dropped sequences
	last    rune   // in a control string: possibly the first half of its end

	modes map[int]bool    // private modes that the program has set
	undo  map[string]bool // sequences that restore everything else it changed
}

type state int

const (
	text    state = iota
	escape        // after ESC
	charset       // after ESC and one of ()*+
	other         // after ESC and another intermediate byte
	control       // in a control sequence
	str           // in a control string, until ST or BEL
)

// Pair returns two filters for one terminal, for a program's standard output and standard error. Both together cannot
// form a sequence either.
func Pair(out, err io.Writer) (*Filter, *Filter) {
	mu := new(sync.Mutex)
	make1 := func(w io.Writer) *Filter {
		return &Filter{to: w, mu: mu, modes: map[int]bool{}, undo: map[string]bool{}}
	}
	return make1(out), make1(err)
}

// Write passes on harmless output. It holds back incomplete sequences.
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

// Close restores what the program changed and did not restore itself: colours, modes, the alternate screen. It
// returns the number of dropped sequences.
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
		_, _ = io.WriteString(f.to, b.String()) // nothing to do if the terminal has gone
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

// atStart reports whether a mode is set on a terminal as shells use it: the cursor is visible and lines wrap.
func atStart(mode int) bool { return mode == 25 || mode == 7 }

func final(on bool) string {
	if on {
		return "h"
	}
	return "l"
}

// rune handles the next character.
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

// plain handles a character outside of sequences.
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
	case r == 0x0e: // selects the second character set
		f.out = append(f.out, byte(r))
		f.undo["\x0f"] = true
	case r == 0, r == 0x7f: // terminals ignore them
	case r < 0x20 || r >= 0x80 && r < 0xa0: // one of them makes a terminal answer
		f.left++
	default:
		f.out = utf8.AppendRune(f.out, r)
	}
}

// drop ends a dropped sequence; again means that r does not belong to it.
func (f *Filter) drop(r rune, again bool) {
	f.left++
	f.state = text
	if again {
		f.plain(r)
	}
}

// escaped handles the character after ESC.
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
	case strings.ContainsRune("78DEMH=>", r): // saves or moves the cursor, lines, tabs, the keypad
		if r == '=' {
			f.undo["\x1b>"] = true
		}
		f.out = append(f.out, 0x1b, byte(r))
		f.state = text
	default:
		f.drop(r, r < 0x20 || r > 0x7e)
	}
}

// designated handles the selection of a character set.
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

// inString skips to the end of a control string. None passes: titles, the clipboard, links, notifications, palette
// colours, images, queries, and private extensions of terminals.
func (f *Filter) inString(r rune) {
	switch {
	case r == '\a' || r == 0x9c || r == 0x18 || r == 0x1a || f.last == 0x1b && r == '\\':
		f.drop(r, false)
	case f.last == 0x1b: // another sequence begins
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
	case r < 0x20: // a terminal would obey it even inside the sequence
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

// allowed returns a control sequence as it may pass: cursor movement, erasing, scrolling and colours.
func (f *Filter) allowed(params string, end byte) (string, bool) {
	if mode, ok := strings.CutPrefix(params, "?"); ok {
		return f.private(mode, end)
	}
	whole := params + string(end)
	switch {
	case whole == "!p": // resets most modes
		return whole, true
	case end == 'q' && strings.HasSuffix(params, " "): // the cursor's shape
		f.undo["\x1b[0 q"] = true
		return whole, numbers(params[:len(params)-1], ";")
	case end == 'm':
		f.undo["\x1b[0m"] = true
		return whole, numbers(params, ";:")
	case !numbers(params, ";"):
		return "", false
	case end == 'J' && params == "3": // the scrollback belongs to the user
		return "", false
	case end == 'h' && params == "4", end == 'l' && params == "4": // insert mode
		f.undo["\x1b[4l"] = true
		return whole, true
	case end == 'r': // the scrolling region
		f.undo["\x1b7\x1b[r\x1b8"] = true
		return whole, true
	case (end == 's' || end == 'u') && params == "":
		return whole, true
	}
	return whole, strings.IndexByte("@ABCDEFGHIJKLMPSTXZ`abdefg", end) >= 0
}

// private drops the modes that change more than the picture. Other modes would make a terminal send input by itself,
// or disable protection for pasting.
func (f *Filter) private(params string, end byte) (string, bool) {
	if end == 'J' || end == 'K' { // selective erase
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

// numbers reports whether params are numbers of reasonable size, and separators.
func numbers(params, separators string) bool {
	for word := range strings.FieldsFuncSeq(params, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if n, err := strconv.ParseUint(word, 10, 32); err != nil || n > maxNumber {
			return false
		}
	}
	return true
}
