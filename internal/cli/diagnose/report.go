package diagnose

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/conform"
	"github.com/pollux-companion/pollux/internal/conform/editor"
	"github.com/pollux-companion/pollux/internal/words"
)

// tryEditor tries an editor's plugin.
func tryEditor(ctx context.Context, con *console.Console, f conformFlags, args []string) error {
	if len(args) == 0 {
		return console.Usage(errors.New("--editor needs the editor's command: pollux conform --editor -- EDITOR ARGS…"))
	}
	if f.pid != 0 || f.port != 0 || f.driver != "" || len(f.with) > 0 || f.slow {
		return console.Usage(errors.New("--editor tries a plugin; --pid, --port, --driver, --with and --slow are about companions"))
	}
	o := editor.Options{Command: args, Only: f.only, Wait: f.wait}
	if f.keys != "" {
		data, err := os.ReadFile(f.keys)
		if err != nil {
			return err
		}
		if o.Keys, err = editor.ParseKeys(data); err != nil {
			return console.Usage(fmt.Errorf("%s: %w", f.keys, err))
		}
	}
	return inform(con, con.Out, f, func(each func(conform.Check)) ([]conform.Check, error) { return editor.Run(ctx, o, each) })
}

// inform runs a suite, and reports what it finds while it goes on and at the end.
func inform(con *console.Console, report io.Writer, f conformFlags, run func(each func(conform.Check)) ([]conform.Check, error)) error {
	p := &progress{out: con.Err, on: !f.allVisible}
	each := func(c conform.Check) {
		p.clear()
		if !f.json && !f.junit && (f.allVisible || c.Result == conform.Fail) {
			printCheck(report, c)
		}
		p.show(c)
	}
	all, err := run(each)
	p.clear()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return console.Usage(fmt.Errorf("--only %s: no check has such a name", f.only))
	}
	switch {
	case f.json:
		err = console.WriteJSON(report, all)
	case f.junit:
		err = writeJUnit(report, all)
	default:
		printSummary(report, all)
	}
	for _, c := range all {
		if err == nil && c.Result == conform.Fail {
			err = console.Exit(console.CodeNo)
		}
	}
	return err
}

// A progress is the progress line at the bottom of a terminal. Elsewhere it prints nothing.
type progress struct {
	out    io.Writer
	on     bool
	n, bad int
	shown  bool
}

func (p *progress) show(c conform.Check) {
	if p.n++; c.Result == conform.Fail {
		p.bad++
	}
	if !p.on || console.Terminal(p.out) == nil || os.Getenv("TERM") == "dumb" {
		return
	}
	name, _, _ := strings.Cut(c.Name, "/")
	fmt.Fprintf(p.out, "  %d checks, %d failed, at %s", p.n, p.bad, name)
	p.shown = true
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.shown = false
	}
}

func printCheck(out io.Writer, c conform.Check) {
	mark := map[conform.Result]string{conform.Pass: "  ok    ", conform.Skip: "  -     ", conform.Fail: console.Paint(out, console.Red, "  FAIL  ")}[c.Result]
	fmt.Fprintln(out, mark+c.Name)
	if c.Result != conform.Pass {
		fold(out, "- "+c.About, 8, 10)
		for line := range strings.Lines(c.Evidence) { // a companion's text, without terminal control characters
			fold(out, "- "+words.Printable(strings.TrimSpace(line)), 8, 10)
		}
	}
}

// chapters are the chapters of the specification, and what they are about.
func chapters() [][2]string {
	return [][2]string{
		{"T", "transport"}, {"D", "discovery"}, {"A", "authentication"}, {"C", "context"}, {"F", "diffs"}, {"L", "lifecycle"}, {"K", "the CLI's side"},
		{"Q", "Qwen Code"}, {"CC", "Claude Code"}, {"OC", "opencode"}, {"GC", "Copilot CLI"}, {"CX", "Codex"}, {"EP", "editor protocol"},
	}
}

// printSummary prints the table by chapter, and the skipped checks with their reasons.
func printSummary(out io.Writer, all []conform.Check) {
	type row struct{ pass, fail, skip int }
	rows, total := map[string]*row{}, &row{}
	why := map[string]int{}
	for _, c := range all {
		chapter, _, _ := strings.Cut(c.Number, "-")
		if rows[chapter] == nil {
			rows[chapter] = &row{}
		}
		for _, r := range []*row{rows[chapter], total} {
			switch c.Result {
			case conform.Pass:
				r.pass++
			case conform.Fail:
				r.fail++
			case conform.Skip:
				r.skip++
			}
		}
		if c.Result == conform.Skip {
			why[c.Evidence]++
		}
	}
	fmt.Fprintf(out, "\n  %-18s %7s %7s %9s\n", "chapter", "passed", "failed", "left out")
	line := func(name string, r *row) { fmt.Fprintf(out, "  %-18s %7d %7d %9d\n", name, r.pass, r.fail, r.skip) }
	for _, chapter := range chapters() {
		if r := rows[chapter[0]]; r != nil {
			line(chapter[0]+" "+chapter[1], r)
		}
	}
	line("all", total)
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		fold(out, fmt.Sprintf("- %d left out: %s", why[reason], reason), 2, 4)
	}
}

// junit is the report format that CI systems read.
type junit struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
	Seen    string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(out io.Writer, all []conform.Check) error {
	suite := junit{Name: "pollux conform", Tests: len(all)}
	for _, c := range all {
		jc := junitCase{Class: "SPEC " + c.Number, Name: c.Name}
		text := &junitText{c.About, words.Printable(c.Evidence)}
		switch c.Result {
		case conform.Fail:
			suite.Failures++
			jc.Failure = text
		case conform.Skip:
			suite.Skipped++
			jc.Skipped = text
		case conform.Pass:
			jc.Seen = text.Text
		}
		suite.Cases = append(suite.Cases, jc)
	}
	data, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(out, "%s%s\n", xml.Header, data)
	}
	return err
}
