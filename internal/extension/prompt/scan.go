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
	// Start and End are the bytes of the whole text that the block takes, tags included.
	Start, End int
	// Call is what a ToolCode block calls, Doc what a ReadDoc block names.
	Call *Call
	Doc  string
	// Err says why the block cannot be understood; Call and Doc are then empty.
	Err *SyntaxError
	// Inert says why it must not be run although it looks like a block: it stands in code, in a quotation or in
	// a result. Only its opening tag was read then, and Start and End are that. "" for the others.
	Inert string
}

// Bounds on the content of a block, in bytes.
const (
	maxToolCode = 256 << 10
	maxReadDoc  = 1 << 10
)

// Parse finds the blocks of a whole text.
func Parse(text string) []Block {
	s := NewScanner()
	return append(s.Feed(text), s.Close()...)
}

// A Scanner finds blocks in a text that arrives in pieces. However the text is cut, the
// blocks are the same; each is returned as soon as it is complete. It is for one goroutine.
type Scanner struct {
	buf          string          // what has not been consumed
	more         strings.Builder // what follows it, and was not looked at
	wake, sleep  string          // what the last step waits for, see needs and needsNot; "" for anything
	base         int             // offset of buf in the whole text
	line, column int             // of buf's first byte
	last         byte            // the byte before buf
	final        bool            // nothing follows buf
	found        []Block

	bol        bool   // at the beginning of a line
	blank      bool   // the last line was blank, or there was none
	indented   bool   // this line is code by its indentation
	quoteLine  bool   // this line stands in a block quotation
	fenceChar  byte   // of the fence that is open; 0 for none
	fenceLen   int    // its length
	fenceAt    int    // how far from the margin its end may stand
	span       int    // backticks that opened the code span; 0 for none
	quoted     uint8  // the kinds of quotation marks that are open, but for straight ones
	marks      int    // straight double quotation marks that are open, one in another
	region     string // the tag that ends the part that is being skipped; "" for none
	regionWhy  string
	regionSoft bool // a blank line ends it, too

	open     Kind   // the block that is being read; "" for none
	body     int    // where its content begins in buf
	at       int    // how far its content has been looked at
	quote    string // the quotes of the text that is open there; "" for none
	fallback int    // where its first closing tag stands, in a text or not; 0 for none
	unclosed int    // how far the whole text has no closing tag of a call behind the block's opening one
}

// NewScanner begins a text.
func NewScanner() *Scanner { return &Scanner{line: 1, column: 1, bol: true, blank: true} }

// Feed takes the next piece and returns the blocks that it completes.
func (s *Scanner) Feed(piece string) []Block {
	s.more.WriteString(piece)
	if s.sleeps(piece) && s.more.Len() < max(len(s.buf), minSleep) {
		return nil
	}
	return s.run()
}

// minSleep is how much text is put aside, in bytes, however little there is already.
const minSleep = 4 << 10

// sleeps says that a piece cannot end what the last step waits for. It is put aside then, so that a long line or block that comes
// in small pieces is not copied with each of them.
func (s *Scanner) sleeps(piece string) bool {
	return s.wake != "" && !strings.ContainsAny(piece, s.wake) || s.sleep != "" && strings.Trim(piece, s.sleep) == ""
}

// needs says what a step waits for that returns false: one of these characters.
func (s *Scanner) needs(wake string) bool {
	s.wake = wake
	return false
}

// needsNot says the same: any character but these.
func (s *Scanner) needsNot(sleep string) bool {
	s.sleep = sleep
	return false
}

// Close ends the text and returns what was still open. The scanner is not used after it.
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

// step consumes something, or returns false where that needs more text.
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
func (s *Scanner) take(n int) {
	if n == 0 {
		return
	}
	s.line, s.column = place(s.buf[:n], s.line, s.column)
	s.base += n
	s.last = s.buf[n-1]
	s.buf = s.buf[n:]
}

