package proc

import "testing"

func TestParseTTY(t *testing.T) {
	for line, want := range map[string]TTY{
		"7 (a b) c) S 1 7 7 34816 7 4194304 1 1 1 1 1 1 1 1 20 0 1 0 99":   {ID: 34816, Foreground: true},
		"7 (x) T 1 7 5 34817 5 4194304 1 1 1 1 1 1 1 1 20 0 1 0 99":        {ID: 34817},
		"7 (x) S 1 7 5 -2147483648 -1 4194304 1 1 1 1 1 1 1 1 20 0 1 0 99": {ID: 1<<64 - 1<<31},
	} {
		if got, ok := parseTTY([]byte(line)); !ok || got != want {
			t.Errorf("%s: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "7 (x) S", "7 (x) S 1 7 5 0 -1 0", "7 (x) S 1 7 5 many 7 0", ")"} {
		if got, ok := parseTTY([]byte(line)); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}
