package lsp_test

import (
	"io"
	"testing"
)

type pipe struct {
	r *io.PipeReader
	w *io.PipeWriter
}

func newPipes(t *testing.T) (a, b pipe) {
	a.r, a.w = io.Pipe()
	b.r, b.w = io.Pipe()
	t.Cleanup(func() { a.w.Close(); b.r.Close() })
	return a, b
}
