package tty

import (
	"slices"
	"strconv"
	"strings"
)

// maxSequence bounds an escape sequence that is interpreted, in bytes; longer ones are ignored.
const maxSequence = 64

// restored reports whether a private mode must be restored after another program used the terminal: cursor keys,
// cursor, mouse, focus, paste, the alternate screen.
func restored(mode int) bool {
	switch mode {
	case 1, 25, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, altScreen:
		return true
	}
	return false
}

const (
	altScreen    = 1049
	synchronized = 2026
)

// modes reads what a program writes to a terminal. It tracks the modes that the program has set, and whether it is in
// the middle of a sequence. The zero value is a terminal at its start.
type modes struct {
	state    parseState
	sequence []byte
	set      map[int]bool
}

type parseState int

const (
	ground   parseState = iota
	escape              // after ESC
	control             // in CSI
	text                // in OSC, DCS, APC, PM or SOS: until ST or BEL
	textEnds            // in a string, after ESC
)

// Write interprets the program's output. It never fails.
func (m *modes) Write(p []byte) (int, error) {
	for _, b := range p {
		m.byte(b)
	}
	return len(p), nil
}

func (m *modes) byte(b byte) {
	switch m.state {
	case ground:
		if b == 0x1b {
			m.state = escape
		}
	case escape:
		m.escaped(b)
	case control:
		switch {
		case b >= 0x40 && b <= 0x7e:
			m.controlled(b)
			m.state = ground
		case b == 0x1b:
			m.state = escape
		case b == 0x18 || b == 0x1a:
			m.state = ground
		case len(m.sequence) <= maxSequence:
			m.sequence = append(m.sequence, b)
		}
	case text:
		switch b {
		case 0x07, 0x18, 0x1a:
			m.state = ground
		case 0x1b:
			m.state = textEnds
		}
	case textEnds:
		m.state = ground
		if b != '\\' {
			m.escaped(b)
		}
	}
}

func (m *modes) escaped(b byte) {
	switch {
	case b == '[':
		m.state, m.sequence = control, m.sequence[:0]
	case strings.IndexByte("]P_^X", b) >= 0:
		m.state = text
	case b == 0x1b, b >= 0x20 && b <= 0x2f: // still inside it
		m.state = escape
	case b == 'c': // full reset
		m.state, m.set = ground, nil
	default:
		m.state = ground
	}
}

// controlled handles a complete CSI sequence with its final byte.
func (m *modes) controlled(final byte) {
	params, private := strings.CutPrefix(string(m.sequence), "?")
	if !private || final != 'h' && final != 'l' || len(m.sequence) > maxSequence {
		return
	}
	for word := range strings.SplitSeq(params, ";") {
		mode, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		if mode == 47 || mode == 1047 {
			mode = altScreen
		}
		if restored(mode) || mode == synchronized {
			if m.set == nil {
				m.set = map[int]bool{}
			}
			m.set[mode] = final == 'h'
		}
	}
}

// quiet reports whether the program is between sequences and between frames.
func (m *modes) quiet() bool { return m.state == ground && !m.set[synchronized] }

// alternate reports whether the program uses the alternate screen.
func (m *modes) alternate() bool { return m.set[altScreen] }

// clear returns the sequence that resets the terminal's modes, except the alternate screen.
func (m *modes) clear() string { return m.write(true) }

// restore returns the sequence that sets the program's modes again.
func (m *modes) restore() string { return m.write(false) }

func (m *modes) write(atStart bool) string {
	var b strings.Builder
	modes := make([]int, 0, len(m.set))
	for mode := range m.set {
		modes = append(modes, mode)
	}
	slices.SortFunc(modes, func(a, b int) int { // the alternate screen first: other modes may belong to it
		switch {
		case a == altScreen:
			return -1
		case b == altScreen:
			return 1
		}
		return a - b
	})
	for _, mode := range modes {
		on := m.set[mode]
		if atStart {
			on = mode == 25 // only the cursor is on at the start
		}
		if mode == synchronized || atStart && mode == altScreen {
			continue
		}
		final := byte('l')
		if on {
			final = 'h'
		}
		b.WriteString("\x1b[?" + strconv.Itoa(mode) + string(final))
	}
	return b.String()
}
