package words

import (
	"strings"
	"testing"
)

// An address is shown without its secrets, in any form, and otherwise unchanged.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"https://user:s3cr3t@host/x.git":            "https://user:***@host/x.git",
		"https://user:p%zzs3cr3t@host":              "https://user:***@host",
		"https://user:s3cr3t/with@host/x":           "https://user:***@host/x",
		"https://user:s3cr3t@with@host/x":           "https://user:***@host/x",
		"https://:s3cr3t@host":                      "https://:***@host",
		"ssh://git:s3cr3t@host/x":                   "ssh://git:***@host/x",
		"user:s3cr3t@host/x":                        "user:***@host/x",
		"git@user:s3cr3t@host:x/y":                  "git@user:***@host:x/y",
		"https://ghp_s3cr3t@github.com/o/r":         "https://***@github.com/o/r",
		"https://host/x?token=s3cr3t":               "https://host/x?token=***",
		"https://host/x?a=b&X-Api-Key=s3cr3t&c=d#e": "https://host/x?a=b&X-Api-Key=***&c=d#e",
		"https://host/x#access_token=s3cr3t":        "https://host/x#access_token=***",
		"https://u:s3cr3t@host/x?sig=s3cr3t":        "https://u:***@host/x?sig=***",

		"https://github.com/o/r":       "",
		"https://me@bitbucket.org/o/r": "",
		"https://host:8443/@scope/x":   "",
		"https://host/@scope/x@v1":     "",
		"git@github.com:o/r":           "",
		"git@github.com:o/r@v1":        "",
		"/home/me/a:b@c":               "",
		"./x@y":                        "",
		"owner/repo":                   "",
		"https://host/x?ref=main":      "",
		"":                             "",
	} {
		if want == "" {
			want = text
		}
		if got := Address(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"https://a:b@c", "git@h:p@q", "?key=x", "://:@", "a@b:c@d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := Address(text)
		if Address(strings.ReplaceAll(once, "***", "x")) == "" && text != "" {
			t.Errorf("%q vanishes", text)
		}
		for _, form := range []string{"https://u:" + "s3cr3t" + "@host/" + strings.Map(plain, text), "https://host/" + strings.Map(plain, text) + "?token=s3cr3t"} {
			if strings.Contains(Address(form), "s3cr3t") {
				t.Errorf("%q is shown as %q", form, Address(form))
			}
		}
	})
}

// plain keeps characters that no address is split at.
func plain(r rune) rune {
	if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-._/", r) {
		return r
	}
	return -1
}
