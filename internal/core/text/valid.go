package text

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Valid says whether b is UTF-8, as unicode/utf8.Valid does. After the first character
// that is not ASCII, utf8.Valid looks at one byte at a time; Valid looks at eight, which
// makes it several times quicker on source code.
func Valid(b []byte) bool {
	const highs = 0x8080808080808080
	for len(b) >= 8 {
		high := binary.LittleEndian.Uint64(b) & highs
		if high == 0 {
			b = b[8:]
			continue
		}
		b = b[bits.TrailingZeros64(high)>>3:]
		for len(b) > 0 && b[0] >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(b)
			if r == utf8.RuneError && size == 1 {
				return false
			}
			b = b[size:]
		}
	}
	return utf8.Valid(b)
}
