package terminal

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	got := string(SVG("plain \x1b[1;31mred & bold\x1b[0m\n\x1b[48;5;238m日本\x1b[49m \x1b[38;2;1;2;3mrgb\x1b[39m\x0f\n"))
	for _, want := range []string{">plain <", `font-weight="bold">red &amp; bold<`, `fill="#444444"`, `textLength="33.6"`, `fill="#010203"`, ">rgb<"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzSVG(f *testing.F) {
	f.Add("\x1b[38;5;1mx\x1b[mK")
	f.Add("\x1b(B\x1b[38;2m\x0e")
	f.Fuzz(func(_ *testing.T, screen string) { SVG(screen) })
}
