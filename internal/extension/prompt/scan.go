package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Kind is what a block asks for.
type Kind string

// The kinds of blocks.
const (
	ToolCode Kind = "tool_code"
	ReadDoc  Kind = "read_doc"
)

// A Block is one <tool_code> or <read_doc> in a model's text.
type Block struct {
	Kind Kind
	// Start and End are the block's bytes in the whole text, tags included.
	Start, End int
	// Call is the call of a ToolCode block, Doc the name in a ReadDoc block.
	Call *Call
	Doc  string
	// Err says why the block cannot be understood; then Call and Doc are empty.
	Err *SyntaxError
	// Inert says why a look-alike must not run: it is in code, in a quotation or in a result. Then only its opening
	// tag was read, and Start and End are the tag's. "" for a block that may run.
	Inert string
}

// Bounds of a block's content, in bytes.
const (
	maxToolCode = 256 << 10
	maxReadDoc  = 1 << 10
)

// Parse returns the blocks of a whole text.
func Parse(text string) []Block {
	s := NewScanner()
	return append(s.Feed(text), s.Close()...)
}

// A Scanner finds blocks in a text that arrives in pieces. The blocks do not depend on how the text is cut; each is
// returned as soon as it is complete. It is for one goroutine.
type Scanner struct {
	buf          string          // not consumed yet
	more         strings.Builder // the text after buf, not examined yet
	wake, sleep  string          // what the last step waits for, see needs and needsNot; "" for anything
	base         int             // offset of buf in the whole text
	line, column int             // of buf's first byte
	last         byte            // the byte before buf
	final        bool            // nothing follows buf
	found        []Block

	bol        bool   // at the beginning of a line
	blank      bool   // the last line was blank, or there was none
	indented   bool   // this line is indented code
	quoteLine  bool   // this line is in a block quotation
	fenceChar  byte   // of the open fence; 0 for none
	fenceLen   int    // its length
	fenceAt    int    // how far its end may be indented
	span       int    // backticks that opened the code span; 0 for none
	quoted     uint8  // bits of the open kinds of quotation marks, except straight ones
	marks      int    // nesting depth of open straight double quotation marks
	region     string // the tag that ends the skipped region; "" for none
	regionWhy  string
	regionSoft bool // a blank line ends the region too

	open     Kind   // the block being read; "" for none
	body     int    // where its content begins in buf
	at       int    // how far its content has been examined
	quote    string // the quotes of the open string there; "" for none
	fallback int    // where its first closing tag is, in a string or not; 0 for none
	unclosed int    // up to here, the text has no closing tag after the block's opening tag
}

// NewScanner returns a Scanner at the beginning of a text.
func NewScanner() *Scanner { return &Scanner{line: 1, column: 1, bol: true, blank: true} }

// Feed takes the next piece and returns the blocks that it completes.
func (s *Scanner) Feed(piece string) []Block {
	s.more.WriteString(piece)
	if s.sleeps(piece) && s.more.Len() < max(len(s.buf), minSleep) {
		return nil
	}
	return s.run()
}

// minSleep is how many bytes are put aside at least before they are examined.
const minSleep = 4 << 10

// sleeps says that a piece cannot end what the last step waits for. It is then put aside, so that a long line or
// block in small pieces is not copied with each piece.
func (s *Scanner) sleeps(piece string) bool {
	return s.wake != "" && !strings.ContainsAny(piece, s.wake) || s.sleep != "" && strings.Trim(piece, s.sleep) == ""
}

// needs makes the last step wait for one of these characters.
func (s *Scanner) needs(wake string) bool {
	s.wake = wake
	return false
}

// needsNot makes the last step wait for any other character than these.
func (s *Scanner) needsNot(sleep string) bool {
	s.sleep = sleep
	return false
}

// Close ends the text and returns the blocks still open. The scanner cannot be used afterwards.
func (s *Scanner) Close() []Block {
	s.final = true
	return s.run()
}

func (s *Scanner) run() []Block {
	s.buf += s.more.String()
	s.more.Reset()
	s.wake, s.sleep = "", ""
	for s.buf != "" && s.step() {
	}
	found := s.found
	s.found = nil
	return found
}

