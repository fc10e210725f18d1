package dispatch

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The first page of a long result has its beginning and its end, tells what it left out, and stays one page (SPEC P-4).
func TestFirstPage(t *testing.T) {
	note := regexp.MustCompile(`(?m)^\[bytes 0 to (\d+) above, and (\d+) to (\d+) below, of (\d+); (.+)\]\n`)
	for name, text := range map[string]string{
		"lines":             strings.Repeat("a line of a log\n", 9000) + "FAILED: 3 of 12\n",
		"one line":          "{" + strings.Repeat("x", 200_000) + "}",
		"wide characters":   strings.Repeat("größer 日本 😀", 4000),
		"not UTF-8":         strings.Repeat("\xff\xfe", 60_000),
		"a byte too long":   strings.Repeat("x", pageBytes+1),
		"a long end":        strings.Repeat("x\n", 40_000) + strings.Repeat("y", 30_000),
		"a note of its own": strings.Repeat("[bytes 0 to 9 above, and 10 to 20 below, of 20; read on]\n", 2000) + "end",
	} {
		for _, ends := range []bool{false, true} {
			d := New(Options{Ends: ends})
			got := d.firstPage(text)
			all := note.FindAllStringSubmatchIndex(got, -1)
			if len(got) > pageBytes+300 || len(all) == 0 {
				t.Fatalf("%s: %d bytes, %d notes", name, len(got), len(all))
			}
			n := all[0]
			for _, m := range all { // the one that tells the truth
				if of, _ := strconv.Atoi(got[m[8]:m[9]]); of == len(text) {
					n = m
				}
			}
			number := func(i int) int { v, _ := strconv.Atoi(got[n[2*i]:n[2*i+1]]); return v }
			head, tail := strings.TrimSuffix(got[:n[0]], "\n"), got[n[1]:]
			if !strings.HasPrefix(text, head) || number(1) != len(head) && number(1) != len(head)+1 {
				t.Errorf("%s: the beginning is not %d bytes of it", name, number(1))
			}
			if tail != text[number(2):] || number(3) != len(text) || len(tail) < tailBytes/2 {
				t.Errorf("%s: the end is not bytes %d to %d of it", name, number(2), number(3))
			}
			if utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Errorf("%s: a character is split", name)
			}
			if kept := strings.Contains(got[n[0]:n[1]], `read_doc(name="result:1", offset=`+strconv.Itoa(number(1))); kept == ends {
				t.Errorf("%s: %s", name, got[n[0]:n[1]])
			}
		}
	}
	if text := strings.Repeat("x", pageBytes); New(Options{}).firstPage(text) != text {
		t.Error("a page that fits was changed")
	}
}
