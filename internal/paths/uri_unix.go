//go:build unix

package paths

// localPath makes a path of what a URI names.
func localPath(host, path string) (string, bool) {
	return path, host == "" && len(path) > 0 && path[0] == '/'
}
