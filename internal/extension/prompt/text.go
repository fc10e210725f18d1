package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
)

// Line makes foreign text one line that can stand in a prompt as what it is,
// a description: at most limit characters, no line breaks, no characters that nobody sees, no
// markup (<, >, backticks, links), no @, which Gemini CLI and others take for an import.
func Line(text string, limit int) string {
	var b strings.Builder
	blank, count := false, 0
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if unicode.IsSpace(r) {
			blank = b.Len() > 0
			continue
		}
		if !shown(r) {
			continue
		}
		if count >= limit-1 && limit > 0 {
			return strings.TrimRight(b.String(), " ") + "…"
		}
		if blank {
			b.WriteByte(' ')
			blank = false
			count++
		}
		b.WriteString(harmless(r))
		count++
	}
	return strings.ReplaceAll(b.String(), "](", "] (")
}

// shown says whether r can be seen by whoever reads the text: no controls, no
// direction marks, no zero-width or tag characters, no private ones, no stacks of accents beyond what follows.
func shown(r rune) bool {
	if r == '\u200c' || r == '\u200d' { // joiners: emoji, Persian and Indic text need them
		return true
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r) && !unicode.Is(unicode.Co, r)
}

// harmless is r where it stands for itself in every prompt, else its entity.
func harmless(r rune) string {
	switch r {
	case '<', '\uFF1C', '\uFE64':
		return "&lt;"
	case '>', '\uFF1E', '\uFE65':
		return "&gt;"
	case '@', '\uFF20', '\uFE6B':
		return "&#64;"
	case '`':
		return "'"
	}
	return string(r)
}

// reservedTags are the tags by which pollux, Gemini CLI and chat templates
// tell the parts of a prompt apart. Foreign text must not hold one.
func reservedTags() []string {
	return []string{
		"tool_code", "read_doc", resultTag, docTag, "untrusted_context", "extension_context", "project_context", "hook_context",
		"global_context", "loaded_context", "system", "user", "assistant", "model", "tool_call", "tool_response", "function_calls", "function_results",
		"function_call", "invoke", "antml", "|", "start_of_turn", "end_of_turn", "s>",
	}
}

// Data makes foreign text of many lines safe to stand between delimiters in a
// prompt: it stays as it is, but that the < of tags that mean something to whoever reads prompts becomes &lt;,
// and that characters which nobody sees are left out.
func Data(text string) string {
	return withoutTags(Visible(text), "&lt;")
}

// DataJSON is Data for a JSON text: what is harmful is escaped, so that it still means the same.
func DataJSON(text string) string {
	return withoutTags(manifest.EscapeJSON(text), `\u003c`)
}

// withoutTags replaces the < of reserved tags.
func withoutTags(text, instead string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	tags := reservedTags()
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		if isTag(text[i+1:], tags) {
			b.WriteString(instead)
		} else {
			b.WriteByte('<')
		}
		text = text[i+1:]
	}
}

// isTag says whether rest, what follows a <, begins with one of the tags, opening or closing, in any capitals and with blanks.
func isTag(rest string, tags []string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n/\\")
	for _, tag := range tags {
		if len(rest) < len(tag) || !strings.EqualFold(rest[:len(tag)], tag) {
			continue
		}
		if tag == "|" || tag == "s>" || len(rest) == len(tag) {
			return true
		}
		next, _ := utf8.DecodeRuneInString(rest[len(tag):])
		if !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			return true
		}
	}
	return false
}

// Tokens estimates how many tokens a model counts for text: a quarter of its
// ASCII characters plus one for each other character, rounded up. Tokenizers differ; for English text and JSON this
// is within a quarter of what they say, and for other scripts above it.
func Tokens(text string) int {
	ascii, other := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// Visible is foreign text of many lines without the characters that nobody sees or that a terminal obeys.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || shown(r) || r == '\ufe0f' { // the last makes emoji of symbols
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
