package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"time"
)

// The journal's file is a line that names its format and then records, each
//
//	length of the payload    4 bytes, big-endian
//	CRC-32C of the payload   4 bytes, big-endian
//	payload                  a line of JSON, the head; after it the texts that the head counts, as they are
//
// A record is there when it is there whole: reading stops at the first that is not.
const (
	magic      = "pollux journal 1\n"
	headerSize = 8
	// maxRecord bounds a payload, in bytes; larger texts lie in files of their own.
	maxRecord = 1 << 20
	// inlineText is the size in bytes up to which a text lies in its record: a file more costs a small diff more than the copy.
	inlineText = 16 << 10
	// smallText is the size in bytes up to which an edited text is written whole.
	smallText = 2 << 10
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // the package makes it once

// A kind says what has happened.
type kind string

const (
	opened  kind = "opened"  // a diff; the texts are Old, New and, if it was edited, Text
	edited  kind = "edited"  // a diff's text: it is Text, or Cut bytes at From became Ins
	based   kind = "based"   // the file that a diff's text was made for is Old, or is not there (IsNew)
	decided kind = "decided" // a diff; As, Life and Seq are how its session is told. The last edit before is its content
	heard   kind = "heard"   // a session has heard its outcomes Seqs
	dropped kind = "dropped" // a session's diff of Key, open or decided, is of no interest any more
	// counted: Life and Seq are the newest that a session was to be told.
	counted kind = "counted"
	// forgotten: a diff is of no interest any more.
	forgotten kind = "forgotten"
	ended     kind = "ended"   // a session, with all that is its own
	deleted   kind = "deleted" // likewise, and its id is not good any more
)

// A record is the head of one. Which fields are used is the kind's to say.
type record struct {
	Kind    kind      `json:"kind"`
	Session string    `json:"session,omitempty"`
	ID      string    `json:"id,omitempty"`
	Key     string    `json:"key,omitempty"`
	Path    string    `json:"path,omitempty"`
	Title   string    `json:"title,omitempty"`
	Opened  time.Time `json:"opened,omitzero"`
	IsNew   bool      `json:"isNew,omitempty"`
	From    int       `json:"from,omitempty"`
	Cut     int       `json:"cut,omitempty"`
	As      string    `json:"as,omitempty"`
	Life    string    `json:"life,omitempty"`
	Seq     uint64    `json:"seq,omitempty"`
	Seqs    []uint64  `json:"seqs,omitempty"`
	// The texts stand behind the head in this order.
	Old  *stored `json:"old,omitempty"`
	New  *stored `json:"new,omitempty"`
	Text *stored `json:"text,omitempty"`
	Ins  *stored `json:"ins,omitempty"`
}

// A stored text lies in a file of its own, or behind its record's head.
type stored struct {
	Size int    `json:"size"`
	File string `json:"file,omitempty"`
	Sum  uint32 `json:"sum,omitempty"` // CRC-32C of a file's content
	text string // of one that is in no file
}

func (r *record) texts() [4]*stored { return [4]*stored{r.Old, r.New, r.Text, r.Ins} }

// encode appends the record, framed, to b.
func encode(b []byte, r *record) ([]byte, error) {
	head, err := json.Marshal(r)
	if err != nil {
		return b, err
	}
	start := len(b)
	b = append(append(append(b, make([]byte, headerSize)...), head...), '\n')
	for _, t := range r.texts() {
		if t != nil && t.File == "" {
			b = append(b, t.text...)
		}
	}
	seal(b[start:])
	return b, nil
}

// frame appends a payload, framed, to b.
func frame(b, payload []byte) []byte {
	start := len(b)
	b = append(append(b, make([]byte, headerSize)...), payload...)
	seal(b[start:])
	return b
}

// seal writes the header of a record, whose payload is in its place.
func seal(b []byte) {
	payload := b[headerSize:]
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(payload, castagnoli()))
}

// decode reads the records of a file, calls f with each and with what it takes on the disk, and returns how many bytes are good.
func decode(data []byte, f func(*record, int)) (good int) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return 0
	}
	good = len(magic)
	for {
		rest := data[good:]
		if len(rest) < headerSize {
			return good
		}
		size := int(binary.BigEndian.Uint32(rest))
		if size > maxRecord || size > len(rest)-headerSize {
			return good
		}
		payload := rest[headerSize : headerSize+size]
		if crc32.Checksum(payload, castagnoli()) != binary.BigEndian.Uint32(rest[4:]) {
			return good
		}
		r, ok := decodePayload(payload)
		if !ok {
			return good
		}
		good += headerSize + size
		f(r, headerSize+size)
	}
}

func decodePayload(payload []byte) (*record, bool) {
	head, texts, ok := bytes.Cut(payload, []byte{'\n'})
	var r record
	if !ok || json.Unmarshal(head, &r) != nil {
		return nil, false
	}
	for _, t := range r.texts() {
		if t == nil || t.File != "" {
			continue
		}
		if t.Size < 0 || t.Size > len(texts) {
			return nil, false
		}
		t.text, texts = string(texts[:t.Size]), texts[t.Size:]
	}
	return &r, len(texts) == 0
}
