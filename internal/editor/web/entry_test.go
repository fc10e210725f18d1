package web

import (
	"strings"
	"testing"
	"time"
)

// SPEC §11.2: a code works once, for five minutes, and only so many wait.
func TestCodes(t *testing.T) {
	now := time.Unix(1000, 0)
	e := newEntry("")
	if len(e.token) < 43 {
		t.Errorf("the token has fewer than 256 bits: %d characters", len(e.token))
	}
	c := e.newCode(now)
	if len(c) < 43 {
		t.Errorf("a code has fewer than 256 bits: %d characters", len(c))
	}
	if e.redeem("", now) || e.redeem(c+"x", now) || e.redeem(c[1:], now) {
		t.Error("a wrong code was taken")
	}
	if !e.redeem(c, now.Add(codeLife-1)) {
		t.Error("a good code was refused")
	}
	if e.redeem(c, now) {
		t.Error("a code was taken twice")
	}
	if c = e.newCode(now); e.redeem(c, now.Add(codeLife)) {
		t.Error("an expired code was taken")
	}
	if e.redeem(c, now) {
		t.Error("an expired code came back")
	}
	first := e.newCode(now)
	var last string
	for range maxCodes {
		last = e.newCode(now)
	}
	if len(e.codes) != maxCodes {
		t.Errorf("%d codes wait, want %d", len(e.codes), maxCodes)
	}
	if e.redeem(first, now) || !e.redeem(last, now) {
		t.Error("the oldest code must give way to the newest")
	}
}

func TestToken(t *testing.T) { // SPEC A-1
	e := newEntry("kept")
	if !e.knows("kept") || e.knows("") || e.knows("kep") || e.knows("keptt") {
		t.Error("the given token, and no other, must be known")
	}
	if a, b := newEntry(""), newEntry(""); a.token == b.token {
		t.Error("two companions have one token")
	}
}

func TestRedirect(t *testing.T) {
	got := string(Redirect(`http://127.0.0.1:1/#code="><script>`))
	if strings.Contains(got, "<script>") || !strings.Contains(got, `url=http://127.0.0.1:1/#code=&#34;&gt;&lt;script&gt;"`) {
		t.Errorf("not escaped: %s", got)
	}
}
