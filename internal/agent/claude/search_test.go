package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/agent/lockfile"
	"github.com/pollux-companion/pollux/internal/settingsfile"
)

// SPEC CC-1 to CC-4: which of several locks Claude Code takes, and what stands in the way where it takes none.
func TestChoose(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	app := filepath.Join(base, "app")
	if err := os.MkdirAll(filepath.Join(app, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(app, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	const living, parent, gone = 7, 6, 8
	lock := func(pid int, root string) string {
		data, err := encode(&lockfile.Lock{PID: pid, Roots: []string{root}, DisplayName: "X", Token: "t"})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	here := lock(living, app)
	for name, tt := range map[string]struct {
		locks  []string          // the n-th is called n.lock
		usual  []string          // in the usual folder, while CLAUDE_CONFIG_DIR names another one
		dir    string            // where Claude Code starts; the app's folder when ""
		env    map[string]string //
		taken  string
		blames string // a word of what stands in the way; "" where there is simply none
		mend   string // what mends that; any when ""
	}{
		"none":                          {},
		"the only one":                  {locks: []string{here}, taken: "1.lock"},
		"a folder below":                {locks: []string{here}, dir: filepath.Join(app, "sub"), taken: "1.lock"},
		"in a link":                     {locks: []string{here}, dir: filepath.Join(base, "link"), taken: "1.lock"},
		"through a link of the lock's":  {locks: []string{lock(living, filepath.Join(base, "link"))}},
		"the folder above":              {locks: []string{here}, dir: base},
		"a neighbour's name":            {locks: []string{lock(living, app[:len(app)-1])}},
		"a dead one":                    {locks: []string{lock(gone, app)}},
		"a dead one and a living one":   {locks: []string{lock(gone, app), here}, taken: "2.lock"},
		"broken":                        {locks: []string{"{", "[]", ""}},
		"two":                           {locks: []string{here, here}, blames: "connects to none"},
		"three, one elsewhere":          {locks: []string{here, lock(living, base+"/other"), here}, blames: "2 companions"},
		"two, the first pollux's":       {locks: []string{here, strings.Replace(here, `"pollux":true`, `"pollux":false`, 1)}, blames: "connects to none", mend: "export CLAUDE_CODE_SSE_PORT=1"},
		"two, and the port":             {locks: []string{here, here}, env: map[string]string{PortVariable: "2"}, taken: "2.lock"},
		"the port of another folder":    {locks: []string{lock(living, base+"/other"), here}, env: map[string]string{PortVariable: "1"}, taken: "1.lock"},
		"the port of a dead one":        {locks: []string{lock(gone, app), here}, env: map[string]string{PortVariable: "1"}, taken: "2.lock"},
		"a port that is missing":        {locks: []string{here, here}, env: map[string]string{PortVariable: "9"}, blames: "connects to none"},
		"port zero":                     {locks: []string{here}, env: map[string]string{PortVariable: "0"}, taken: "1.lock"},
		"in both folders":               {locks: []string{here}, usual: []string{here}, blames: "both of Claude Code's folders"},
		"in the usual folder alone":     {usual: []string{here}, taken: "1.lock"},
		"in an editor's own terminal":   {locks: []string{here, lock(parent, app)}, env: map[string]string{forceVariable: "true"}, taken: "2.lock"},
		"in a stranger's terminal":      {locks: []string{here}, env: map[string]string{forceVariable: "true"}, blames: "not one of the processes above"},
		"the port in such a terminal":   {locks: []string{here}, env: map[string]string{forceVariable: "true", PortVariable: "1"}, taken: "1.lock"},
		"two folders, and the same one": {locks: []string{here}, env: map[string]string{homeVariable: "usual"}, taken: "1.lock"},
	} {
		home := t.TempDir()
		world := lockfile.World{Home: filepath.Join(home, ".claude"), Dir: tt.dir, Above: []int{5, parent}, Alive: func(pid int) bool { return pid == living || pid == parent }}
		env := map[string]string{settingsfile.HomeVariable: home}
		for k, v := range tt.env {
			env[k] = v
		}
		if tt.usual != nil {
			env[homeVariable] = filepath.Join(home, "config")
			world.Home = env[homeVariable]
		}
		if env[homeVariable] == "usual" {
			env[homeVariable] = world.Home
		}
		put(t, world.Home, tt.locks)
		put(t, filepath.Join(home, ".claude"), tt.usual)
		if world.Dir == "" {
			world.Dir = app
		}
		world.Getenv = func(name string) string { return env[name] }
		c := Choose(world)
		taken, blames := "", ""
		if c.Taken >= 0 {
			taken = c.Candidates[c.Taken].Name
		}
		if c.Trouble != nil {
			blames = c.Trouble.What
			if tt.mend != "" && c.Trouble.Mend != tt.mend {
				t.Errorf("%s: %s", name, c.Trouble.Mend)
			}
		}
		if taken != tt.taken || !strings.Contains(blames, tt.blames) || (blames == "") != (tt.blames == "") {
			t.Errorf("%s: %q, %q of %+v; want %q, %q", name, taken, blames, c.Candidates, tt.taken, tt.blames)
		}
	}
}

// put writes locks below a home; the n-th is called n.lock.
func put(t *testing.T, home string, locks []string) {
	t.Helper()
	for i, text := range locks {
		path := lockfile.Path(home, i+1)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDecode: whatever lies in the folder, no lock of it is half a lock.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"pid":1,"workspaceFolders":["/a"],"authToken":"t","transport":"ws"}`, `{}`, `[]`, `{"pid":"x"}`, "", "/a\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := decode(data)
		if err != nil {
			return
		}
		again, err := encode(l)
		if err != nil {
			return // a folder that is not UTF-8
		}
		if back, err := decode(again); err != nil || back.PID != l.PID || len(back.Roots) != len(l.Roots) {
			t.Errorf("%q reads back as %+v, %v", data, back, err)
		}
	})
}

// SPEC CC-6: what the model is told of a selection, measured with the published CLI: see TestClaude of e2e.
func TestTold(t *testing.T) {
	t.Parallel()
	const maybe = "This may or may not be related to the current task."
	at := func(text, path, selection string) string {
		return fmt.Sprintf(`{"text":%q,"filePath":%q,"selection":%s}`, text, path, selection)
	}
	long := strings.Repeat("x", 2001)
	for _, tt := range [][2]string{
		{at("", "", `{"start":{"line":0,"character":0},"end":{"line":0,"character":0},"isEmpty":true}`), ""},
		{at("", "/a", `{"start":{"line":4,"character":0},"end":{"line":4,"character":0},"isEmpty":true}`), "The user opened the file /a in the IDE. " + maybe},
		{at("two", "/a", `{"start":{"line":1,"character":0},"end":{"line":1,"character":3}}`), "The user selected the lines 2 to 2 from /a:\ntwo\n\n" + maybe},
		{at("two\n", "/a", `{"start":{"line":1,"character":0},"end":{"line":2,"character":0}}`), "The user selected the lines 2 to 2 from /a:\ntwo\n\n\n" + maybe},
		{at(long, "/a", `{"start":{"line":0,"character":0},"end":{"line":0,"character":2001}}`), "The user selected the lines 1 to 1 from /a:\n" + long[:2000] + "\n... (truncated)\n\n" + maybe},
		{at("x", "/a", "null"), ""},
		{at("x", "", `{"start":{"line":0,"character":0},"end":{"line":0,"character":1}}`), ""},
	} {
		if got, err := Told([]byte(tt[0])); err != nil || got != tt[1] {
			t.Errorf("%.200s: %.200q, %v; want %.200q", tt[0], got, err, tt[1])
		}
	}
	if _, err := Told([]byte(`{"text":1}`)); err == nil {
		t.Error("a number is no text")
	}
}

// FuzzTold: whatever a companion says of a selection, what the model would be told names the file.
func FuzzTold(f *testing.F) {
	for _, seed := range []string{
		`{"text":"two","filePath":"/w/a.txt","selection":{"start":{"line":1},"end":{"line":2,"character":0}}}`, `{"filePath":"/w/a.txt","selection":{}}`,
		`{"text":"x","filePath":"a","selection":null}`, `{"selection":{"start":{"line":-9e18}}}`, `{}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var said struct{ FilePath string }
		told, err := Told(data)
		if err != nil || told == "" {
			return
		}
		if err := json.Unmarshal(data, &said); err != nil || !strings.Contains(told, said.FilePath) {
			t.Errorf("of %q: %q", data, told)
		}
	})
}
