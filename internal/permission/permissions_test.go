package permission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func permissions(t testing.TB, block string) Permissions {
	t.Helper()
	var p Permissions
	if err := json.Unmarshal([]byte(block), &p); err != nil {
		t.Fatalf("%s: %v", block, err)
	}
	return p
}

// The sentences that a user agrees to (SPEC E-2, S-2); they also say what is denied.
func TestSentences(t *testing.T) {
	for block, want := range map[string][]string{
		`{}`: {"read none of your files", "change no files", "not use the network"},
		`{"filesystem":{"read":"workspace"},"network":{"allowedHosts":["https://rules.example.com"]}}`: {"workspace they are used in, and no other", "change no files", "rules.example.com (https only), and nothing else"},
		`{"filesystem":{"write":"workspace"}}`:                                                         {"read the files of the workspace", "create, change and delete files of the workspace", "not use"},
		`{"filesystem":{"read":"none","write":"home"}}`:                                                {"all files in your home folder", "run as you later", "not use"},
		`{"filesystem":{"read":"full","write":"full"}}`:                                                {"every file that you can read", "run as you later", "not use"},
		`{"network":{"allowedHosts":["a.example.com","*.b.example","http://c.example:8080","localhost","https://[fd00::1]"]}}`: {"read none", "change no",
			"a.example.com, every host below b.example, c.example (http, port 8080), localhost (your own machine or network), [fd00::1] (https only, your own machine or network)"},
	} {
		got := permissions(t, block).Sentences()
		if len(got) != len(want) {
			t.Fatalf("%s: %q", block, got)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q does not say %q", block, got[i], want[i])
			}
		}
	}
}

// A wider permission asks again, a narrower one does not (SPEC S-2).
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		agreed, now     string
		wider, narrower int
	}{
		{`{}`, `{}`, 0, 0},
		{`{}`, `{"filesystem":{"read":"workspace"}}`, 1, 0},
		{`{"filesystem":{"read":"home"}}`, `{"filesystem":{"read":"workspace"}}`, 0, 1},
		{`{"filesystem":{"write":"workspace"}}`, `{"filesystem":{"read":"workspace","write":"workspace"}}`, 0, 0},
		{`{"filesystem":{"read":"workspace"}}`, `{"filesystem":{"write":"workspace"}}`, 1, 0},
		{`{"filesystem":{"read":"full"}}`, `{"filesystem":{"read":"home","write":"workspace"}}`, 1, 1},
		{`{"network":{"allowedHosts":["a.example"]}}`, `{"network":{"allowedHosts":["https://a.example"]}}`, 0, 1},
		{`{"network":{"allowedHosts":["https://a.example"]}}`, `{"network":{"allowedHosts":["a.example"]}}`, 1, 0},
		{`{"network":{"allowedHosts":["*.a.example"]}}`, `{"network":{"allowedHosts":["x.a.example","*.y.a.example"]}}`, 0, 1},
		{`{"network":{"allowedHosts":["*.a.example"]}}`, `{"network":{"allowedHosts":["a.example"]}}`, 1, 1},
		{`{"network":{"allowedHosts":["*.a.example"]}}`, `{"network":{"allowedHosts":["evila.example"]}}`, 1, 1},
		{`{"network":{"allowedHosts":["https://a.example"]}}`, `{"network":{"allowedHosts":["https://a.example:8443"]}}`, 1, 1},
		{`{"network":{"allowedHosts":["A.example"]}}`, `{"network":{"allowedHosts":["a.EXAMPLE"]}}`, 0, 0},
	} {
		agreed, now := permissions(t, c.agreed), permissions(t, c.now)
		got := now.Compare(agreed)
		if len(got.Wider) != c.wider || len(got.Narrower) != c.narrower {
			t.Errorf("from %s to %s: %q", c.agreed, c.now, got)
		}
		if agreed.Covers(now) != (c.wider == 0) {
			t.Errorf("%s covers %s: %v", c.agreed, c.now, agreed.Covers(now))
		}
	}
}

// Permissions survive writing and reading, and are never read wider.
func TestPermissionsJSON(t *testing.T) {
	for _, block := range []string{`{"filesystem":{"read":"all"}}`, `{"filesystem":{"read":1}}`, `{"network":{"allowedHosts":["*"]}}`, `{"network":{"allowedHosts":"a.example"}}`} {
		p := Permissions{Read: Workspace}
		if err := json.Unmarshal([]byte(block), &p); err == nil || p.Read != Workspace {
			t.Errorf("%s became %+v", block, p)
		}
	}
	p := permissions(t, `{"filesystem":{"read":"home","write":"workspace"},"network":{"allowedHosts":["*.A.example","http://b.example:81"]}}`)
	data, err := json.Marshal(p)
	if err != nil || string(data) != `{"filesystem":{"read":"home","write":"workspace"},"network":{"allowedHosts":["*.A.example","http://b.example:81"]}}` {
		t.Errorf("%s, %v", data, err)
	}
	if data, _ := json.Marshal(Permissions{}); string(data) != `{"filesystem":{"read":"none","write":"none"},"network":{"allowedHosts":[]}}` {
		t.Errorf("%s", data)
	}
}

// FuzzHost: an accepted entry names one host or the hosts below one, and covers itself (SPEC E-2).
func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com", "https://example.com:8443", "http://[::1]", "127.0.0.1", "*", "a..b", "https://a@b", "x://y:1", "a.", "[fe80::1%25eth0]", "\u212a.org", "\u0130.org"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			return
		}
		if h.Name == "" || strings.ContainsAny(h.Name, "*/@?#% \t\n\\") || h.Name != strings.ToLower(h.Name) || len(h.Ports) == 0 || slices.Min(h.Ports) < 1 || slices.Max(h.Ports) > 65535 {
			t.Errorf("%q became %+v", s, h)
		}
		if strings.ContainsFunc(s, func(r rune) bool { return r > 127 }) {
			t.Errorf("%q became %+v, which looks like it", s, h)
		}
		if !h.covers(h) {
			t.Errorf("%q does not cover itself", s)
		}
		if h.Wildcard && (!strings.Contains(h.Name, ".") || h.covers(Host{Name: h.Name, Ports: []int{443}})) {
			t.Errorf("%q allows too much: %+v", s, h)
		}
	})
}

// An IPv6 address without brackets is distinguished from a name with a port, and the message shows how to write it.
func TestBareIPv6(t *testing.T) {
	for text, fix := range map[string]string{
		"::1": `write "[::1]", or`, "fd00::1": `write "[fd00::1]", or`, "2001:db8::7": `write "[2001:db8::7]", or`, "::ffff:127.0.0.1": `write "[::ffff:127.0.0.1]", or`,
		"http://::1": `write`, "https://fd00::1:8443": `"https://[::1]:8080"`,
	} {
		_, err := ParseHost(text)
		if err == nil || text[0] != 'h' && !strings.Contains(err.Error(), "in brackets") || !strings.Contains(HostFix(text), fix) {
			t.Errorf("%q: %v; %s", text, err, HostFix(text))
		}
	}
}
