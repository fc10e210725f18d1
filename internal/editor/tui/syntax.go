package tui

import (
	"path/filepath"
	"strings"
	"sync"
)

// A class is the kind of a piece of source text.
type class int

const (
	plainText class = iota
	comment
	literal // strings
	number
	keyword
)

// A language is what colouring needs: where comments and strings begin and end, and the keywords. (A library of
// grammars would cost every start of pollux five milliseconds, and hostile text could make its regular expressions
// run without bound.)
type language struct {
	line   []string    // what begins a comment that ends with the line
	block  [][2]string // what begins and ends a block comment
	quotes string      // quotes of strings that end with the line; \ escapes
	long   [][2]string // what begins and ends strings over several lines
	words  map[string]bool
	fold   bool // keywords ignore case
}

// A lexState is the state at the beginning of a line: 0 for plain text, i for block comment i-1, -i for long string
// i-1.
type lexState int

// maxColoured is how many bytes of a line are coloured.
const maxColoured = 4 << 10

// A token is a span of one class.
type token struct {
	span
	class class
}

// lex colours one line that begins in state, and returns the state of the next line. A nil language colours nothing.
func (l *language) lex(s string, state lexState) ([]token, lexState) {
	if l == nil {
		return nil, 0
	}
	var tokens []token
	at := 0
	if state != 0 {
		end, found := l.close(s, 0, state)
		tokens = append(tokens, token{span{0, end}, l.classOf(state)})
		if !found {
			return tokens, state
		}
		at = end
	}
	for at < len(s) {
		if at > maxColoured {
			return tokens, l.skim(s, at)
		}
		t, next, open := l.one(s, at)
		if t.class != plainText {
			tokens = append(tokens, t)
		}
		if open != 0 {
			return tokens, open
		}
		at = next
	}
	return tokens, 0
}

// skim searches the rest of a long line only for what continues in the next line.
func (l *language) skim(s string, at int) lexState {
	for at < len(s) {
		_, next, open := l.one(s, at)
		if open != 0 {
			return open
		}
		at = next
	}
	return 0
}

// close finds the end of the comment or string that state names.
func (l *language) close(s string, at int, state lexState) (end int, found bool) {
	var mark string
	if state > 0 {
		mark = l.block[state-1][1]
	} else {
		mark = l.long[-state-1][1]
	}
	if i := strings.Index(s[at:], mark); i >= 0 {
		return at + i + len(mark), true
	}
	return len(s), false
}

func (l *language) classOf(state lexState) class {
	if state > 0 {
		return comment
	}
	return literal
}

// one returns the token at an offset, and where the next one begins; open is set when the token continues in the next
// line.
func (l *language) one(s string, at int) (t token, next int, open lexState) {
	rest := s[at:]
	for _, mark := range l.line {
		if strings.HasPrefix(rest, mark) && (mark != "#" || at == 0 || s[at-1] == ' ' || s[at-1] == '\t') {
			return token{span{at, len(s)}, comment}, len(s), 0
		}
	}
	for i, pair := range l.block {
		if strings.HasPrefix(rest, pair[0]) {
			return l.delimited(s, at, len(pair[0]), lexState(i+1))
		}
	}
	for i, pair := range l.long {
		if strings.HasPrefix(rest, pair[0]) {
			return l.delimited(s, at, len(pair[0]), -lexState(i+1))
		}
	}
	switch b := s[at]; {
	case strings.IndexByte(l.quotes, b) >= 0:
		end := quoted(s, at)
		return token{span{at, end}, literal}, end, 0
	case wordByte(b):
		end := at + 1
		for end < len(s) && (wordByte(s[end]) || s[end] == '.' && digit(b) && end+1 < len(s) && digit(s[end+1])) {
			end++
		}
		return token{span{at, end}, l.wordClass(s[at:end])}, end, 0
	}
	return token{span{at, at + 1}, plainText}, at + 1, 0
}

func (l *language) delimited(s string, at, mark int, state lexState) (t token, next int, open lexState) {
	end, found := l.close(s, at+mark, state)
	if !found {
		open = state
	}
	return token{span{at, end}, l.classOf(state)}, end, open
}

func (l *language) wordClass(word string) class {
	if digit(word[0]) {
		return number
	}
	if l.fold {
		word = strings.ToLower(word)
	}
	if l.words[word] {
		return keyword
	}
	return plainText
}

// quoted returns where the string that begins at an offset ends, at the latest at the end of the line.
func quoted(s string, at int) int {
	for i := at + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[at]:
			return i + 1
		}
	}
	return len(s)
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

