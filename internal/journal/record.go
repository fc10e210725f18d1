package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"time"
)

// The journal's file is a line that names its format, and then records, each
//
//	length of the payload    4 bytes, big-endian
//	CRC-32C of the payload   4 bytes, big-endian
//	payload                  a line of JSON, the head; after it the texts that the head counts, byte for byte
//
// Reading stops at the first record that is not whole.
const (
	magic      = "pollux journal 1\n"
	headerSize = 8
	// maxRecord bounds a payload, in bytes; larger texts lie in files of their own.
	maxRecord = 1 << 20
	// inlineText is the largest text, in bytes, that lies in its record. For a small diff, a file of its own costs more than the copy.
	inlineText = 16 << 10
	// smallText is the largest edited text, in bytes, that is always written whole.
	smallText = 2 << 10
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // the package makes the table once

// A kind says what has happened.
type kind string

const (
	opened  kind = "opened"  // a diff; the texts are Old, New and, if it was edited, Text
	edited  kind = "edited"  // a diff's text is now Text, or Cut bytes at From became Ins
	based   kind = "based"   // the file that a diff's text was made for is Old, or is not there (IsNew)
	decided kind = "decided" // a diff was decided; As, Life and Seq say how its session is told. Its content is the last edit before
	heard   kind = "heard"   // a session has heard the outcomes Seqs
	dropped kind = "dropped" // a session's diff of Key, open or decided, is not needed any more
	// counted: Life and Seq are of the newest outcome of a session.
	counted kind = "counted"
	// forgotten: a diff is not needed any more.
	forgotten kind = "forgotten"
	ended     kind = "ended"   // a session ended, with all its diffs
	deleted   kind = "deleted" // a session ended, and its id is invalid from now on
)

// A record is the head of one. Its kind decides which fields are used.
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
	// The texts follow the head in this order.
	Old  *stored `json:"old,omitempty"`
	New  *stored `json:"new,omitempty"`
	Text *stored `json:"text,omitempty"`
	Ins  *stored `json:"ins,omitempty"`
}

// A stored text lies in a file of its own, or behind the head of its record.
type stored struct {
	Size int    `json:"size"`
	File string `json:"file,omitempty"`
	Sum  uint32 `json:"sum,omitempty"` // CRC-32C of a file's content
	text string // the text itself, when it has no file
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

// seal writes the header of a record, in front of its payload.
func seal(b []byte) {
	payload := b[headerSize:]
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(payload, castagnoli()))
}

// decode reads the records of a file. It calls f with each record and its size on the disk, and returns how many bytes are good.
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
