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
	maxCodes = 32 // another one replaces the oldest
)

// maxKeys is how many companions ago a page's key may have been issued.
const maxKeys = 8

// An entry decides which pages get in: those with a code, which works once, or with the key that a code was exchanged
// for (SPEC §11.2). Each companion has its own key. A key of an earlier companion only serves to get the new one.
type entry struct {
	keys []named // newest first; never changed

	mu    sync.Mutex // guards codes
	codes []code     // oldest first
}

// A named secret is looked up by its id, which reveals nothing about it.
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

// newEntry makes a new key, followed by the keys of the companions that this one replaces.
func newEntry(before [][]byte) *entry {
	e := &entry{keys: []named{newSecret()}}
	for _, key := range before {
		if len(key) == secretSize && len(e.keys) < maxKeys {
			e.keys = append(e.keys, named{secretID(key), key})
		}
	}
	return e
}

// newCode returns a new code that is safe in a URL.
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

// secret finds a key or a valid code by its id. The code stays valid: only a proof of it uses it up.
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

// redeem reports whether a page that proved the secret with this id may come in. It uses up a code.
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

// key is this companion's own key.
func (e *entry) key() []byte { return e.keys[0].secret }

// Redirect returns an HTML document that sends a browser to address. Opened from a private file, it keeps the
// one-time code out of every argument list (SPEC §11.2). The caller removes the file after use.
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
