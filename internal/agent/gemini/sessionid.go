package gemini

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"

	"github.com/pollux-companion/pollux/internal/door"
)

// A session id verifies itself, so that a companion that comes back after a
// crash knows its own sessions without having written them down (SPEC L-3):
// base64url of 4 bytes of the session's number, 12 random bytes, and the first 16
// bytes of their HMAC-SHA-256 by the companion's key.
const idSize = 32

func newSessionID(key []byte, number int) string {
	id := make([]byte, 0, idSize+sha256.Size)
	id = binary.BigEndian.AppendUint32(id, uint32(number))
	id = id[:16]
	_, _ = rand.Read(id[4:]) // never fails
	return base64.RawURLEncoding.EncodeToString(sign(key, id)[:idSize])
}

// openSessionID is the number in an id that this key has made.
func openSessionID(key []byte, id string) (number int, ok bool) {
	if len(id) != base64.RawURLEncoding.EncodedLen(idSize) {
		return 0, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || !hmac.Equal(raw, sign(key, raw[:16:16])[:idSize]) {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(raw)), true
}

// credential says whether a request may come in: with the token of this life; or with an older one, for a session that
// existed before this life, so that whoever has got hold of that token on the way opens none (SPEC A-1).
func (s *Server) credential() func(*http.Request) bool {
	current := door.Bearer(s.o.Token)
	older := map[[sha256.Size]byte]bool{} // found by their hashes: the time that takes tells nothing of a token
	for _, token := range s.o.Older {
		older[sha256.Sum256([]byte(token))] = true
	}
	return func(r *http.Request) bool {
		if current(r) {
			return true
		}
		return older[sha256.Sum256([]byte(door.BearerOf(r)))] && s.existed(header(r, sessionHeader))
	}
}

// existed says whether a session began before this life. That it may have ended since is for the answer to say.
func (s *Server) existed(id string) bool {
	if _, own := openSessionID(s.o.SessionKey, id); !own {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	sess := s.sessions[id]
	return sess == nil || sess.adopted
}

// sign appends to id what proves it.
func sign(key, id []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(id)
	return mac.Sum(id)
}