// step consumes something, or returns false if it needs more text.
func (s *Scanner) step() bool {
	switch {
	case s.open != "":
		return s.block()
	case s.bol:
		return s.lineStart()
	case s.fenceChar != 0:
		return s.inertLine("in a code fence")
	case s.region != "":
		return s.skipRegion()
	case s.quoteLine:
		return s.inertLine("in a quotation")
	}
	return s.inline()
}

// take consumes n bytes.
func (s *Scanner) consume(n int) {
	if n == 0 {
		return
	}
	s.line, s.column = place(s.buf[:n], s.line, s.column)
	s.base += n
	s.last = s.buf[n-1]
	s.buf = s.buf[n:]
}

// endLine consumes a line of n bytes, including its line break.
func (s *Scanner) endLine(n int) {
	s.consume(n)
	s.bol, s.indented = true, false
}

// lineStart examines how a line begins: blank, a fence, a quotation, an indentation.
func (s *Scanner) lineStart() bool {
	line, _, whole := strings.Cut(s.buf, "\n")
	whole = whole || s.final
	rest := strings.TrimLeft(line, " \t\r")
	if rest == "" {
		if !whole {
			return s.needsNot(" \t\r")
		}
		s.paragraph()
		if s.regionSoft {
			s.region, s.regionSoft = "", false
		}
		s.blank, s.quoteLine = true, false
		s.endLine(min(len(line)+1, len(s.buf)))
		return true
	}
	if !whole && mayGrow(rest) {
		return s.needsNot(marks)
	}
	width := indentation(line)
	if s.fenceChar != 0 {
		if !whole {
			return s.needs("\n")
		}
		if width <= s.fenceAt && s.closesFence(rest) {
			s.fenceChar, s.blank = 0, true // a paragraph or indented code follows
			s.endLine(min(len(line)+1, len(s.buf)))
			return true
		}
		s.bol = false
		return true
	}
	if s.region == "" {
		item := afterMarkers(rest)
		if char, n := fence(item); n > 0 {
			if !whole && char == '`' {
				return s.needs("\n")
			}
			if char == '~' || !strings.Contains(item[n:], "`") {
				s.paragraph()
				s.fenceChar, s.fenceLen, s.fenceAt = char, n, max(3, width+len(rest)-len(item))
				s.blank, s.quoteLine = false, false
				s.bol = false
				return true
			}
		}
		// A line right after a quotation continues it, as in Markdown.
		s.quoteLine = strings.HasPrefix(item, ">") || s.quoteLine
		s.indented = width >= 4 && s.blank
	}
	s.blank = s.blank && s.indented || rest[0] == '#' // a heading ends the paragraph
	s.bol = false
	return true
}

// paragraph resets what cannot extend beyond a paragraph.
func (s *Scanner) paragraph() { s.span, s.quoted, s.marks = 0, 0, 0 }

// mayGrow says that an incomplete line may still turn out to begin with a fence or marker.
func mayGrow(rest string) bool {
	return strings.Trim(rest, marks) == ""
}

// marks are the characters of fences and markers.
const marks = "`~>-*+.)0123456789 \t"

// indentation returns the width of the leading whitespace, a tab being 4.
func indentation(line string) int {
	width := 0
	for i := range len(line) {
		switch line[i] {
		case ' ':
			width++
		case '\t':
			width += 4
		default:
			return width
		}
	}
	return width
}

// afterMarkers returns a line without list markers at its beginning.
func afterMarkers(rest string) string {
	for {
		digits := strings.TrimLeft(rest, "0123456789")
		var after string
		switch {
		case len(digits) < len(rest) && len(rest)-len(digits) <= 9 && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")):
			after = digits[2:]
		case strings.HasPrefix(rest, "- ") || strings.HasPrefix(rest, "* ") || strings.HasPrefix(rest, "+ "):
			after = rest[2:]
		default:
			return rest
		}
		rest = strings.TrimLeft(after, " \t")
	}
}

// fence returns the kind and length of the fence that begins a line; 0 for none.
func fence(rest string) (char byte, n int) {
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return 0, 0
	}
	n = len(rest) - len(strings.TrimLeft(rest, rest[:1]))
	if n < 3 {
		return 0, 0
	}
	return rest[0], n
}

func (s *Scanner) closesFence(rest string) bool {
	char, n := fence(rest)
	return char == s.fenceChar && n >= s.fenceLen && strings.Trim(rest[n:], " \t\r") == ""
}

