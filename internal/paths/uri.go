package paths

import (
	"net/url"
	"path/filepath"
	"strings"
)

// OfURI returns the absolute path in a file: URI; ok is false for anything else.
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
	// A correct URI escapes "?" and "#" in a path; in any other they are part of the file's name.
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

// URI returns the file: URI that editors use for an absolute path.
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

// OfText returns the clean path in a file: URI, or in any other text, which is taken as a path itself.
func OfText(text string) string {
	if path, ok := OfURI(text); ok {
		return path
	}
	return filepath.Clean(text)
}
