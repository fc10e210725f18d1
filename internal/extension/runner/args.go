package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/words"
)

// What a command line can carry: Linux allows 128 KiB for one argument.
const (
	maxArg  = 128<<10 - 256
	maxArgs = 1 << 20
)

// arguments turns a call's arguments into those of a command line, in the
// order of the manifest, and returns the names that were given. Everything
// that is wrong is said at once, in an *ArgumentError.
func arguments(tool manifest.Tool, object json.RawMessage, typed []TextArg) (line, names []string, err error) {
	wrong := &ArgumentError{Signature: tool.Signature()}
	given, err := members(object)
	if err != nil {
		wrong.Text = err.Error()
		return nil, nil, wrong
	}
	values := map[string]string{}
	for _, g := range given {
		if optional(tool, g.name) && string(bytes.TrimSpace(g.value)) == "null" {
			continue // as if it were not there
		}
		wrong.put(tool, values, g.name, func(kind string) (string, error) { return fromJSON(g.value, kind) })
	}
	for _, t := range typed {
		wrong.put(tool, values, t.Name, func(kind string) (string, error) {
			if t.Bare && kind != "boolean" {
				return "", errors.New("given without a value")
			}
			return fromText(t.Value, kind)
		})
	}
	total := 0
	for _, arg := range tool.Args {
		value, ok := values[arg.Name]
		switch {
		case ok:
			names = append(names, arg.Name)
		case arg.Default != "" && !slices.ContainsFunc(wrong.Wrong, func(w WrongArg) bool { return w.Name == arg.Name }):
			if value, err = fromJSON(json.RawMessage(arg.Default), arg.Type); err != nil {
				wrong.Text = fmt.Sprintf("the manifest's default of %s is %v, which it cannot be", arg.Name, err)
				continue
			}
		case arg.Optional:
			continue
		default:
			if !slices.ContainsFunc(wrong.Wrong, func(w WrongArg) bool { return w.Name == arg.Name }) {
				wrong.Missing = append(wrong.Missing, arg.Name)
			}
			continue
		}
		total += len(arg.Name) + len(value)
		line = append(line, flag(tool.Runtime, arg, value)...)
	}
	if total > maxArgs {
		wrong.Text = fmt.Sprintf("they have %d bytes together, and a command line may have %d", total, maxArgs)
	}
	if wrong.Text != "" || len(wrong.Missing)+len(wrong.Unknown)+len(wrong.Wrong) > 0 {
		return nil, nil, wrong
	}
	return line, names, nil
}

// optional says whether a tool has an argument that may be left out.
func optional(tool manifest.Tool, name string) bool {
	return slices.ContainsFunc(tool.Args, func(a manifest.Arg) bool { return a.Name == name && a.Optional })
}

// flag is one argument of a command line. A boolean is there or not, as argparse's store_true and parseArgs' boolean have it;
// one that is true by default is taken back by --no-name, as BooleanOptionalAction and allowNegative have it. A value that begins with a dash
// would be taken for a flag by the parsers that Python and Node have; the form
// with = says what it is. A shell script takes the next word, whatever it is.
func flag(runtime string, arg manifest.Arg, value string) []string {
	name := arg.Name
	switch {
	case arg.Type == "boolean" && value == "true":
		return []string{"--" + name}
	case arg.Type == "boolean" && arg.Default == "true":
		return []string{"--no-" + name}
	case arg.Type == "boolean":
		return nil
	}
	if strings.HasPrefix(value, "-") && runtime != runtimeShell {
		return []string{"--" + name + "=" + value}
	}
	return []string{"--" + name, value}
}

