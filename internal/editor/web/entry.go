package web

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"html"
	"sync"
	"time"
)

// Bounds of one-time codes.
const (
	codeLife = 5 * time.Minute
	maxCodes = 32 // a further one replaces the oldest
)

// maxKeys is how many companions back a page's key may be.
const maxKeys = 8

// An entry is how a page gets in: by a code that works once, or by the key that it was given for one (SPEC §11.2). Each
// companion has a key of its own; those of the companions before it are good for being given the new one.
type entry struct {
	keys []named // the newest first; not changed

	mu    sync.Mutex // guards codes
	codes []code     // oldest first
}

// A named secret is looked up by its id, which tells nothing of it.
type named struct {
	id     string
	secret []byte
}

type code struct {
	named
	expires time.Time
}

func newSecret() named {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return named{secretID(b), b}
}

// newEntry makes a fresh key, before those of the companions that this one takes over from.
func newEntry(before [][]byte) *entry {
	e := &entry{keys: []named{newSecret()}}
	for _, key := range before {
		if len(key) == secretSize && len(e.keys) < maxKeys {
			e.keys = append(e.keys, named{secretID(key), key})
		}
	}
	return e
}

// newCode returns a fresh code, safe in a URL.
func (e *entry) newCode(now time.Time) string {
	c := newSecret()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.codes = append(e.codes, code{c, now.Add(codeLife)})
	if len(e.codes) > maxCodes {
		e.codes = e.codes[1:]
	}
	return encode(c.secret)
}

// secret finds a key, or a code that is good. A code stays good: only a proof of it uses it up.
func (e *entry) secret(id string, now time.Time) ([]byte, bool) {
	for _, k := range e.keys {
		if k.id == id {
			return k.secret, true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.codes {
		if c.id == id {
			return c.secret, now.Before(c.expires)
		}
	}
	return nil, false
}

// redeem says whether whoever has proved the secret of that id may come in. It takes a code out of circulation.
func (e *entry) redeem(id string, now time.Time) bool {
	for _, k := range e.keys {
		if k.id == id {
			return true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, c := range e.codes {
		if c.id == id {
			e.codes = append(e.codes[:i:i], e.codes[i+1:]...)
			return now.Before(c.expires)
		}
	}
	return false
}

// key is this companion's own.
func (e *entry) key() []byte { return e.keys[0].secret }

// Redirect returns an HTML document that sends a browser on to address. Given
// to the browser as a private file, it keeps the one-time code out of every
// argument list (SPEC §11.2); whoever writes the file removes it after use.
func Redirect(address string) []byte {
	var b bytes.Buffer
	a := html.EscapeString(address)
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=%s"><title>pollux</title></head>
<body><p><a href="%s">Open pollux</a></p></body></html>
`, a, a)
	return b.Bytes()
}
