package mcp

import "bytes"

const framePrefix = "event: message\ndata: "

// A frame is an encoded notification, made once for all sessions. It is immutable.
type frame struct{ bytes []byte }

func newFrame(json []byte) *frame {
	b := make([]byte, 0, len(framePrefix)+len(json)+2)
	b = append(append(b, framePrefix...), json...)
	return &frame{bytes: append(b, "\n\n"...)}
}

// sse returns it as an event of an event stream, without an id.
func (f *frame) sse() []byte { return f.bytes }

// json returns the message alone.
func (f *frame) json() []byte { return f.bytes[len(framePrefix) : len(f.bytes)-2] }

func (f *frame) equal(g *frame) bool { return bytes.Equal(f.bytes, g.bytes) }
