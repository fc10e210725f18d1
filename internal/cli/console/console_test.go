package console

import (
	"bytes"
	"os"
	"testing"
)

func TestPaint(t *testing.T) {
	var b bytes.Buffer
	if got := Paint(&b, Red, "x"); got != "x" {
		t.Errorf("%q for a buffer", got)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := Paint(f, Red, "x"); got != "x" {
		t.Errorf("%q for a file", got)
	}
}
