package tui

import (
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
)

const (
	// maxWords bounds the lines that are compared word by word, in words. In longer lines only both ends are
	// compared.
	maxWords = 400
	// maxWordLine bounds these lines in bytes.
	maxWordLine = 16 << 10
)

// A span is a part of a line, in bytes.
type span struct{ from, to int }

// changedWords compares two lines word by word and returns what differs in each. Both are nil when the lines have so
// little in common that marks would not help.
func changedWords(a, b string) (inA, inB []span) {
	lo := commonPrefix(a, b)
	hi := commonSuffix(a[lo:], b[lo:])
	midA, midB := a[lo:len(a)-hi], b[lo:len(b)-hi]
	var wordsA, wordsB []string
	if len(midA) <= maxWordLine && len(midB) <= maxWordLine {
		wordsA, wordsB = splitWords(midA), splitWords(midB)
	}
	if len(wordsA) == 0 && len(wordsB) == 0 || len(wordsA) > maxWords || len(wordsB) > maxWords {
		inA, inB = add(nil, lo, lo+len(midA)), add(nil, lo, lo+len(midB))
	} else {
		startA, startB := starts(wordsA, lo), starts(wordsB, lo)
		for _, d := range lcs.DiffLines(wordsA, wordsB) {
			inA = add(inA, startA[d.Start], startA[d.End])
			inB = add(inB, startB[d.ReplStart], startB[d.ReplEnd])
		}
	}
	if 10*(size(inA)+size(inB)) > 7*(len(a)+len(b)) {
		return nil, nil
	}
	return inA, inB
}

// commonPrefix returns how many bytes both begin with, up to the beginning of a word.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for whole := n; n > 0 && n < max(len(a), len(b)) && (inWord(a, n) || inWord(b, n)); n-- {
		if whole-n > maxBack && utf8.RuneStart(a[n]) {
			return n // inside a "word" longer than any real one
		}
	}
	return n
}

// maxBack is how far back to look for the beginning of a word, in bytes.
const maxBack = 4 << 10

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for whole := n; n > 0 && (inWord(a, len(a)-n) || inWord(b, len(b)-n)); n-- {
		if whole-n > maxBack && utf8.RuneStart(a[len(a)-n]) {
			return n
		}
	}
	return n
}

// inWord reports whether a cut at i would split a word or a character.
func inWord(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return false
	}
	if !utf8.RuneStart(s[i]) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return isWord(before) && isWord(after) || unicode.IsMark(after) || after == 0x200d || before == 0x200d
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// splitWords cuts text into words, runs of blanks and single characters.
func splitWords(s string) []string {
	var words []string
	for s != "" {
		n := 1
		for n < len(s) && (inWord(s, n) || s[n] == ' ' && s[n-1] == ' ') {
			n++
		}
		words = append(words, s[:n])
		s = s[n:]
	}
	return words
}

// starts returns where words begin, and one more for the end of the last.
func starts(words []string, at int) []int {
	list := make([]int, 0, len(words)+1)
	for _, w := range words {
		list = append(list, at)
		at += len(w)
	}
	return append(list, at)
}

// add appends a span, merged with the previous one when they touch.
func add(spans []span, from, to int) []span {
	if from == to {
		return spans
	}
	if n := len(spans); n > 0 && spans[n-1].to == from {
		spans[n-1].to = to
		return spans
	}
	return append(spans, span{from, to})
}

func size(spans []span) int {
	n := 0
	for _, s := range spans {
		n += s.to - s.from
	}
	return n
}
