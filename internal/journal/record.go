package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"
)

// The journal's file is a line that names its format, and then records, each
//
//	length of the payload    4 bytes, big-endian
//	CRC-32C of the payload   4 bytes, big-endian
//	payload                  a line of JSON, the head; after it the texts that the head counts, byte for byte
//
// Reading passes over bytes that are no whole record (see Journal.Lost).
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
	N       uint64    `json:"n,omitempty"` // grows from record to record; 0 in files of older versions
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
	if len(b)-start > headerSize+maxRecord { // reading stops there, so that everything behind it would be lost
		return b[:start], errRecord
	}
	seal(b[start:])
	return b, nil
}

// seal writes the header of a record, in front of its payload.
func seal(b []byte) {
	payload := b[headerSize:]
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(payload, castagnoli()))
}

// errRecord: a record is larger than a start reads.
var errRecord = fmt.Errorf("a record has more than %d bytes", maxRecord)

// heading begins the payload of each record.
const heading = `{"kind":"`

// decode reads the records of a file. It calls f with each record and its size on the disk; gap says that bytes before it
// could not be read. It returns how many bytes at the front are good up to the first damage or the end, and how many bytes are damaged. A record that the
// end of its process has torn, at the end of the file, is no damage: nobody was told of it.
func decode(data []byte, f func(r *record, size int, gap bool)) (good, damaged int) {
	at, gap := len(magic), false
	if !bytes.HasPrefix(data, []byte(magic)) {
		if bytes.HasPrefix([]byte(magic), data) {
			return 0, len(data) // the first record is written behind the whole line
		}
		if bytes.HasPrefix(data, []byte(magic[:len(magic)-2])) { // of another format
			return 0, len(data)
		}
		at = 0
	}
	for at < len(data) {
		r, size := decodeAt(data[at:])
		if r != nil {
			f(r, size, gap)
			at, gap = at+size, false
			if damaged == 0 {
				good = at
			}
			continue
		}
		if damaged == 0 {
			good = at
		}
		next := at + claimed(data[at:]) // a text may look like records, so it is not searched where that can be avoided
		if r, _ := decodeAt(data[next:]); r == nil {
			next = nextRecord(data, at+1)
		}
		if next < 0 {
			if !torn(data[at:]) {
				damaged += len(data) - at
			}
			return good, damaged
		}
		damaged, gap, at = damaged+next-at, true, next
	}
	return max(good, min(len(magic), len(data))), damaged
}

// decodeAt reads the record at the front of data, and its size on the disk; nil when there is no whole one.
func decodeAt(data []byte) (*record, int) {
	if len(data) < headerSize {
		return nil, 0
	}
	size := int(binary.BigEndian.Uint32(data))
	if size > maxRecord || size > len(data)-headerSize {
		return nil, 0
	}
	payload := data[headerSize : headerSize+size]
	if crc32.Checksum(payload, castagnoli()) != binary.BigEndian.Uint32(data[4:]) {
		return nil, 0
	}
	r, ok := decodePayload(payload)
	if !ok {
		return nil, 0
	}
	return r, headerSize + size
}

// claimed returns the size on the disk that a record's header claims, at most all of data.
func claimed(data []byte) int {
	if len(data) < headerSize {
		return len(data)
	}
	return min(headerSize+int(binary.BigEndian.Uint32(data)), len(data))
}

// nextRecord returns where the next whole record begins, at or after from; -1 for none.
func nextRecord(data []byte, from int) int {
	for {
		i := bytes.Index(data[min(from+headerSize, len(data)):], []byte(heading))
		if i < 0 {
			return -1
		}
		from += i
		if r, _ := decodeAt(data[from:]); r != nil {
			return from
		}
		from++
	}
}

// torn says whether the end of a file is the beginning of a record, or room that was never written.
func torn(end []byte) bool {
	if len(end) < headerSize || len(bytes.Trim(end, "\x00")) == 0 {
		return true
	}
	size := int(binary.BigEndian.Uint32(end))
	return size <= maxRecord && size > len(end)-headerSize
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