// endLine consumes to the end of a line of n bytes, line break included.
func (s *Scanner) endLine(n int) {
	s.take(n)
	s.bol, s.indented = true, false
}

// lineStart looks at what a line begins with: nothing, a fence, a quotation, an indentation.
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
			s.fenceChar, s.blank = 0, true // what follows begins a paragraph, or indented code
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
	s.blank = s.blank && s.indented || rest[0] == '#' // no paragraph goes on behind a heading
	s.bol = false
	return true
}

// paragraph forgets what cannot reach beyond one.
func (s *Scanner) paragraph() { s.span, s.quoted, s.marks = 0, 0, 0 }

// mayGrow says that a line which is not complete may begin with a fence or
// marker that more text would show.
func mayGrow(rest string) bool {
	return strings.Trim(rest, marks) == ""
}

// marks are what fences and markers consist of.
const marks = "`~>-*+.)0123456789 \t"

// indentation is the width of the blanks at the beginning, a tab being 4.
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

// afterMarkers is a line without the marks of list items at its beginning.
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

// fence is the kind and length of the fence that a line begins with; 0 for none.
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

// inertLine consumes a line in which nothing is run.
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

// note reports the opening tags in a text that is not run.
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

// skipRegion consumes text up to the tag that ends a part in which nothing is run.
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
	s.take(i + len(s.region))
	s.region, s.regionSoft = "", false
	return true
}

// inline consumes ordinary text up to the next character that means something.
func (s *Scanner) inline() bool {
	i := strings.IndexAny(s.buf, "\n`\\<"+quotationMarks)
	if i < 0 {
		i = len(s.buf)
		if !s.final { // the beginning of a character may end it
			for back := 0; i > 0 && back < 3 && s.buf[i-1] >= 0x80; back++ {
				i--
			}
		}
		s.take(i)
		return i > 0
	}
	if i > 0 {
		s.take(i)
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
		s.take(n)
	case '<':
		return s.tag()
	case '"':
		return s.straight()
	default:
		mark, n := utf8.DecodeRuneInString(s.buf)
		if s.span == 0 {
			s.quoted ^= quotation(mark)
		}
		s.take(n)
	}
	return true
}

// straight takes a mark that opens and closes alike. Within a quotation it opens another where it can only do that: behind a
// blank or bracket, and right before a word or tag.
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
	s.take(1)
	return true
}

// quotationMarks are the double ones.
const quotationMarks = "\"“”„«»「」『』"

// quotation is the kind of a quotation mark that is not straight, a bit. Each kind is open or not for itself: a quotation may stand in another.
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
	s.take(n)
	return true
}

// regions are the tags that begin a part in which nothing is run, with what to call it.
func regions() map[string]string {
	return map[string]string{
		resultTag: "in a tool's result", docTag: "in a document", "untrusted_context": "in a tool's result", "tool_response": "in a tool's result",
		"function_results": "in a tool's result", "pre": "in code", "code": "in code", "blockquote": "in a quotation", "q": "in a quotation",
	}
}

// tag looks at a <.
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
			s.take(len(tag))
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
	s.take(1)
	return true
}

// inert says why a block that begins here is not run; "" when it is.
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

// block reads the content of the block that is open.
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
			return false // a closing tag, or quotes, may be cut here
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

// closing says whether the open block may have its closing tag within bounds, as far as that is known. Each byte of a text is
// looked at once for it, however many blocks are opened there and never closed.
func (s *Scanner) closing(tag string) (near, known bool) {
	from := max(s.body, s.unclosed-s.base)
	if i := strings.Index(s.buf[from:], tag); i >= 0 {
		s.unclosed = s.base + from + i
		return from+i-s.body <= maxToolCode, true
	}
	s.unclosed = s.base + max(from, len(s.buf)-len(tag)+1)
	return false, s.final || len(s.buf)-s.body > maxToolCode+len(tag)
}

// content moves over one step of a call: it knows texts, in which a closing tag is none.
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
