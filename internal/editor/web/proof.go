package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// A page and its companion share a secret: first the one-time code of an address, later
// the key that the page got for it. The secret never travels. Each new WebSocket begins
// with proofs of it in both directions (SPEC A-5):
//	page       {"id": which secret, "nonce": N}
//	companion  {"nonce": M, "proof": mac("companion")}
//	page       {"proof": mac("page")}
//	companion  {"key": the newest key, under mac("key")}
// mac(role) is an HMAC by the secret over role, origin and both nonces. The origin is the
// address and port at which each side believes to speak, so that a listener at another
// port cannot pass proofs on. A page tells nothing to a listener that has not proved
// itself. What that listener hears proves nothing to anybody else.

// Bounds of the proof.
const (
	protocol     = "pollux.v2"
	proofTimeout = 5 * time.Second
	maxProof     = 4 << 10 // bytes of a message
	maxProving   = 64      // connections at once; a further one ends the oldest
	secretSize   = 32      // bytes; of nonces as well
)

var (
	errUnknown = errors.New("unknown page; run: pollux page")
	errNoProof = errors.New("no proof came")
)

type (
	proofHello  struct{ ID, Nonce string }
	proofAnswer struct {
		Nonce string `json:"nonce"`
		Proof string `json:"proof"`
	}
	proofEnd     struct{ Proof string }
	proofWelcome struct {
		Key string `json:"key"`
	}
)

// An exchange is one running proof.
type exchange struct {
	secret                    []byte
	origin, pageNonce, nonces string
}

func (e *exchange) mac(role string) []byte {
	h := hmac.New(sha256.New, e.secret)
	h.Write([]byte(strings.Join([]string{protocol, role, e.origin, e.pageNonce, e.nonces}, "\n")))
	return h.Sum(nil)
}

// secretID names a secret without revealing it.
func secretID(secret []byte) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(protocol + "\nid"))
	return encode(h.Sum(nil))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// decode reads secretSize bytes.
func decode(s string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return b, err == nil && len(b) == secretSize
}

// A deniedError is Options.Decides' reason why a page that knows a secret does not get in.
type deniedError struct{ error }

// prove lets a page in that proves to know a secret, and proves the same to the page. On an error the caller closes the connection.
func (s *Server) prove(ctx context.Context, conn *websocket.Conn, origin string, mayDecide func(context.Context) error) error {
	ctx, end := s.proving.begin(ctx)
	defer end()
	conn.SetReadLimit(maxProof)
	var hello proofHello
	if err := receive(ctx, conn, &hello); err != nil {
		return err
	}
	secret, ok := s.entry.secret(hello.ID, time.Now())
	if _, sane := decode(hello.Nonce); !ok || !sane {
		return errUnknown
	}
	e := exchange{secret: secret, origin: origin, pageNonce: hello.Nonce, nonces: rand256()}
	if err := say(ctx, conn, proofAnswer{e.nonces, encode(e.mac("companion"))}); err != nil {
		return err
	}
	var last proofEnd
	if err := receive(ctx, conn, &last); err != nil {
		return err
	}
	proof, _ := decode(last.Proof)
	if !hmac.Equal(proof, e.mac("page")) {
		return errUnknown
	}
	if err := mayDecide(ctx); err != nil { // before the code is used up: it is the user's
		return deniedError{err}
	}
	if !s.entry.redeem(hello.ID, time.Now()) {
		return errUnknown
	}
	key := make([]byte, secretSize)
	subtle.XORBytes(key, s.entry.key(), e.mac("key"))
	return say(ctx, conn, proofWelcome{encode(key)})
}

func receive(ctx context.Context, conn *websocket.Conn, v any) error {
	kind, msg, err := conn.Read(ctx)
	if err != nil || kind != websocket.MessageText {
		return errNoProof
	}
	if json.Unmarshal(msg, v) != nil {
		return errUnknown
	}
	return nil
}

func say(ctx context.Context, conn *websocket.Conn, v any) error {
	msg, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, msg)
}

// rand256 returns 256 random bits, safe in a URL.
func rand256() string {
	b := make([]byte, secretSize)
	_, _ = rand.Read(b) // never fails
	return encode(b)
}

// proving bounds the connections that have not proved themselves yet. An honest page proves itself at once, so the oldest is
// the one to send away.
type proving struct {
	mu   sync.Mutex // guards ends
	ends []*context.CancelFunc
}

// begin returns the context of one proof. Call end when the proof is over.
func (p *proving) begin(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ends) >= maxProving {
		(*p.ends[0])()
		p.ends = p.ends[1:]
	}
	p.ends = append(p.ends, &cancel)
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.ends, &cancel); i >= 0 {
			p.ends = slices.Delete(p.ends, i, i+1)
		}
	}
}

// stop ends all proofs.
func (p *proving) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.ends {
		(*end)()
	}
}
