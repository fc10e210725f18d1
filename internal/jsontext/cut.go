package jsontext

import "slices"

// CutChecked takes a large member out of an object: the first one with one of the names. value is its JSON, a slice of
// object; rest is the object with null in its place, for a decoder that copies and scans twice. ok is false, and the
// decoder gets object itself, if there is no such member or the object is unusual: the name occurs twice, a key has
// an escape, or the JSON is invalid. It does not look into strings, which were checked before or will be by who decodes the parts,
// so it costs nearly nothing.
func CutChecked(object []byte, names ...string) (name string, value, rest []byte, ok bool) {
	s := NewScanner(object)
	s.checked = true
	return cut(s, names)
}

func cut(s *Scanner, names []string) (name string, value, rest []byte, ok bool) {
	object, start := s.b, 0
	if !s.next('{') || s.Peek() == '}' {
		return "", nil, nil, false
	}
	for {
		key, good := s.Raw()
		if !good || len(key) < 2 || key[0] != '"' || slices.Contains(key, '\\') || !s.next(':') {
			return "", nil, nil, false
		}
		one, good := s.Raw()
		if !good {
			return "", nil, nil, false
		}
		if found := string(key[1 : len(key)-1]); name == "" && slices.Contains(names, found) {
			name, value, start = found, one, s.i-len(one)
		} else if name == found {
			return "", nil, nil, false
		}
		if !s.next(',') {
			break
		}
	}
	if name == "" || !s.next('}') || !s.Done() {
		return "", nil, nil, false
	}
	after := object[start+len(value):]
	rest = append(make([]byte, 0, start+len("null")+len(after)), object[:start]...)
	return name, value, append(append(rest, "null"...), after...), true
}
