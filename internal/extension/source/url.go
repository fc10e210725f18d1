package source

import (
	"errors"
	"net/url"
	"path"
	"strings"

	"github.com/pollux-companion/pollux/internal/words"
)

// isPacked says whether a path ends like an archive.
func isPacked(p string) bool {
	p = strings.ToLower(p)
	for _, ending := range []string{".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2", ".tar.zst"} {
		if strings.HasSuffix(p, ending) {
			return true
		}
	}
	return false
}

// packedURL refuses the address of an archive, and says how to get its contents.
func packedURL(u *url.URL) error {
	name := path.Base(u.Path)
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if host := strings.ToLower(u.Hostname()); (host == "github.com" || host == "www.github.com") && len(parts) > 3 {
		repo := parts[0] + "/" + parts[1]
		if parts[2] == "archive" || parts[2] == "releases" {
			return usagef("%q is an archive of a repository; install that: pollux extensions install %s (--ref NAME for a branch, tag or release)", u.String(), repo)
		}
	}
	return usagef("%q is the address of an archive, and pollux fetches only repositories; download it and install the file: pollux extensions install ./%s", u.String(), name)
}

// parseURL reads an address with a scheme, including deep links to a folder.
func parseURL(text string) (Source, error) {
	u, err := url.Parse(text)
	if err != nil {
		var broken *url.Error
		if errors.As(err, &broken) {
			err = broken.Err // without the address, which may contain a password
		}
		if words.Address(text) != text {
			return Source{}, usagef("%q is not a valid address, and it holds a password; write it without, and keep the password in git's credential helper", words.Address(text))
		}
		return Source{}, usagef("%q is not a valid address: %v", text, err)
	}
	if strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.Path, "/-") && u.Scheme != "file" {
		return Source{}, usagef("the address %q has a part that starts with a dash, which could be read as an option", text)
	}
	if _, has := u.User.Password(); has {
		u.User = nil
		return Source{}, usagef("the address holds a password, which would stay in the installed copy; use %q and keep the password in git's credential helper", u.String())
	}
	if words.LooksLikeToken(u.User.Username()) {
		u.User = nil
		return Source{}, usagef("the address holds a token where a user's name belongs, which would stay in the installed copy; use %q, keep the token in git's credential helper, and revoke it if others could see it", u.String())
	}
	if hidden := words.Address(text); hidden != text {
		return Source{}, usagef("the address %q holds a password or token, which would stay in the installed copy; write it without, and keep the secret in git's credential helper", hidden)
	}
	if isPacked(u.Path) && u.Scheme != "file" {
		return Source{}, packedURL(u)
	}
	if u.Scheme == "file" {
		if u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return Source{}, usagef("%q does not name a repository on this machine; write file:///the/path", text)
		}
	} else if u.Host == "" {
		return Source{}, usagef("the address %q names no host", text)
	}
	ref := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	s := Source{Kind: Git, Location: strings.TrimSuffix(u.String(), "#"), Ref: ref}
	switch strings.ToLower(u.Hostname()) {
	case "github.com", "www.github.com":
		return githubURL(u, s, text)
	case "gitlab.com":
		return gitlabURL(u, s), nil
	}
	return s, nil
}

// githubURL understands the addresses in a browser: the repository, a folder or file in it (/tree/REF/…,
// /blob/REF/…), a release (/releases/tag/TAG). A ref with slashes looks like a ref and a folder; then --ref and
// --path are needed.
func githubURL(u *url.URL, s Source, text string) (Source, error) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 {
		return Source{}, usagef("%q names no repository; write https://github.com/owner/repo", text)
	}
	s.GitHub = ownerRepo(parts[0] + "/" + parts[1])
	if len(parts) == 2 || u.Scheme == "ssh" {
		return s, nil
	}
	if s.Ref != "" || len(parts) < 4 {
		return Source{}, usagef("%q is not a repository, a folder or a release; write https://github.com/%s and add --path or --ref", text, s.GitHub)
	}
	s.Location = "https://github.com/" + s.GitHub
	switch parts[2] {
	case "tree":
		s.Ref, s.Subdir = parts[3], strings.Join(parts[4:], "/")
	case "blob":
		s.Ref, s.Subdir = parts[3], strings.Join(parts[4:max(4, len(parts)-1)], "/")
	case "commit":
		s.Ref = parts[3]
	case "releases":
		if parts[3] != "tag" || len(parts) < 5 {
			return Source{}, usagef("%q is not one release; write https://github.com/%s/releases/tag/TAG", text, s.GitHub)
		}
		s.Ref = strings.Join(parts[4:], "/")
	default:
		return Source{}, usagef("%q is not a repository, a folder or a release; write https://github.com/%s and add --path or --ref", text, s.GitHub)
	}
	return s, nil
}

// gitlabURL understands GitLab's /group/…/repo/-/tree/REF/folder.
func gitlabURL(u *url.URL, s Source) Source {
	repo, deep, found := strings.Cut(strings.Trim(u.Path, "/"), "/-/")
	if !found {
		return s
	}
	parts := strings.Split(deep, "/")
	if len(parts) < 2 || parts[0] != "tree" && parts[0] != "blob" {
		return s
	}
	s.Location = "https://gitlab.com/" + repo
	end := len(parts)
	if parts[0] == "blob" {
		end--
	}
	s.Ref, s.Subdir = parts[1], strings.Join(parts[2:max(2, end)], "/")
	return s
}
