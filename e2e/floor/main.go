// Command floor is what pollux serve is measured against: the smallest
// companion there could be, which checks the token, swallows the body and
// writes the same bytes.
package main

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

func main() {
	token := rand.Text()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	want := []byte("Bearer " + token)
	go func() {
		_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, want) }))
	}()
	dir := filepath.Join(os.TempDir(), "gemini", "ide")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	file := filepath.Join(dir, fmt.Sprintf("gemini-ide-server-%d-%d.json", os.Getpid(), port))
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"port":%d,"authToken":%q}`, port, token), 0o600); err != nil {
		panic(err)
	}
	select {}
}

func serve(w http.ResponseWriter, r *http.Request, want []byte) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
}
