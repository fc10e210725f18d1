package manifest

import (
	"strings"
	"testing"
)

// with returns a manifest with one tool that has these arguments.
func with(args string) []byte {
	return []byte(`{"name":"x","version":"1.0.0","tools":[{"name":"t","description":"d","executable":"t.py","runtime":"python","args":[` + args + `]}],
"examples":[{"prompt":"p","tool_call":"t()"}]}`)
}

// Arguments may be optional, with or without a default, which must match the type (SPEC E-3).
func TestOptional(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"a","type":"string"}`:                                             "t(a: string)",
		`{"name":"a","type":"string","required":true}`:                             "t(a: string)",
		`{"name":"a","type":"string","required":false}`:                            "t(a?: string)",
		`{"name":"a","type":"integer","default": -3}`:                              "t(a: integer = -3)",
		`{"name":"a","type":"boolean","default":true,"required":false}`:            "t(a: boolean = true)",
		`{"name":"a","type":"array","default":[1, "x"]}`:                           `t(a: array = [1,"x"])`,
		`{"name":"a","type":"object","default":{"b": {}}}`:                         `t(a: object = {"b":{}})`,
		`{"name":"a","type":"number","default":1.50}`:                              "t(a: number = 1.50)",
		`{"name":"a","type":"string","default":"` + strings.Repeat("x", 50) + `"}`: "t(a: string = …)",
	} {
		m, found := Parse("x", with(args))
		for _, f := range found {
			if f.Severity == Error || strings.Contains(f.Message, "lacks") != strings.HasSuffix(want, "(a: string)") && strings.Contains(f.Message, "lacks") {
				t.Errorf("%s: %v", args, f)
			}
		}
		if got := m.Tools[0].Signature(); got != want {
			t.Errorf("%s is %s, want %s", args, got, want)
		}
	}
	for args, want := range map[string]string{
		`{"name":"a","type":"string","default":1}`:                                         `the default is a number, and the type is "string"`,
		`{"name":"a","type":"integer","default":1.5}`:                                      `the default is a number, and the type is "integer"`,
		`{"name":"a","type":"integer","default":1e3}`:                                      `the default is a number, and the type is "integer"`,
		`{"name":"a","type":"boolean","default":"true"}`:                                   `the default is a string, and the type is "boolean"`,
		`{"name":"a","type":"array","default":{}}`:                                         `the default is an object {…}, and the type is "array"`,
		`{"name":"a","type":"object","default":null}`:                                      `the default is null, and the type is "object"`,
		`{"name":"a","type":"string","default":"\u0000"}`:                                  `the default is a string, and the type is "string"`,
		`{"name":"a","type":"string","default":"x","required":true}`:                       "cannot be required",
		`{"name":"a","type":"string","required":"no"}`:                                     "must be true or false",
		`{"name":"a","type":"string","default":"` + strings.Repeat("x", maxDefault) + `"}`: "may have 16384",
	} {
		_, found := Parse("x", with(args))
		var all strings.Builder
		for _, f := range found {
			if f.Severity == Error {
				all.WriteString(f.Message + "\n")
			}
		}
		if !strings.Contains(all.String(), want) {
			t.Errorf("%s: %q, want %q", args, all.String(), want)
		}
	}
}
