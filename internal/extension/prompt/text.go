package prompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/words"
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
// tell the parts of a prompt apart. Foreign text must not hold one: nothing that begins with one of the names, and none of the
// words of every day.
func reservedTags() (names, words []string) {
	return []string{
		"tool_code", "read_doc", resultTag, docTag, "untrusted_context", "extension_context", "project_context", "hook_context",
		"global_context", "loaded_context", "tool_call", "tool_response", "function_call", "function_results", "antml", "|",
		"start_of_turn", "end_of_turn", "s>",
	}, []string{"system", "user", "assistant", "model", "invoke"}
}

// Data makes foreign text of many lines safe to stand between delimiters in a
// prompt: it stays as it is, but that the < of tags that mean something to whoever reads prompts becomes &lt;,
// and that characters which nobody sees are left out.
func Data(text string) string {
	return withoutTags(Visible(text), harmless)
}

// DataJSON is Data for a JSON text: what is harmful is escaped, so that it still means the same.
func DataJSON(text string) string {
	return withoutTags(words.EscapeJSON(text), func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

// withoutTags replaces the < of reserved tags, of any width.
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

// isTag says whether rest, what follows a <, begins with one of the names, or with one of the words and nothing else.
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

// tagName is what follows a < as somebody may read it who takes it for a tag, opening or closing: its first characters, small and
// of plain width, without blanks before them and without marks. It is long enough for every reserved tag.
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
