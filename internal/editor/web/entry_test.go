package web

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// idOf returns the id by which a page names its code.
func idOf(t *testing.T, code string) string {
	t.Helper()
	secret, ok := decode(code)
	if !ok {
		t.Fatalf("a code has not 256 bits: %d characters", len(code))
	}
	return secretID(secret)
}

// SPEC §11.2: a code works once, for five minutes, and the number of codes is bounded.
func TestCodes(t *testing.T) {
	now := time.Unix(1000, 0)
	e := newEntry(nil)
	c := idOf(t, e.newCode(now))
	if e.redeem("", now) || e.redeem(c+"x", now) || e.redeem(c[1:], now) {
		t.Error("a wrong code was taken")
	}
	for range 3 { // naming a code, as an eavesdropper could, does not use it up
		if secret, ok := e.secret(c, now); !ok || secretID(secret) != c {
			t.Error("a good code was not found")
		}
	}
	if !e.redeem(c, now.Add(codeLife-1)) {
		t.Error("a good code was refused")
	}
	if e.redeem(c, now) {
		t.Error("a code was taken twice")
	}
	if _, ok := e.secret(c, now); ok {
		t.Error("a code was found after its use")
	}
	c = idOf(t, e.newCode(now))
	if _, ok := e.secret(c, now.Add(codeLife)); ok || e.redeem(c, now.Add(codeLife)) {
		t.Error("an expired code was taken")
	}
	if e.redeem(c, now) {
		t.Error("an expired code came back")
	}
	first := idOf(t, e.newCode(now))
	var last string
	for range maxCodes {
		last = idOf(t, e.newCode(now))
	}
	if len(e.codes) != maxCodes {
		t.Errorf("%d codes wait, want %d", len(e.codes), maxCodes)
	}
	if e.redeem(first, now) || !e.redeem(last, now) {
		t.Error("the oldest code must give way to the newest")
	}
}

// SPEC A-5: each companion has its own key. Pages of a bounded number of earlier companions are let in; a wrong key is not.
func TestKeys(t *testing.T) {
	var keys [][]byte
	var ids []string
	for range maxKeys + 3 {
		e := newEntry(keys)
		if len(e.key()) != secretSize || slices.ContainsFunc(keys, func(k []byte) bool { return string(k) == string(e.key()) }) {
			t.Fatalf("the key is not new: %d bytes", len(e.key()))
		}
		keys = nil
		for _, k := range e.keys {
			keys = append(keys, k.secret)
		}
		ids = append(ids, secretID(e.key()))
		for i, id := range ids {
			if _, ok := e.secret(id, time.Now()); ok != (len(ids)-i <= maxKeys) {
				t.Errorf("companion %d knows the key of %d: %v", len(ids), i+1, ok)
			}
		}
	}
	e := newEntry([][]byte{nil, {}, []byte("short"), make([]byte, 64)})
	if len(e.keys) != 1 {
		t.Errorf("%d keys of a damaged record", len(e.keys))
	}
	for _, id := range []string{secretID(nil), secretID([]byte("short")), ""} {
		if _, ok := e.secret(id, time.Now()); ok || e.redeem(id, time.Now()) {
			t.Error("what is no key lets somebody in")
		}
	}
}

func TestRedirect(t *testing.T) {
	got := string(Redirect(`http://127.0.0.1:1/#code="><script>`))
	if strings.Contains(got, "<script>") || !strings.Contains(got, `url=http://127.0.0.1:1/#code=&#34;&gt;&lt;script&gt;"`) {
		t.Errorf("not escaped: %s", got)
	}
}
