package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// textSuffix ends the names of the files of texts.
const textSuffix = ".text"

// errDamaged: a stored text does not match its checksum.
var errDamaged = errors.New("a text of the journal is damaged")

// apart says whether a text gets a file of its own: a large one, and one that must not stay in the file of records.
func apart(text string, secret bool) bool { return len(text) > inlineText || secret && text != "" }

// put stores a text. A file of its own is written before the record that names it: a crash in between leaves a file that sweep removes.
func (j *Journal) put(id, text string, secret bool) (*stored, error) {
	s := &stored{Size: len(text), text: text}
	if !apart(text, secret) {
		return s, nil
	}
	name := id + "-" + strconv.FormatUint(j.files.Add(1), 36) + textSuffix
	if err := j.makeFolder(); err != nil {
		return s, err
	}
	f, err := os.OpenFile(filepath.Join(j.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return s, err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return s, err
	}
	return &stored{Size: len(text), File: name, Sum: sumOf(text)}, nil
}

// sumOf returns the CRC-32C of a text, without copying it.
func sumOf(text string) (sum uint32) {
	var piece [32 << 10]byte
	for len(text) > 0 {
		n := copy(piece[:], text)
		sum = crc32.Update(sum, castagnoli(), piece[:n])
		text = text[n:]
	}
	return sum
}

// get reads a stored text.
func (j *Journal) get(s *stored) (string, error) {
	if s.File == "" {
		return s.text, nil
	}
	f, info, err := safefile.OpenPrivate(filepath.Join(j.dir, s.File))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errDamaged, err)
	}
	defer f.Close()
	if info.Size() != int64(s.Size) {
		return "", fmt.Errorf("%w: %s", errDamaged, s.File)
	}
	var b strings.Builder
	b.Grow(s.Size)
	if _, err := io.CopyN(&b, f, int64(s.Size)); err != nil {
		return "", err
	}
	if sumOf(b.String()) != s.Sum {
		return "", fmt.Errorf("%w: %s", errDamaged, s.File)
	}
	return b.String(), nil
}

// valid says whether a stored text may be read: its file must lie in the journal's folder.
func (s *stored) valid() bool {
	return s == nil || s.Size >= 0 && s.Size <= maxText &&
		(s.File == "" || filepath.Base(s.File) == s.File && strings.HasSuffix(s.File, textSuffix))
}

// remove removes the files of texts.
func (j *Journal) remove(texts ...*stored) {
	for _, s := range texts {
		if s != nil && s.File != "" {
			_ = os.Remove(filepath.Join(j.dir, s.File)) // the next start sweeps what is left
		}
	}
}

// A splice turns one text into another: cut bytes at from become ins.
type splice struct {
	from, cut int
	ins       string
}

// whole says whether to write the text itself: it is small, or most of it is new.
func (s splice) whole(text string) bool { return len(text) <= smallText || len(s.ins) > len(text)/2 }

// spliceOf returns the shortest splice. It is small for what a person types.
func spliceOf(before, after string) splice {
	n := min(len(before), len(after))
	from := common(n, func(i, k int) bool { return before[i:i+k] == after[i:i+k] })
	b, a := before[from:], after[from:]
	back := common(n-from, func(i, k int) bool { return b[len(b)-i-k:len(b)-i] == a[len(a)-i-k:len(a)-i] })
	return splice{from, len(b) - back, a[:len(a)-back]}
}

// common returns the largest number up to n for which same holds. It searches by large steps, then by smaller ones.
func common(n int, same func(at, size int) bool) (at int) {
	for step := 64 << 10; step > 0; {
		if at+step <= n && same(at, step) {
			at += step
		} else {
			step /= 2
		}
	}
	return at
}

// apply returns the spliced text; false when the splice does not fit.
func (s splice) apply(text string) (string, bool) {
	if s.from < 0 || s.cut < 0 || s.from > len(text) || s.cut > len(text)-s.from {
		return text, false
	}
	return text[:s.from] + s.ins + text[s.from+s.cut:], true
}
