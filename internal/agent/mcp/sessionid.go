package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// A session id verifies itself, so that a companion that comes back after a crash
// recognises its own sessions without having written them down (SPEC L-3). It is
// base64url of 4 bytes of the session's number, 4 of the life that began it, 8 random
// bytes, and the first 16 bytes of their HMAC-SHA-256 with the companion's key.
const idSize = 32

func newSessionID(key []byte, born birth) string {
	id := make([]byte, 0, idSize+sha256.Size)
	id = binary.BigEndian.AppendUint32(id, uint32(born.number))
	id = binary.BigEndian.AppendUint32(id, born.life)
	id = id[:16]
	_, _ = rand.Read(id[8:]) // never fails
	return base64.RawURLEncoding.EncodeToString(sign(key, id)[:idSize])
}

// A birth says which session of a key an id belongs to.
type birth struct {
	number int
	life   uint32
}

// order returns a larger number for a session that began later.
func (b birth) order() uint64 { return uint64(b.life)<<32 | uint64(uint32(b.number)) }

// openSessionID reads an id, and verifies that it was made with this key.
func openSessionID(key []byte, id string) (born birth, ok bool) {
	if len(id) != base64.RawURLEncoding.EncodedLen(idSize) {
		return birth{}, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || !hmac.Equal(raw, sign(key, raw[:16:16])[:idSize]) {
		return birth{}, false
	}
	return readBirth(raw), true
}

// birthOf reads an id that was verified before.
func birthOf(id string) birth {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(raw) < 8 {
		return birth{}
	}
	return readBirth(raw)
}

func readBirth(raw []byte) birth {
	return birth{int(binary.BigEndian.Uint32(raw)), binary.BigEndian.Uint32(raw[4:])}
}

// sign appends the signature to an id.
func sign(key, id []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(id)
	return mac.Sum(id)
}
