//go:build unix

package paths

// localPath returns the path for a URI's host and path.
func localPath(host, path string) (string, bool) {
	return path, host == "" && len(path) > 0 && path[0] == '/'
}
