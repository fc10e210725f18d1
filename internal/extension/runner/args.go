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

// Limits of a command line: Linux allows 128 KiB for one argument.
const (
	maxArg  = 128<<10 - 256
	maxArgs = 1 << 20
)

// arguments turns a call's arguments into command-line arguments in the manifest's order, and returns the given
// names. An *ArgumentError reports all faults at once.
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
			continue // treated as absent
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

// optional says whether a tool has an optional argument with this name.
func optional(tool manifest.Tool, name string) bool {
	return slices.ContainsFunc(tool.Args, func(a manifest.Arg) bool { return a.Name == name && a.Optional })
}

// flag returns one argument for the command line. A boolean is present or absent, as in argparse's store_true and
// parseArgs' boolean. One that is true by default is negated by --no-name, as in BooleanOptionalAction and
// allowNegative. Other values use --name=value, because Python's and Node's parsers would take a value with a leading
// dash for a flag. A shell script simply takes the next word.
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

// put converts one argument and notes its faults.
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

// wanted describes a type to a model.
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

// A jsonMember is one name and value of an object.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// members reads an object. Empty input is an empty object.
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
		m.name, _ = name.(string) // the decoder allows only strings here
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

// fromJSON converts a value to what the program gets. It is as strict as the schema that a model sees: a number is no
// string, and a string is no number. Its errors tell a model how to do it right.
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
			err := json.Compact(&out, value) // numbers keep their spelling
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

// fromText converts a value that was typed or is JSON text.
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
		if numberForm().MatchString(text) { // the form bounds the exponent
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

// described says what an unexpected text is, and quotes no more of it than helps.
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
