package proc

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// args2 builds a macOS block: the count, the program, padding, words, environment, the kernel's own strings.
func args2(count uint32, text string) []byte {
	return append(binary.NativeEndian.AppendUint32(nil, count), text...)
}

func TestParseArgs2(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		block      []byte
		words, env string // joined by |
		ok         bool
	}{
		"node":          {args2(2, "/opt/homebrew/bin/node\x00\x00\x00\x00node\x00/opt/homebrew/bin/gemini\x00TMPDIR=/var/folders/x/T/\x00TERM_PROGRAM=vscode\x00\x00executable_path=/x\x00"), "node|/opt/homebrew/bin/gemini", "TMPDIR=/var/folders/x/T/|TERM_PROGRAM=vscode", true},
		"hidden":        {args2(1, "/bin/zsh\x00\x00-zsh\x00\x00\x00"), "-zsh", "", true},
		"empty word":    {args2(3, "/bin/sh\x00sh\x00\x00x\x00A=1\x00\x00"), "sh||x", "A=1", true},
		"no end":        {args2(1, "/bin/sh\x00sh"), "sh", "", true},
		"too many":      {args2(9, "/bin/sh\x00sh\x00"), "", "", false},
		"none":          {args2(0, "/bin/sh\x00sh\x00"), "", "", false},
		"huge":          {args2(1<<31, "/bin/sh\x00sh\x00"), "", "", false},
		"only the path": {args2(1, "/bin/sh"), "", "", false},
		"short":         {[]byte{1, 0}, "", "", false},
		"nothing":       {nil, "", "", false},
	} {
		words, env, ok := parseArgs2(test.block)
		if strings.Join(words, "|") != test.words || strings.Join(env, "|") != test.env || ok != test.ok {
			t.Errorf("%s: %q, %q, %v", name, words, env, ok)
		}
	}
}

func TestParsePathInfo(t *testing.T) {
	t.Parallel()
	block := func(path string) []byte {
		b := make([]byte, pathInfoSize)
		copy(b[vnodeInfoSize:], path)
		return b
	}
	if dir, ok := parsePathInfo(block("/Users/me/app")); !ok || dir != "/Users/me/app" {
		t.Errorf("%q, %v", dir, ok)
	}
	for name, b := range map[string][]byte{
		"empty": block(""), "relative": block("app"), "endless": block("/" + strings.Repeat("x", maxPathLen)), "cut": block("/x")[:vnodeInfoSize+4], "none": nil,
	} {
		if dir, ok := parsePathInfo(b); ok {
			t.Errorf("%s: %q", name, dir)
		}
	}
}

func TestParseEnvBlock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"=C:=C:\\app\x00TEMP=C:\\t\x00PATH=a;b=c\x00\x00garbage": {"TEMP=C:\\t", "PATH=a;b=c"},
		"A=ü🎈\x00":       {"A=ü🎈"},
		"A=1":            {"A=1"},
		"\x00A=1\x00":    {},
		"":               {},
		"A=\x00B=2\x00x": {"A=", "B=2", "x"},
	} {
		if got := parseEnvBlock(utf16.Encode([]rune(text))); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add(args2(1, "/bin/sh\x00sh\x00A=1\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		words, env, ok := parseArgs2(data)
		if ok && len(words) != int(binary.NativeEndian.Uint32(data)) || !ok && len(words)+len(env) > 0 {
			t.Errorf("%q: %q, %q, %v", data, words, env, ok)
		}
		if dir, ok := parsePathInfo(data); ok && (!strings.HasPrefix(dir, "/") || strings.Contains(dir, "\x00")) {
			t.Errorf("%q", dir)
		}
		block := make([]uint16, len(data)/2)
		for i := range block {
			block[i] = binary.NativeEndian.Uint16(data[2*i:])
		}
		for _, e := range parseEnvBlock(block) {
			if e == "" || strings.HasPrefix(e, "=") || strings.Contains(e, "\x00") {
				t.Errorf("%q", e)
			}
		}
	})
}
