package words

import (
	"regexp"
	"strings"
	"sync"
)

var (
	addressQuery = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)([?&#;][^=&#;]*(?:token|secret|passw|pwd|key|auth|sig|credential|session)[^=&#;]*=)([^&#;]+)`)
	})
	portAndPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,5}/`) })
)

// Address returns an address (a URL, git's host:path) for display, with *** for a password or token in it. It accepts
// malformed addresses too, and hides too much rather than too little. An address without a secret is returned
// unchanged.
func Address(text string) string {
	scheme, rest := "", text
	if i := strings.Index(text, "://"); i >= 0 {
		scheme, rest = text[:i+3], text[i+3:]
	}
	return scheme + addressQuery().ReplaceAllString(hideUser(rest, scheme != ""), "$1***")
}

// hideUser hides the password or token before the @ in an address without its scheme.
func hideUser(rest string, url bool) string {
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return rest
	}
	colon, first := strings.IndexByte(rest, ':'), strings.IndexByte(rest, '@')
	switch {
	case url && strings.IndexByte(rest[:at], ':') < 0:
		if strings.ContainsAny(rest[:first], "/?#") || !LooksLikeToken(rest[:first]) {
			return rest // only a user's name, or an @ in the path
		}
		return "***" + rest[first:]
	case colon < 0 || colon > at:
		return rest
	case first < colon: // git@host:path; a password after it contains no /
		next := strings.IndexByte(rest[first+1:], ':') + first + 1
		if next > at || strings.Contains(rest[next:at], "/") {
			return rest
		}
		return rest[:next+1] + "***" + rest[at:]
	case portAndPath().MatchString(rest[colon+1:]):
		return rest // host:8443/@scope
	case !url && strings.Contains(rest[:colon], "/"):
		return rest // a path
	}
	return rest[:colon+1] + "***" + rest[at:]
}

// LooksLikeToken reports whether a user's name is a credential of one of the large hosts.
func LooksLikeToken(user string) bool {
	for _, prefix := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glcbt-", "ATBB", "ATCTT", "x-token-auth", "hf_", "npm_"} {
		if strings.HasPrefix(user, prefix) {
			return true
		}
	}
	return len(user) >= 40 && strings.Trim(user, "0123456789abcdef") == "" // the older form
}
