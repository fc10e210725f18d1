package paths

import (
	"net/url"
	"path/filepath"
	"strings"
)

// OfURI returns the absolute path that a file: URI names; ok is false for everything else.
func OfURI(uri string) (path string, ok bool) {
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

// URI is an absolute path as the file: URI that editors use.
func URI(path string) string {
	path = filepath.ToSlash(path)
	if strings.HasPrefix(path, "//") { // a Windows share
		return (&url.URL{Scheme: "file", Path: path}).String()
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath()
}

// OfText is the clean path that a file: URI names, or any other text that stands for a path as it is.
func OfText(text string) string {
	if path, ok := OfURI(text); ok {
		return path
	}
	return filepath.Clean(text)
}