// put converts one argument, and notes what is wrong with it.
func (e *ArgumentError) put(tool manifest.Tool, values map[string]string, name string, convert func(kind string) (string, error)) {
	i := slices.IndexFunc(tool.Args, func(a manifest.Arg) bool { return a.Name == name })
	if i < 0 {
		var known []string
		for _, a := range tool.Args {
			known = append(known, a.Name)
		}
		e.Unknown = append(e.Unknown, UnknownArg{name, words.Nearest(name, known)})
		return
	}
	value, err := convert(tool.Args[i].Type)
	var got string
	_, twice := values[name]
	switch {
	case err != nil:
		got = err.Error()
	case twice:
		got = "given twice"
	case strings.ContainsRune(value, 0):
		got = "a text with the character U+0000, which no command line can carry"
	case len(value) > maxArg:
		got = fmt.Sprintf("%d bytes long, of which a command line carries %d", len(value), maxArg)
	default:
		values[name] = value
		return
	}
	e.Wrong = append(e.Wrong, WrongArg{Name: name, Want: wanted(tool.Args[i].Type), Got: got})
}

// wanted says a type to a model.
func wanted(kind string) string {
	switch kind {
	case "number":
		return "a number"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list ([…])"
	case "object":
		return "an object ({…})"
	}
	return "a text"
}

// A jsonMember is one name of an object and its value.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// members reads an object; nothing at all is an empty one.
func members(object json.RawMessage) (all []jsonMember, err error) {
	if len(bytes.TrimSpace(object)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	start, err := dec.Token()
	if err != nil {
		return nil, notJSON(err)
	}
	if start != json.Delim('{') {
		return nil, errors.New(`they must be one JSON object, such as {"name": "value"}`)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		m := jsonMember{}
		m.name, _ = name.(string) // the decoder lets nothing else stand there
		if err := dec.Decode(&m.value); err != nil {
			return nil, notJSON(err)
		}
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, notJSON(err)
	}
	if dec.More() {
		return nil, errors.New("something follows the JSON object")
	}
	return all, nil
}

// fromJSON converts a value to what the program gets. It is as strict as the schema that a model is given: a number is no
// text, and a text is no number. What was wrong is said so that the next try is right.
func fromJSON(value json.RawMessage, kind string) (string, error) {
	value = bytes.TrimSpace(value)
	switch value[0] {
	case '"':
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return "", errors.New("not a JSON text")
		}
		if kind == "string" {
			return text, nil
		}
		if _, err := fromText(text, kind); err == nil {
			return "", errors.New("a text; write it without quotes")
		}
		return "", errors.New("a text")
	case 'n':
		return "", errors.New("null")
	case '{', '[':
		if kind == "object" && value[0] == '{' || kind == "array" && value[0] == '[' {
			var out bytes.Buffer
			err := json.Compact(&out, value) // numbers stay as they are written
			return out.String(), err
		}
		return "", errors.New(map[byte]string{'{': "an object", '[': "a list"}[value[0]])
	}
	if kind == "string" {
		return "", fmt.Errorf("%s; write it in quotes", described(string(value)))
	}
	return fromText(string(value), kind) // a number, true or false
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("they are no JSON: the text ends before the object does")
	}
	return fmt.Errorf("they are no JSON: %w", err)
}

var numberForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)
})

// fromText converts what was typed, or came as a JSON text.
func fromText(text, kind string) (string, error) {
	if kind == "string" {
		return text, nil
	}
	text = strings.TrimSpace(text)
	switch kind {
	case "boolean":
		if text == "true" || text == "false" {
			return text, nil
		}
	case "number":
		if numberForm().MatchString(text) {
			return text, nil
		}
	case "integer":
		if numberForm().MatchString(text) { // which bounds the exponent
			if n, ok := new(big.Rat).SetString(text); ok && n.IsInt() {
				return n.Num().String(), nil
			}
		}
	case "array", "object":
		if first := text[:min(1, len(text))]; json.Valid([]byte(text)) && (first == "[") == (kind == "array") && (first == "{") == (kind == "object") {
			return fromJSON(json.RawMessage(text), kind)
		}
	}
	return "", errors.New(described(text))
}

// described says what a text is that is not what was wanted, without quoting
// more of it than helps.
func described(text string) string {
	switch {
	case text == "":
		return "empty"
	case text == "true" || text == "false" || numberForm().MatchString(text):
		return text[:min(40, len(text))]
	case json.Valid([]byte(text)) && text[0] == '{':
		return "an object"
	case json.Valid([]byte(text)) && text[0] == '[':
		return "a list"
	}
	return "a text"
}
