package settingsfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// An object is a JSON object in the file.
type object struct {
	*hujson.Object
	start, end int // offsets of its braces
}

// parse accepts what most agents accept: JSON with comments, without trailing commas.
func (f *file) parse() error {
	if f.missing {
		return nil
	}
	data := f.text()
	if len(data) == 0 && f.program == ClaudeCode {
		return nil
	}
	if bytes.HasPrefix(data, []byte(mark)) {
		return f.problem(0, fmt.Sprintf("the file starts with a byte order mark, which %s refuses; save it as UTF-8 without one", f.program))
	}
	// encoding/json limits the depth; hujson does not.
	if err := json.Unmarshal(plain(data), new(any)); err != nil {
		at := len(f.data)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = max(0, int(syntax.Offset)-1)
		}
		return f.problem(at, fmt.Sprintf("%v; correct it and try again (%s cannot read it either)", err, f.program))
	}
	root, err := hujson.Parse(append(bytes.Clone(data), '\n')) // hujson requires it after a comment
	if err != nil {
		return f.problem(0, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	obj, ok := root.Value.(*hujson.Object)
	if !ok {
		return f.problem(root.StartOffset, "the settings must be one object: { … }")
	}
	f.root = &object{obj, root.StartOffset, root.EndOffset - 1}
	return nil
}

// mark is a byte order mark.
const mark = "\xef\xbb\xbf"

// text returns the file with blanks for a byte order mark that the program takes.
func (f *file) text() []byte {
	if f.program != ClaudeCode || !bytes.HasPrefix(f.data, []byte(mark)) {
		return f.data
	}
	return append([]byte("   "), f.data[len(mark):]...)
}

// plain replaces comments with blanks, as the agents do before they parse.
func plain(data []byte) []byte {
	out := bytes.Clone(data)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
	}
	for i := 0; i < len(data); i++ {
		rest := data[i:]
		switch {
		case rest[0] == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			blank(i, i+n)
			i += n - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return out // unterminated: not JSON
			}
			blank(i, i+n+4)
			i += n + 3
		}
	}
	return out
}

// loads says why the program would not load a file that can be parsed.
func (f *file) loads() error {
	if f.program != ClaudeCode {
		return nil
	}
	data := f.text()
	without := plain(data)
	for i, c := range data {
		if c != without[i] {
			return f.problem(i, fmt.Sprintf("%s does not load a file with comments; take this one out", f.program))
		}
	}
	return nil
}

// Relaxed replaces comments and trailing commas with blanks, for programs that allow both.
func Relaxed(data []byte) []byte {
	out := plain(data)
	comma := -1 // where the last comma stands, as long as only blanks follow
	for i := 0; i < len(out); i++ {
		switch c := out[i]; c {
		case '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case ',':
			comma = i
		case ' ', '\t', '\r', '\n':
		default:
			if (c == '}' || c == ']') && comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		}
	}
	return out
}

func (f *file) problem(offset int, text string) *problem {
	before := f.data[:min(offset, len(f.data))]
	return &problem{
		File: f.path, Line: bytes.Count(before, []byte("\n")) + 1,
		Column: len(before) - bytes.LastIndexByte(before, '\n'), Text: text,
	}
}

// member returns the index of the last member with that name, which is the one that counts; -1 if there is none.
func (o *object) member(name string) int {
	if o == nil {
		return -1
	}
	for i, m := range slices.Backward(o.Members) {
		if lit, ok := m.Name.Value.(hujson.Literal); ok && lit.String() == name {
			return i
		}
	}
	return -1
}

// find returns the object that holds a dotted key, or nil, and the key's last part.
func (f *file) find(key string) (*object, string, error) {
	outer, inner, _ := strings.Cut(key, ".")
	i := f.root.member(outer)
	if i < 0 {
		return nil, inner, nil
	}
	v := f.root.Members[i].Value
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, inner, f.problem(v.StartOffset, fmt.Sprintf("%q must be an object: { … }", outer))
	}
	return &object{obj, v.StartOffset, v.EndOffset - 1}, inner, nil
}