// inertLine consumes a line in which nothing runs.
func (s *Scanner) inertLine(why string) bool {
	end := strings.IndexByte(s.buf, '\n')
	if end < 0 {
		if !s.final {
			return s.needs("\n")
		}
		end = len(s.buf) - 1
	}
	s.note(s.buf[:end+1], why)
	s.endLine(end + 1)
	return true
}

// note reports the opening tags in a text that does not run.
func (s *Scanner) note(text, why string) {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			return
		}
		at += i
		for _, kind := range []Kind{ToolCode, ReadDoc} {
			if tag := "<" + string(kind) + ">"; strings.HasPrefix(text[at:], tag) {
				s.found = append(s.found, Block{Kind: kind, Start: s.base + at, End: s.base + at + len(tag), Inert: why})
			}
		}
		at++
	}
}

// skipRegion consumes text up to the tag that ends an inert region.
func (s *Scanner) skipRegion() bool {
	line := s.buf
	end := strings.IndexByte(s.buf, '\n')
	if end >= 0 {
		line = s.buf[:end+1]
	} else if !s.final {
		return s.needs("\n")
	}
	i := strings.Index(line, s.region)
	if i < 0 {
		s.note(line, s.regionWhy)
		s.endLine(len(line))
		return true
	}
	s.note(line[:i], s.regionWhy)
	s.consume(i + len(s.region))
	s.region, s.regionSoft = "", false
	return true
}

// inline consumes ordinary text up to the next special character.
func (s *Scanner) inline() bool {
	i := strings.IndexAny(s.buf, "\n`\\<"+quotationMarks)
	if i < 0 {
		i = len(s.buf)
		if !s.final { // the end may be an incomplete character
			for back := 0; i > 0 && back < 3 && s.buf[i-1] >= 0x80; back++ {
				i--
			}
		}
		s.consume(i)
		return i > 0
	}
	if i > 0 {
		s.consume(i)
		return true
	}
	switch c := s.buf[0]; c {
	case '\n':
		s.endLine(1)
	case '`':
		return s.backticks()
	case '\\':
		if len(s.buf) < 2 && !s.final {
			return false
		}
		n := 1
		if s.span == 0 && len(s.buf) > 1 && strings.IndexByte("`\"<\\", s.buf[1]) >= 0 {
			n = 2
		}
		s.consume(n)
	case '<':
		return s.tag()
	case '"':
		return s.straight()
	default:
		mark, n := utf8.DecodeRuneInString(s.buf)
		if s.span == 0 {
			s.quoted ^= quotation(mark)
		}
		s.consume(n)
	}
	return true
}

// straight handles a straight quotation mark, which opens and closes alike. Inside a quotation it opens another one
// only where it cannot close: after a blank or bracket, and directly before a word or tag.
func (s *Scanner) straight() bool {
	if len(s.buf) < 2 && !s.final {
		return false
	}
	behind := s.last == 0 || strings.IndexByte(" \t\r\n([{\"", s.last) >= 0
	before := len(s.buf) > 1 && strings.IndexByte(" \t\r\n)]}\",.;:!?", s.buf[1]) < 0
	switch {
	case s.span > 0:
	case s.marks == 0 || behind && before:
		s.marks++
	default:
		s.marks--
	}
	s.consume(1)
	return true
}

// quotationMarks are the double quotation marks.
const quotationMarks = "\"“”„«»「」『』"

// quotation returns a bit for the kind of a curly quotation mark. Each kind opens and closes by itself, because
// quotations can be nested.
func quotation(mark rune) uint8 {
	switch mark {
	case '“', '”', '„':
		return 2
	case '«', '»':
		return 4
	case '「', '」':
		return 8
	}
	return 16
}

// backticks opens or closes a code span.
func (s *Scanner) backticks() bool {
	n := len(s.buf) - len(strings.TrimLeft(s.buf, "`"))
	if n == len(s.buf) && !s.final {
		return s.needsNot("`")
	}
	switch s.span {
	case 0:
		s.span = n
	case n:
		s.span = 0
	}
	s.consume(n)
	return true
}

