package prompt

import "strings"

// giveUp ends a block without an end. It ends at a closing tag inside an unclosed string, or at the opening tag, and
// reading continues behind it.
func (s *Scanner) giveUp(expected string) bool {
	if s.fallback > 0 {
		s.toolCode(s.fallback, s.fallback+len("</tool_code>"))
		return true
	}
	line, column := place(s.buf[:s.body], s.line, s.column)
	s.finish(s.body, Block{Err: &SyntaxError{
		Offset: s.base + s.body, Line: line, Column: column, Expected: expected + " somewhere after this", Found: "none"}})
	return true
}

// toolCode ends a block. Its content ends at end, its closing tag at after.
func (s *Scanner) toolCode(end, after int) {
	p := &callParser{text: s.buf[s.body:end]}
	b := Block{}
	b.Call, b.Err = p.parse()
	if b.Err != nil {
		b.Err.Offset += s.base + s.body
		line, column := place(s.buf[:s.body], s.line, s.column)
		if b.Err.Line == 1 {
			b.Err.Column += column - 1
		}
		b.Err.Line += line - 1
	}
	s.finish(after, b)
}

// finish reports the open block and consumes it.
func (s *Scanner) finish(after int, b Block) {
	b.Kind, b.Start, b.End = s.open, s.base, s.base+after
	s.found = append(s.found, b)
	s.open = ""
	s.consume(after)
}

// readDoc reads the name in the open block.
func (s *Scanner) readDoc() bool {
	const closing = "</read_doc>"
	i := strings.Index(s.buf[s.body:], closing)
	if i > maxReadDoc || i < 0 && len(s.buf)-s.body > maxReadDoc+len(closing) || i < 0 && s.final {
		return s.giveUp(closing)
	}
	if i < 0 {
		return false
	}
	content := s.buf[s.body : s.body+i]
	b := Block{Doc: strings.TrimSpace(content)}
	if b.Doc == "" || strings.ContainsAny(b.Doc, "\n<>\"'`(") {
		line, column := place(s.buf[:s.body], s.line, s.column)
		b.Err = &SyntaxError{
			Offset: s.base + s.body, Line: line, Column: column, Expected: "the name of a document", Found: found(content)}
		b.Doc = ""
	}
	s.finish(s.body+i+len(closing), b)
	return true
}