func wordByte(b byte) bool {
	return b == '_' || b == '$' || digit(b) || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// languageOf returns the language for a file's name, nil when it is unknown.
func languageOf(path string) *language {
	name := strings.ToLower(filepath.Base(path))
	all := languages()
	if l := all[name]; l != nil {
		return l
	}
	if strings.HasPrefix(name, "dockerfile") || strings.HasPrefix(name, "makefile") {
		return all[".sh"]
	}
	return all[filepath.Ext(name)]
}

var languages = sync.OnceValue(makeLanguages)

func makeLanguages() map[string]*language {
	all := map[string]*language{}
	define := func(names string, l language, words string) {
		l.words = map[string]bool{}
		for w := range strings.FieldsSeq(words) {
			l.words[w] = true
		}
		for n := range strings.FieldsSeq(names) {
			all[n] = &l
		}
	}
	cBlock := [][2]string{{"/*", "*/"}}
	slashes := []string{"//"}
	define(".go", language{line: slashes, block: cBlock, quotes: `"'`, long: [][2]string{{"`", "`"}}},
		`break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any bool byte error int int64 string uint rune`)
	define(".js .mjs .cjs .jsx .ts .mts .tsx .vue .svelte", language{line: slashes, block: cBlock, quotes: `"'`, long: [][2]string{{"`", "`"}}},
		`abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield any boolean never number string unknown`)
	define(".c .h .cc .cpp .cxx .hh .hpp .m .mm .ino", language{line: slashes, block: cBlock, quotes: `"'`},
		`alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false float for friend goto if inline int long namespace new noexcept nullptr operator override private protected public register return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while NULL`)
	define(".java .kt .kts .scala .groovy .gradle .cs .swift .dart", language{line: slashes, block: cBlock, quotes: `"'`, long: [][2]string{{`"""`, `"""`}}},
		`abstract as async await boolean break by case catch char class companion const continue data def default defer do double else enum extends extension false final finally float for foreach fun func get guard if implements import in inout init int interface internal is let long namespace new nil null object open operator out override package private protected public readonly return sealed self set short static struct super suspend switch this throw throws trait true try type typealias using val var virtual void when where while with yield`)
	define(".rs", language{line: slashes, block: cBlock, quotes: `"`},
		`as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char f32 f64 i32 i64 isize str u8 u32 u64 usize`)
	define(".py .pyi .bzl", language{line: []string{"#"}, quotes: `"'`, long: [][2]string{{`"""`, `"""`}, {"'''", "'''"}}},
		`and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield self`)
	define(".rb .rake .gemspec .ex .exs .cr", language{line: []string{"#"}, quotes: "\"'`"},
		`alias and begin break case class def defmodule defp do else elsif end ensure false fn for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield require include`)
	define(".sh .bash .zsh .fish .ksh .mk .dockerfile .bashrc .zshrc .profile", language{line: []string{"#"}, quotes: `"'`},
		`if then else elif fi for in do done while until case esac function select return break continue local export readonly declare set unset shift exit eval exec source trap test echo FROM RUN COPY ADD CMD ENTRYPOINT ENV ARG WORKDIR USER EXPOSE VOLUME`)
	define(".php", language{line: []string{"//", "#"}, block: cBlock, quotes: `"'`},
		`abstract and array as break case catch class clone const continue declare default do echo else elseif extends final finally fn for foreach function global if implements include instanceof interface match namespace new null or private protected public readonly require return static switch throw trait try use var while yield true false`)
	define(".lua", language{line: []string{"--"}, block: [][2]string{{"--[[", "]]"}}, quotes: `"'`, long: [][2]string{{"[[", "]]"}}},
		`and break do else elseif end false for function goto if in local nil not or repeat return then true until while`)
	define(".sql", language{line: []string{"--"}, block: cBlock, quotes: `"'`, fold: true},
		`add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null on or order outer primary references right rollback select set table then transaction union unique update values view when where with`)
	define(".css .scss .less", language{line: nil, block: cBlock, quotes: `"'`}, `important media import supports keyframes from to`)
	define(".html .htm .xml .svg .xhtml", language{block: [][2]string{{"<!--", "-->"}}, quotes: `"`}, ``)
	define(".json .jsonc .json5", language{line: slashes, block: cBlock, quotes: `"`}, `true false null`)
	define(".yaml .yml .toml .ini .conf .cfg .properties .env .tf .hcl .nix", language{line: []string{"#"}, quotes: `"'`}, `true false null yes no on off`)
	define(".el .lisp .clj .scm", language{line: []string{";"}, quotes: `"`}, `defun defvar defmacro defn def let lambda if cond when unless progn setq nil t fn`)
	define(".vim", language{quotes: `'`}, `if else elseif endif for endfor while endwhile function endfunction return let call set autocmd command augroup try catch endtry`)
	define(".zig .d .proto .graphql", language{line: slashes, block: cBlock, quotes: `"'`}, `const var fn pub struct enum union if else while for switch return defer try catch import message service rpc returns repeated optional package syntax option true false null type query mutation interface`)
	define(".md .markdown", language{block: [][2]string{{"<!--", "-->"}}, long: [][2]string{{"```", "```"}, {"`", "`"}}}, ``)
	return all
}
