//go:build unix

package editors

import (
	"fmt"
	"strings"
)

// hands are what a user does in one editor who has the CLI beside it.
type hands struct {
	with   func(f flavour) flavour              // the settings of one who runs the CLI in the editor
	run    func(b *bench)                       // starts it there, with the first prompt
	cursor func(b *bench)                       // puts the cursor into the second line of a.txt
	shows  func(b *bench, line string) bool     // a diff is on show, with the cursor in its proposal, which begins with line
	edit   func(b *bench)                       // puts "edited" at the end of the first line
	accept func(b *bench)                       // accepts
	reject func(b *bench)                       // rejects
	seek   func(b *bench)                       // goes from a diff to the CLI in the editor's own terminal
	where  func() (expr, terminal, file string) // an expression, and its value when no diff is on show and the user is in the CLI's terminal, or in a.txt
	text   func(b *bench) string                // the buffer of a.txt
	// refusal is the key that refuses in the CLI in the editor's own terminal.
	refusal string
}

func vimHands() hands {
	return hands{
		with:   func(f flavour) flavour { return f },
		run:    func(b *bench) { b.ex("Pollux run gemini -i " + strings.ReplaceAll(prompt, " ", `\ `)) },
		cursor: func(b *bench) { b.text("2G"); b.is("line('.')", "2") },
		shows: func(b *bench, line string) bool {
			return b.eval("&diff . winnr() . mode() . getline(1)") == "12n"+line
		},
		edit:   func(b *bench) { b.text("ggAedited"); b.escape() },
		accept: func(b *bench) { b.ex("w") },
		reject: func(b *bench) { b.ex("q") },
		seek: func(b *bench) {
			b.text("gT")
			b.is("&diff . tabpagenr() . &buftype", "01terminal")
			b.text("i")
			b.is("mode()", "t")
		},
		where: func() (string, string, string) {
			return "&diff . tabpagenr('$') . mode() . (&buftype == 'terminal' ? &buftype : expand('%'))", "01tterminal", "01na.txt"
		},
		text:    func(b *bench) string { return b.eval("join(getbufline('a.txt', 1, '$'), '|')") },
		refusal: "Escape",
	}
}

func emacsHands() hands {
	return hands{
		with: func(f flavour) flavour {
			return f.with(fmt.Sprintf("(setq pollux-cli-arguments '(\"-i\" %q))", prompt))
		},
		run:    func(b *bench) { b.mx("pollux-run") },
		cursor: func(b *bench) { b.keys("C-n"); b.is("(line-number-at-pos)", "2") },
		shows: func(b *bench, line string) bool {
			return b.eval(`(list (length (window-list)) (buffer-name) (buffer-substring-no-properties 1 (save-excursion (goto-char 1) (line-end-position))))`) == "(3 a.txt <proposal> "+line+")"
		},
		edit:   func(b *bench) { b.keys("C-e"); b.text("edited") },
		accept: func(b *bench) { b.keys("C-c", "C-c") },
		reject: func(b *bench) { b.keys("C-c", "C-k") },
		seek:   func(b *bench) { b.mx("pollux-run"); b.is(windows, "(3 *gemini: p*)") },
		where:  func() (string, string, string) { return windows, "(2 *gemini: p*)", "(1 a.txt)" },
		text: func(b *bench) string {
			return b.eval(`(with-current-buffer "a.txt" (replace-regexp-in-string "\n" "|" (string-trim-right (buffer-string))))`)
		},
		refusal: "3", // Escape alone begins a key of Emacs's
	}
}
