package lsp

import (
	"net/url"
	"path/filepath"
	"strings"
)

// pathOf returns the absolute path that a file: URI names; ok is false for
// everything else.
func pathOf(uri string) (path string, ok bool) {
	if !strings.HasPrefix(strings.ToLower(uri), "file:") {
		return "", false
	}
	rest := uri[len("file:"):]
	host := ""
	if strings.HasPrefix(rest, "//") {
		host, rest = rest[2:], ""
		if i := strings.IndexByte(host, '/'); i >= 0 {
			host, rest = host[:i], host[i:]
		}
	}
	// "?" and "#" in a path are escaped by those who know; those who do not mean the file.
	decoded, err := url.PathUnescape(rest)
	if err != nil {
		decoded = rest
	}
	if strings.EqualFold(host, "localhost") {
		host = ""
	}
	path, ok = localPath(host, decoded)
	if !ok || strings.ContainsRune(path, 0) {
		return "", false
	}
	return filepath.Clean(path), true
}

// uriOf is the way back.
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if strings.HasPrefix(path, "//") { // a Windows share
		return (&url.URL{Scheme: "file", Path: path}).String()
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath()
}
