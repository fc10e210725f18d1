package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/capability"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/prompt"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// maxDoc is the size of the largest document that is read, in bytes.
const maxDoc = 8 << 20

// readDocArgs are the arguments of capability.ReadDoc.
type readDocArgs struct {
	Name   string `json:"name"`
	Offset int    `json:"offset"`
}

func (d *Dispatcher) readDocCall(args json.RawMessage) Reply {
	var a readDocArgs
	if err := strictly(args, &a); err != nil || a.Name == "" {
		return failed(capability.ReadDoc, fmt.Errorf("%s takes name, the name of a document, and perhaps offset, a number of bytes", capability.ReadDoc))
	}
	return d.Read(a.Name, a.Offset)
}

// strictly decodes one object without unknown fields.
func strictly(args json.RawMessage, into any) error {
	if len(args) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(args)))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// Read returns a document, or more of a long result, from offset (in bytes) on.
func (d *Dispatcher) Read(name string, offset int) Reply {
	name = strings.TrimSpace(name)
	if strings.HasPrefix(name, resultPrefix) {
		d.mu.Lock()
		text, ok := d.shelf.get(name)
		d.mu.Unlock()
		if !ok {
			return failed(name, fmt.Errorf("the result %q is not kept any more; call the tool again", prompt.Line(name, 40)))
		}
		return Reply{Name: name, Text: page(name, text, offset)}
	}
	doc, err := d.Set().Doc(name)
	if unknown := new(capability.UnknownError); errors.As(err, &unknown) {
		if set, again := d.Refresh(); again == nil {
			doc, err = set.Doc(name)
		}
	}
	if err != nil {
		return failed(name, err)
	}
	return d.part(doc, offset)
}

// part returns a document of a set, delimited, from offset (in bytes) on.
func (d *Dispatcher) part(doc capability.Doc, offset int) Reply {
	return d.readDoc(doc, func(text string) string { return page(doc.Readable, text, offset) })
}

// readDoc returns what pick takes from a document's text.
func (d *Dispatcher) readDoc(doc capability.Doc, pick func(text string) string) Reply {
	text, refused, err := d.content(doc.Extension, doc.File)
	if err != nil {
		r := failed(doc.Readable, fmt.Errorf("the document %q cannot be read: %w", doc.Readable, err))
		r.Refused = refused
		return r
	}
	return Reply{Name: doc.Readable, Text: prompt.Document(doc.Readable, pick(prompt.Data(text)))}
}

// ReadPart returns one part of a document, counted from 1, for a client that has MCP resources and perhaps no tools.
// It refers to the next part by its URI.
func (d *Dispatcher) ReadPart(doc capability.Doc, part int) Reply {
	return d.readDoc(doc, func(text string) string {
		offset := 0
		for i := 1; i < part && offset < len(text); i++ {
			_, offset = cutPage(text, offset)
		}
		return pageBy(text, offset, func(int) string { return "the resource " + PartURI(doc, part+1) })
	})
}

// PartURI returns the URI of a part. The first part has the document's own.
func PartURI(doc capability.Doc, part int) string {
	if part <= 1 {
		return doc.URI()
	}
	return fmt.Sprintf("%s?part=%d", doc.URI(), part)
}

// certainlyShort is the size, in bytes, up to which a document has one part however much of it must be escaped.
const certainlyShort = pageBytes / 8

// Parts returns how many parts a document has. An unreadable document has one, which says why.
func (d *Dispatcher) Parts(doc capability.Doc) int {
	data, err := readFile(doc.Extension.Dir, doc.File, certainlyShort)
	if err != nil || len(data) < certainlyShort {
		return 1
	}
	if data, err = readWhole(doc.Extension.Dir, doc.File); err != nil {
		return 1
	}
	text, n := prompt.Data(string(data)), 1
	for _, at := cutPage(text, 0); at < len(text); n++ {
		_, at = cutPage(text, at)
	}
	return n
}

// content reads a file of an extension. It checks once more that the user agreed to the current content.
func (d *Dispatcher) content(x *capability.Extension, file string) (text string, refused bool, err error) {
	if x.Folder != "" && !d.o.ForUser {
		now, err := d.o.Store.Get(x.Folder)
		if err != nil {
			return "", false, err
		}
		if !now.EnabledHere || now.Problem != "" {
			return "", true, fmt.Errorf("the extension %q was disabled or broken meanwhile", x.Name)
		}
		if !d.consented(now) {
			return "", true, fmt.Errorf("the extension %q has changed, and the user has not agreed to what it is now; they do with: pollux extensions consent grant %s", x.Name, x.Name)
		}
	}
	data, err := readWhole(x.Dir, file)
	return string(data), false, err
}

// readWhole reads a file that a manifest names, unless it is too long.
func readWhole(dir, name string) ([]byte, error) {
	data, err := readFile(dir, name, maxDoc+1)
	if err == nil && len(data) > maxDoc {
		err = fmt.Errorf("it has more than %d bytes", maxDoc)
	}
	return data, err
}

// readFile reads at most that many bytes of a file that a manifest names. It never leaves the extension, whatever
// links there are.
func readFile(dir, name string, atMost int64) ([]byte, error) {
	root, err := manifest.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := manifest.Open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, atMost))
}

// Find returns an installed extension's document for the user, complete and without delimiters.
func Find(s *store.Store, extension, doc string) ([]byte, error) {
	x, err := s.Get(extension)
	if err != nil {
		return nil, err
	}
	found, ok := x.Manifest.Doc(doc)
	if !ok {
		var names []string
		for _, d := range x.Manifest.Docs {
			names = append(names, d.Name)
		}
		return nil, &NoDocError{Extension: x.Name, Doc: doc, Nearest: words.Nearest(doc, names), Known: names}
	}
	data, err := readWhole(x.Dir, found.File)
	if err != nil {
		return nil, fmt.Errorf("the document %q of %q cannot be read: %w", doc, x.Name, err)
	}
	return data, nil
}

// A NoDocError says that an extension has no document with that name.
type NoDocError struct {
	Extension, Doc string
	Nearest, Known []string
}

// Error names the nearest documents, or all of them.
func (e *NoDocError) Error() string {
	text := fmt.Sprintf("the extension %q has no document %q", e.Extension, words.Printable(e.Doc))
	switch {
	case len(e.Nearest) > 0:
		return text + "; did you mean " + strings.Join(e.Nearest, " or ") + "?"
	case len(e.Known) == 0:
		return text + "; it has no documents at all"
	}
	return text + "; it has " + strings.Join(e.Known, ", ")
}
