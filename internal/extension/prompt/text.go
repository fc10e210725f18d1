package prompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/words"
)

// Line turns foreign text into one line that a prompt can show as a description: at most limit characters, no line
// breaks, no invisible characters, no markup (<, >, backticks, links), and no @, which Gemini CLI and others take for
// an import.
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

// shown says whether a reader can see r. It excludes controls, direction marks, zero-width, tag and private
// characters, and stacked accents.
func shown(r rune) bool {
	if r == '\u200c' || r == '\u200d' { // joiners: emoji, Persian and Indic text need them
		return true
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r) && !unicode.Is(unicode.Co, r)
}

// harmless returns r if it has no special meaning in any prompt, otherwise its entity.
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

// reservedTags returns tags by which pollux, Gemini CLI and chat templates separate the parts of a prompt. Foreign
// text must contain no tag that begins with one of names, and none that equals one of words, which are everyday
// words.
func reservedTags() (names, words []string) {
	return []string{
		"tool_code", "read_doc", resultTag, docTag, "untrusted_context", "extension_context", "project_context", "hook_context",
		"global_context", "loaded_context", "tool_call", "tool_response", "function_call", "function_results", "antml", "|",
		"start_of_turn", "end_of_turn", "s>",
	}, []string{"system", "user", "assistant", "model", "invoke"}
}

// Data makes foreign multi-line text safe between delimiters in a prompt. It only replaces the < of tags that prompts
// use by &lt;, and removes invisible characters.
func Data(text string) string {
	return withoutTags(Visible(text), harmless)
}

// DataJSON is Data for JSON text: it escapes what is harmful, so the meaning stays the same.
func DataJSON(text string) string {
	return withoutTags(words.EscapeJSON(text), func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

// withoutTags replaces the < of reserved tags, in any character width.
func withoutTags(text string, instead func(rune) string) string {
	const opening = "<\uFF1C\uFE64"
	if !strings.ContainsAny(text, opening) {
		return text
	}
	names, words := reservedTags()
	var b strings.Builder
	for {
		i := strings.IndexAny(text, opening)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		r, n := utf8.DecodeRuneInString(text[i:])
		text = text[i+n:]
		if isTag(text, names, words) {
			b.WriteString(instead(r))
		} else {
			b.WriteRune(r)
		}
	}
}

// isTag says whether rest, the text after a <, begins with one of names, or is exactly one of words.
func isTag(rest string, names, words []string) bool {
	tag := tagName(rest)
	for _, name := range names {
		if strings.HasPrefix(tag, name) {
			return true
		}
	}
	for _, word := range words {
		if after, ok := strings.CutPrefix(tag, word); ok {
			next, _ := utf8.DecodeRuneInString(after)
			return !unicode.IsLetter(next) && !unicode.IsDigit(next)
		}
	}
	return false
}

// tagName returns the text after a < as a lenient reader of tags would see it: its first characters in lower case and
// normal width, without leading blanks and marks, opening or closing. It is long enough for every reserved tag.
func tagName(rest string) string {
	var b strings.Builder
	for _, r := range rest {
		if r >= '\uFF01' && r <= '\uFF5E' {
			r += '!' - '\uFF01'
		}
		switch {
		case unicode.In(r, unicode.M, unicode.Cf):
		case b.Len() == 0 && (unicode.IsSpace(r) || r == '/' || r == '\\'):
		default:
			b.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
		}
		if b.Len() > 24 {
			break
		}
	}
	return b.String()
}

// Tokens estimates the tokens of a text: a quarter of its ASCII characters plus one for each other character, rounded
// up. Tokenizers differ. For English text and JSON the estimate is within a quarter of theirs; for other scripts it
// is higher.
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

// Visible returns foreign multi-line text without invisible characters, and without control characters that a terminal obeys.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || shown(r) || r == '\ufe0f' { // the last one makes emoji of symbols
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
