package manifest

import (
	"fmt"
	"strings"
	"unicode"
)

// Own is the prefix of pollux's own extension, MCP server and tools in Gemini CLI (SPEC P-3).
const Own = "pollux"

// Passes says whether the name of an extension or MCP server could be mistaken for pollux's own: by a reader, or by
// Gemini CLI, which makes mcp_SERVER_TOOL of it and replaces most characters by _. Such names are reserved.
func Passes(name string) bool {
	return own(skeleton(name, false)) || own(skeleton(name, true))
}

// passing returns the message about such a name.
func passing(what, name string) string {
	return fmt.Sprintf("the %s's name %q is reserved: it could be taken for pollux itself, whose tools run in a sandbox", what, name)
}

// own says whether a skeleton is "pollux" or begins with "pollux-".
func own(skeleton string) bool {
	for {
		rest, cut := strings.CutPrefix(skeleton, "mcp-")
		if !cut {
			break
		}
		skeleton = rest
	}
	return skeleton == Own || strings.HasPrefix(skeleton, Own+"-")
}

// skeleton reduces a name to lower case, with one dash for each run of other characters and none in front. With cli
// it reads the name as Gemini CLI does, for which only ASCII counts. Otherwise it reads the name as it looks:
// look-alikes become the letters they resemble, and invisible characters vanish.
func skeleton(name string, cli bool) string {
	var b strings.Builder
	dash := false
	for _, r := range name {
		if !cli && unseen(r) {
			continue
		}
		if !cli {
			r = unicode.ToLower(lookalike(r))
		} else if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		if cli && r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			dash = true
			continue
		}
		if dash && b.Len() > 0 {
			b.WriteByte('-')
		}
		dash = false
		b.WriteRune(r)
	}
	if dash {
		b.WriteByte('-')
	}
	return b.String()
}

// unseen says whether r is invisible, or only a mark on the letter before it.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// lookalikes lists characters that resemble the letters of "pollux" and "mcp" in other scripts or with accents. The
// source is Unicode's table of confusable characters (UTS #39).
const lookalikes = "p\u0440\u0420\u03c1\u03f1\u2374\u2ca3\u03a1\u01a5\u1e55\u1e57" +
	" o\u043e\u041e\u03bf\u039f\u0585\u0555\u03c3\u00f6\u00d6\u00f3\u00d3\u00f2\u00d2\u00f4\u00d4\u00f5\u00d5\u00f8\u00d8\u014d\u014f\u0151\u01a1\u01d2\u0665\u06f5\u0966\u2c9f\u3007\u1d0f\u0ed0" +
	" l\u0399\u0406\u04c0\u04cf\u01c0\u2113\u0142\u0141\u013a\u013c\u013e\u0140\u0131\u0456\u05c0\u05d5\u0627\u2223\u2160\u217c\u1e37\ua621" +
	" u\u03c5\u00fc\u00dc\u00fa\u00da\u00f9\u00d9\u00fb\u00db\u057d\u054d\u016b\u016d\u016f\u0171\u0173\u01b0\u01d4\u028b\u1d1c\u0446" +
	" x\u0445\u0425\u03c7\u03a7\u00d7\u2573\u2cad\u1d8d\u157d\u2a2f\u2179" +
	" m\u043c\u041c\u039c\u217f c\u0441\u0421\u03f2\u03f9\u00e7\u00c7\u0107\u010d\u217d"

// lookalike returns the ASCII letter or digit that r resembles, otherwise r.
func lookalike(r rune) rune {
	switch {
	case r == '0':
		return 'o'
	case r == '1' || r == 'I' || r == '|' || r == '!':
		return 'l'
	case r >= '\uFF01' && r <= '\uFF5E': // full width
		return lookalike(r - '\uFF01' + '!')
	case r >= '\U0001D400' && r <= '\U0001D6A3': // mathematical alphabets of 26 capital and 26 small letters
		n := (r - '\U0001D400') % 52
		if n >= 26 {
			return n - 26 + 'a'
		}
		return n + 'A'
	case r >= '\u24B6' && r <= '\u24CF': // in circles
		return r - '\u24B6' + 'A'
	case r >= '\u24D0' && r <= '\u24E9':
		return r - '\u24D0' + 'a'
	}
	for letters := range strings.SplitSeq(lookalikes, " ") {
		if strings.ContainsRune(letters[1:], r) {
			return rune(letters[0])
		}
	}
	return r
}