// regions maps the tags that begin an inert region to its description.
func regions() map[string]string {
	return map[string]string{
		resultTag: "in a tool's result", docTag: "in a document", "untrusted_context": "in a tool's result", "tool_response": "in a tool's result",
		"function_results": "in a tool's result", "pre": "in code", "code": "in code", "blockquote": "in a quotation", "q": "in a quotation",
	}
}

// tag handles a <.
func (s *Scanner) tag() bool {
	if !s.final && len(s.buf) < 24 && !strings.ContainsAny(s.buf, "> \n") {
		return false
	}
	for _, kind := range []Kind{ToolCode, ReadDoc} {
		tag := "<" + string(kind) + ">"
		if !strings.HasPrefix(s.buf, tag) {
			continue
		}
		if why := s.inert(); why != "" {
			s.found = append(s.found, Block{Kind: kind, Start: s.base, End: s.base + len(tag), Inert: why})
			s.consume(len(tag))
			return true
		}
		s.open, s.body, s.at, s.quote, s.fallback = kind, len(tag), len(tag), "", 0
		return true
	}
	if s.span == 0 {
		if strings.HasPrefix(s.buf, "<!--") {
			s.region, s.regionWhy = "-->", "in a comment"
		}
		for tag, why := range regions() {
			end := min(1+len(tag), len(s.buf))
			name, rest := s.buf[1:end], s.buf[end:]
			if strings.EqualFold(name, tag) && (rest == "" || strings.ContainsAny(rest[:1], "> \n\t")) {
				s.region, s.regionWhy, s.regionSoft = "</"+name+">", why, tag == "code" || tag == "q"
			}
		}
	}
	s.consume(1)
	return true
}

// inert says why a block that begins here does not run; "" if it does.
func (s *Scanner) inert() string {
	switch {
	case s.span > 0:
		return "in code"
	case s.indented:
		return "in an indented code block"
	case s.quoted != 0, s.marks > 0, s.last == '\'':
		return "in a quotation"
	}
	return ""
}

// block reads the content of the open block.
func (s *Scanner) block() bool {
	if s.open == ReadDoc {
		return s.readDoc()
	}
	const closing = "</tool_code>"
	if near, known := s.closing(closing); !known {
		return s.needs(">")
	} else if !near && len(s.buf)-s.body > maxToolCode {
		return s.giveUp(fmt.Sprintf("%s within %d bytes", closing, maxToolCode))
	} else if !near {
		return s.giveUp(closing)
	}
	for s.at < len(s.buf) {
		if s.at-s.body > maxToolCode {
			return s.giveUp(fmt.Sprintf("%s within %d bytes", closing, maxToolCode))
		}
		rest := s.buf[s.at:]
		if len(rest) < len(closing) && !s.final {
			return false // a closing tag or quotes may be cut here
		}
		closes := strings.HasPrefix(rest, closing)
		if closes && s.quote == "" {
			s.toolCode(s.at, s.at+len(closing))
			return true
		}
		if closes && s.fallback == 0 {
			s.fallback = s.at
		}
		s.at += s.content(rest)
	}
	if !s.final {
		return false
	}
	return s.giveUp(closing)
}

// closing says whether the open block may have its closing tag within bounds, as far as known. It examines each byte
// once, however many unclosed blocks a text opens.
func (s *Scanner) closing(tag string) (near, known bool) {
	from := max(s.body, s.unclosed-s.base)
	if i := strings.Index(s.buf[from:], tag); i >= 0 {
		s.unclosed = s.base + from + i
		return from+i-s.body <= maxToolCode, true
	}
	s.unclosed = s.base + max(from, len(s.buf)-len(tag)+1)
	return false, s.final || len(s.buf)-s.body > maxToolCode+len(tag)
}

// content moves over one step of a call. It knows strings, in which a closing tag does not count.
func (s *Scanner) content(rest string) int {
	switch c := rest[0]; {
	case s.quote != "" && c == '\\' && len(rest) > 1:
		return 2
	case s.quote != "" && strings.HasPrefix(rest, s.quote):
		n := len(s.quote)
		s.quote = ""
		return n
	case s.quote == "" && (c == '"' || c == '\''):
		s.quote = rest[:1]
		if triple := strings.Repeat(s.quote, 3); strings.HasPrefix(rest, triple) {
			s.quote = triple
		}
		return len(s.quote)
	}
	return 1
}