func (f *file) get(key string) (*bool, error) {
	obj, name, err := f.find(key)
	if err != nil {
		return nil, err
	}
	i := obj.member(name)
	if i < 0 {
		return nil, nil
	}
	v := obj.Members[i].Value
	lit, _ := v.Value.(hujson.Literal)
	for _, b := range []bool{true, false} {
		if string(lit) == literal(key, b) || strings.HasPrefix(key, "env.") && slices.Contains(spellings(b), strings.ToLower(lit.String())) {
			return &b, nil
		}
	}
	return nil, f.problem(v.StartOffset, fmt.Sprintf("%q must be %s or %s", key, literal(key, true), literal(key, false)))
}

// literal returns a switch as it is written in a file. Members of "env" are environment variables, which are strings.
func literal(key string, on bool) string {
	if strings.HasPrefix(key, "env.") {
		return fmt.Sprintf("%q", fmt.Sprint(on))
	}
	return fmt.Sprint(on)
}

// spellings are the values of a variable that Claude Code takes for on, or for off.
func spellings(on bool) []string {
	if on {
		return []string{"1", "true", "yes", "on"}
	}
	return []string{"0", "false", "no", "off"}
}

// set plans how to set keys to true. All of them are members of one object.
func (f *file) set(keys []string) (edits []Edit, values []Value, err error) {
	if err := f.loads(); err != nil {
		return nil, nil, err
	}
	var missing []string
	for _, key := range keys {
		old, err := f.get(key)
		if err != nil {
			return nil, nil, err
		}
		if old != nil && *old {
			continue
		}
		values = append(values, Value{key, old, true})
		obj, name, _ := f.find(key)
		if old == nil {
			missing = append(missing, `"`+name+`": `+literal(key, true))
			continue
		}
		edits = append(edits, f.put(obj.Members[obj.member(name)].Value, literal(key, true)))
	}
	if len(missing) == 0 {
		return edits, values, nil
	}
	outer, _, _ := strings.Cut(keys[0], ".")
	obj, _, _ := f.find(keys[0])
	nl, unit := f.style()
	switch {
	case f.root == nil:
		edits = []Edit{{New: "{\n  \"" + outer + "\": {\n    " + strings.Join(missing, ",\n    ") + "\n  }\n}\n"}}
	case obj != nil:
		edits = append(edits, f.add(obj, missing, unit)...)
	case f.root.inline():
		edits = f.add(f.root, []string{`"` + outer + `": {` + strings.Join(missing, ", ") + "}"}, "")
	default:
		own := f.root.indent(unit)
		edits = f.add(f.root, []string{`"` + outer + `": {` + nl + own + unit + strings.Join(missing, ","+nl+own+unit) + nl + own + "}"}, "")
	}
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.Offset - b.Offset })
	return edits, values, nil
}

func (f *file) put(v hujson.Value, to string) Edit {
	return Edit{v.StartOffset, string(f.data[v.StartOffset:v.EndOffset]), to}
}

// style returns the file's own line end and indentation.
func (f *file) style() (nl, unit string) {
	nl = "\n"
	if i := bytes.IndexByte(f.data, '\n'); i > 0 && f.data[i-1] == '\r' {
		nl = "\r\n"
	}
	return nl, f.root.indent("  ")
}

// inline reports whether an object with members is on one line.
func (o *object) inline() bool {
	return len(o.Members) > 0 && !bytes.Contains(o.Members[0].Name.BeforeExtra, []byte("\n")) && !bytes.Contains(o.AfterExtra, []byte("\n"))
}

// indent returns the white space before the first member, or otherwise.
func (o *object) indent(otherwise string) string {
	if o == nil || len(o.Members) == 0 {
		return otherwise
	}
	_, last, found := strings.Cut(string(o.Members[0].Name.BeforeExtra), "\n")
	for found {
		otherwise = last
		_, last, found = strings.Cut(last, "\n")
	}
	return otherwise[:len(otherwise)-len(strings.TrimLeft(otherwise, " \t"))]
}

