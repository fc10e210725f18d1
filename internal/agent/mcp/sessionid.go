package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
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

// sign appends to id what proves it.
func sign(key, id []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(id)
	return mac.Sum(id)
}
