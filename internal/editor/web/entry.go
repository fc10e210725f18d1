package web

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
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

// An entry is how a page gets in: a code that works once is exchanged for the
// token (SPEC §11.2). Codes are kept hashed, so that looking one up tells
// nothing of the others by its time.
type entry struct {
	token string

	mu    sync.Mutex // guards codes
	codes []code     // oldest first
}

type code struct {
	hash    [sha256.Size]byte
	expires time.Time
}

func newEntry(token string) *entry {
	if token == "" {
		token = secret()
	}
	return &entry{token: token}
}

// secret returns 256 random bits, safe in a URL and as a WebSocket subprotocol.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// newCode returns a fresh code.
func (e *entry) newCode(now time.Time) string {
	c := secret()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.codes = append(e.codes, code{sha256.Sum256([]byte(c)), now.Add(codeLife)})
	if len(e.codes) > maxCodes {
		e.codes = e.codes[1:]
	}
	return c
}

// redeem takes a code out of circulation and reports whether it was good.
func (e *entry) redeem(given string, now time.Time) bool {
	hash := sha256.Sum256([]byte(given))
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, c := range e.codes {
		if subtle.ConstantTimeCompare(c.hash[:], hash[:]) == 1 {
			e.codes = append(e.codes[:i:i], e.codes[i+1:]...)
			return now.Before(c.expires)
		}
	}
	return false
}

// knows compares a token in constant time.
func (e *entry) knows(token string) bool {
	return subtle.ConstantTimeCompare([]byte(e.token), []byte(token)) == 1
}

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