// add appends members to an object; outer is the indentation of the line where the object starts. Comments after the
// last member stay with it.
func (f *file) add(o *object, members []string, outer string) []Edit {
	nl, unit := f.style()
	at := len(bytes.TrimRight(f.data[:o.end], " \t\r\n"))
	switch {
	case o.inline():
		comma := o.Members[len(o.Members)-1].Value.EndOffset
		return []Edit{{Offset: comma, New: ","}, {Offset: at, New: " " + strings.Join(members, ", ")}}
	case len(o.Members) > 0:
		comma, own := o.Members[len(o.Members)-1].Value.EndOffset, o.indent(outer+unit)
		return []Edit{{Offset: comma, New: ","}, {Offset: at, New: nl + own + strings.Join(members, ","+nl+own)}}
	}
	own, end := outer+unit, nl+outer
	if bytes.Contains(f.data[at:o.end], []byte("\n")) {
		end = "" // the brace is on its own line
	}
	return []Edit{{Offset: at, New: nl + own + strings.Join(members, ","+nl+own) + end}}
}

// restore puts back values that are still as a change left them.
func (f *file) restore(values []Value) (next []byte, keys []string, err error) {
	own := *f // keep what was read
	f = &own
	for _, v := range values {
		now, err := f.get(v.Key)
		if err != nil {
			return nil, nil, err
		}
		if now == nil || *now != v.New {
			continue
		}
		keys = append(keys, v.Key)
		obj, name, _ := f.find(v.Key)
		i := obj.member(name)
		if v.Old != nil {
			f.data = apply(f.data, []Edit{f.put(obj.Members[i].Value, literal(v.Key, *v.Old))})
		} else {
			f.data = apply(f.data, f.cut(obj, i))
		}
		if err := f.parse(); err != nil {
			return nil, nil, err
		}
	}
	if obj, _, err := f.find(values[0].Key); err == nil && obj != nil && len(keys) > 0 && len(bytes.TrimSpace(f.data[obj.start+1:obj.end])) == 0 && values[0].Old == nil {
		outer, _, _ := strings.Cut(values[0].Key, ".")
		f.data = apply(f.data, f.cut(f.root, f.root.member(outer)))
		if err := f.parse(); err != nil {
			return nil, nil, err
		}
	}
	return f.data, keys, nil
}

// cut removes one member from an object, with the white space before it and one comma. The comments around it stay.
func (f *file) cut(o *object, i int) []Edit {
	m := o.Members[i]
	from, to := m.Name.StartOffset, m.Value.EndOffset
	if !bytes.Contains(m.Name.BeforeExtra, []byte("//")) {
		from = len(bytes.TrimRight(f.data[:from], " \t\r\n"))
	}
	edits := []Edit{{Offset: from, Old: string(f.data[from:to])}}
	comma := -1
	switch {
	case i > 0:
		comma = o.Members[i-1].Value.EndOffset + len(o.Members[i-1].Value.AfterExtra)
	case len(o.Members) > 1:
		comma = to + len(m.Value.AfterExtra)
	}
	switch {
	case comma < 0:
	case comma+1 == from:
		edits = []Edit{{Offset: comma, Old: string(f.data[comma:to])}}
	default:
		edits = append(edits, Edit{Offset: comma, Old: ","})
	}
	slices.SortFunc(edits, func(a, b Edit) int { return a.Offset - b.Offset })
	return edits
}

// apply makes edits, which are ordered by offset.
func apply(data []byte, edits []Edit) []byte {
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, data[at:e.Offset]...), e.New...)
		at = e.Offset + len(e.Old)
	}
	return append(out, data[at:]...)
}

// revert undoes edits; ok is false if the text is not what they produced.
func revert(data []byte, edits []Edit) (old []byte, ok bool) {
	old = []byte{} // the old text may be empty
	at, shift := 0, 0
	for _, e := range edits {
		from := e.Offset + shift
		if from < at || from+len(e.New) > len(data) || string(data[from:from+len(e.New)]) != e.New {
			return nil, false
		}
		old = append(append(old, data[at:from]...), e.Old...)
		at = from + len(e.New)
		shift += len(e.New) - len(e.Old)
	}
	return append(old, data[at:]...), true
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
