package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoadMissing(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none.json"), filepath.Join(t.TempDir(), "no", "dir")} {
		got, warnings, err := Load(path)
		if err != nil || len(warnings) > 0 || !cmp.Equal(got, Defaults()) {
			t.Errorf("%+v, %v, %v", got, warnings, err)
		}
	}
}

func TestLoadAll(t *testing.T) {
	want := Settings{
		LogLevel: "debug", OpenBrowser: false, Resume: false, Keep: false, AllowWriteFile: true, LegacyDiffClosed: true,
		ContainerAddress: "172.17.0.1", AdmitOtherUsers: true, ShareOutside: true, Ignore: []string{"secrets/", "*.pem"}, Share: map[string]string{"*": "ask", "claude": "never"}, DiffMode: "terminal",
		Notify:  Notify{Seconds: 30, Terminal: false, Desktop: true, Command: []string{"/usr/bin/say", "pollux waits"}},
		History: History{Enabled: false, Entries: 5, Bytes: 1000, Age: 36 * time.Hour}, ExtensionIndex: "/srv/extensions.json",
		Tools: Tools{Seconds: 5, Memory: 32 << 20, Output: 2048, Processes: 400, Reduced: true, UseProxy: true, Pinned: []string{"analyzer", "other.lint"}},
	}
	got, warnings, err := Load("testdata/all.json")
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Every key of the program is in that file.
	var s Settings
	data, _ := os.ReadFile("testdata/all.json")
	for _, f := range fields(&s, new(float64)) {
		if !strings.Contains(string(data), `"`+last(f.key)+`"`) {
			t.Errorf("testdata/all.json lacks %s", f.key)
		}
	}
}

func TestProblems(t *testing.T) {
	for in, want := range map[string]string{
		`{`:                                    `c.json:1:2: `,
		`[]`:                                   `c.json:1:1: the file must be one object`,
		"{\n  \"logLevel\": \"loud\"\n}":       `c.json:2:15: "logLevel" must be "debug", "info", "warn" or "error"`,
		`{"openBrowser": "yes"}`:               `c.json:1:17: "openBrowser" must be true or false`,
		`{"openBrowser": null}`:                `c.json:1:17: "openBrowser" must be true or false`,
		`{"containerAddress": "0.0.0.0"}`:      `"containerAddress" must be an IP address of this machine`,
		`{"containerAddress": "::"}`:           `"containerAddress" must be`,
		`{"containerAddress": "bridge"}`:       `"containerAddress" must be`,
		`{"ignore": "x"}`:                      `"ignore" must be a list of patterns`,
		`{"ignore": [1]}`:                      `"ignore" must be a list of patterns`,
		`{"share": "never"}`:                   `c.json:1:11: "share" must be an object of agents`,
		`{"share": {"claude": "Never"}}`:       `"share" must be`,
		`{"share": {"claude": false}}`:         `"share" must be`,
		`{"share": {"claude": null}}`:          `"share" must be`,
		`{"share": ["claude"]}`:                `"share" must be`,
		`{"share": null}`:                      `"share" must be`,
		`{"diffMode": "yolo"}`:                 `"diffMode" must be`,
		`{"notify": {"seconds": -1}}`:          `"notify.seconds" must be a number of seconds from 0`,
		`{"notify": {"command": "say"}}`:       `"notify.command" must be a list`,
		`{"notify": {"command": ["./say"]}}`:   `"notify.command" must be a list of a program, by its absolute path`,
		`{"notify": {"command": ["bin/say"]}}`: `"notify.command" must be`,
		`{"notify": {"command": [""]}}`:        `"notify.command" must be`,
		`{"tools": {"seconds": 0}}`:            `c.json:1:23: "tools.seconds" must be a number of seconds from 1 to 86400`,
		`{"tools": {"processes": 5}}`:          `"tools.processes" must be a number from 301`,
		`{"history": 5}`:                       `c.json:1:13: "history" must be an object`,
		`{"history": {"entries": 0}}`:          `c.json:1:25: "history.entries" must be a number from 1 to 10000`,
		`{"history": {"entries": 1.5}}`:        `"history.entries" must be a number`,
		`{"history": {"bytes": 1e99}}`:         `"history.bytes" must be a number of bytes`,
		`{"history": {"days": -1}}`:            `"history.days" must be a number of days`,
		"{\"a\": 1,\n // x\n \"b\": tru}":      `c.json:3:`,
		"{\"logLevel\": \"info\"} {\"x\": 1}":  `c.json:1:`,
	} {
		got, _, err := parse("c.json", []byte(in))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", in, err, want)
		}
		if !cmp.Equal(got, Defaults()) {
			t.Errorf("%s: a broken file changed the settings", in)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	got, warnings, err := parse("c.json", []byte("{\n  \"openbrowser\": false,\n  \"history\": {\"size\": 1},\n  \"entries\": 2,\n  \"resume\": false,\n}"))
	if err != nil || got.Resume {
		t.Fatal(got, err)
	}
	want := []string{
		`c.json:2:3: pollux does not know the key "openbrowser" and ignores it; did you mean "openBrowser"?`,
		`c.json:3:15: pollux does not know the key "history.size" and ignores it`,
		`c.json:4:3: pollux does not know the key "entries" and ignores it; did you mean "history.entries"?`,
	}
	var texts []string
	for _, w := range warnings {
		texts = append(texts, w.Error())
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, make([]byte, maxConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, big} {
		if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// The file may be a link.
	link := filepath.Join(dir, "link")
	all, _ := filepath.Abs("testdata/all.json")
	os.Symlink(all, link)
	if s, _, err := Load(link); err != nil || s.LogLevel != "debug" {
		t.Errorf("through a link: %v", err)
	}
}

func TestContainerAddress(t *testing.T) {
	for addr, ok := range map[string]bool{"": true, "172.17.0.1": true, "fd00::1": true, "0.0.0.0": false, "::": false, "::ffff:0.0.0.0": false, "224.0.0.1": false, "x": false, "127.0.0.1:80": false} {
		if err := CheckContainerAddress(addr); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"history": {"days": 2}, // x` + "\n}"))
	f.Add([]byte(`{"ignore": [/**/], "a": {}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, warnings, err := parse("c", in)
		lines := strings.Count(string(in), "\n") + 1
		if p := (*Problem)(nil); errors.As(err, &p) {
			warnings = append(warnings, p)
		}
		for _, w := range warnings {
			if w.Line < 1 || w.Line > lines || w.Column < 1 || w.Column > len(in)+1 {
				t.Errorf("%v is not in a file of %d lines and %d bytes", w, lines, len(in))
			}
		}
	})
}
