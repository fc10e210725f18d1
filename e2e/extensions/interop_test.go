package extensions

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/e2e/cli"
	"github.com/pollux-companion/pollux/e2e/model"
)

// TestTheCLIManagesOurs (SPEC M-1): what pollux installs the real CLI lists, loads
// in a session, updates, disables and uninstalls.
func TestTheCLIManagesOurs(t *testing.T) {
	h := newHouse(t)
	repo := h.repository("fromgit", "1.0.0")
	local := h.extension(t.TempDir(), "fromlocal", "1.0.0", "")
	linked := h.extension(t.TempDir(), "linked", "1.0.0", "")
	mono := t.TempDir()
	h.extension(filepath.Join(mono, "packages", "deep"), "fromdeep", "1.0.0", "")
	git(t, mono, "init", "-q")
	git(t, mono, "add", ".")
	git(t, mono, "commit", "-q", "-m", "1")
	h.us("install", "file://"+repo, "--yes")
	h.us("install", local, "--yes")
	h.us("link", linked, "--yes")
	h.us("install", "file://"+mono, "--path", "packages/deep", "--yes")
	h.us("install", h.extension(t.TempDir(), "packed", "1.0.0", ""), "--yes")
	zip := filepath.Join(h.ws, "packed.zip")
	h.us("export", "packed", "-o", zip)
	h.us("uninstall", "packed")
	h.us("install", zip, "--yes")

	names := []string{"fromgit", "fromlocal", "linked", "fromdeep", "packed"}
	list := h.theyList()
	for _, name := range names {
		if x := list[name]; x.Version != "1.0.0" || !x.IsActive || len(x.ContextFiles) != 1 {
			t.Errorf("the CLI lists %s as %+v", name, x)
		}
	}
	said := h.session()
	for _, name := range names {
		if !strings.Contains(said, word(name, "1.0.0")) {
			t.Errorf("the context of %s did not reach the model", name)
		}
	}

	h.commit(repo, "fromgit", "2.0.0")
	h.extension(local, "fromlocal", "2.0.0", "")
	h.them("update", "fromgit")
	h.them("update", "fromlocal")
	h.them("update", "packed")   // it has nothing to update it from, and must survive that
	h.them("update", "fromdeep") // likewise
	after := h.weList()
	for name, version := range map[string]string{"fromgit": "2.0.0", "fromlocal": "2.0.0", "packed": "1.0.0", "fromdeep": "1.0.0", "linked": "1.0.0"} {
		if x := after[name]; x.Version != version || x.Problem != "" {
			t.Errorf("after the CLI's update pollux lists %s as %+v", name, x)
		}
	}
	if x := after["fromgit"]; x.InstalledBy != "Gemini CLI" || x.Source.Commit != git(t, repo, "rev-parse", "HEAD") {
		t.Errorf("after the CLI's update: %+v", x)
	}

	h.them("disable", "fromlocal", "--scope", "workspace")
	if x := h.weList()["fromlocal"]; x.Enabled.Workspace || !x.Enabled.User {
		t.Errorf("after the CLI's disable: %+v", x)
	}
	h.them("enable", "fromlocal", "--scope", "workspace")
	if x := h.weList()["fromlocal"]; !x.Enabled.Workspace {
		t.Errorf("after the CLI's enable: %+v", x)
	}
	h.them(append([]string{"uninstall"}, names...)...)
	if left := h.weList(); len(left) != 0 {
		t.Errorf("after the CLI's uninstall: %+v", left)
	}
	for _, dir := range []string{linked, local} {
		if _, err := os.Stat(filepath.Join(dir, "gemini-extension.json")); err != nil {
			t.Errorf("the user's own folder: %v", err)
		}
	}
}

// session runs one prompt without a terminal and returns all that the model got to see.
func (h *house) session() string {
	h.t.Helper()
	m := model.Start(h.t)
	_, all, code := h.run(append(h.gemini, "-p", "say hello"), "", cli.Variables(m)...)
	if code != 0 {
		h.t.Fatalf("a session: exit code %d\n%s", code, all)
	}
	r := m.Wait(h.t, 0, patience, nil)
	text, err := json.Marshal(r.Body)
	must(h.t, err)
	return string(text)
}

// TestWeManageTheirs: what the real CLI installs pollux lists, describes,
// updates, disables (also outside the home folder, which the CLI's own disable
// does not), enables and uninstalls; and the CLI agrees each time.
func TestWeManageTheirs(t *testing.T) {
	h := newHouse(t)
	src := h.extension(t.TempDir(), "theirs", "1.0.0", "")
	h.them("install", src, "--consent")
	if x := h.weList()["theirs"]; x.Version != "1.0.0" || x.InstalledBy != "Gemini CLI" || !x.Enabled.Workspace {
		t.Errorf("pollux lists %+v", x)
	}
	if text := h.us("describe", "theirs"); !strings.Contains(text, "Gemini CLI") || !strings.Contains(text, src) {
		t.Errorf("describe says\n%s", text)
	}
	h.extension(src, "theirs", "2.0.0", "")
	h.us("update", "theirs", "--yes")
	if x := h.theyList()["theirs"]; x.Version != "2.0.0" || !x.IsActive {
		t.Errorf("after our update the CLI lists %+v", x)
	}
	if text := h.us("describe", "theirs", "--verify"); !strings.Contains(text, "nothing changed") {
		t.Errorf("after our update describe says\n%s", text)
	}
	h.us("disable", "theirs")
	if x := h.theyList()["theirs"]; x.IsActive {
		t.Errorf("disabled by pollux, and outside the home folder the CLI still loads it: %+v", x)
	}
	h.them("enable", "theirs") // leaves our rule for other folders standing
	h.us("enable", "theirs")
	if x := h.theyList()["theirs"]; !x.IsActive {
		t.Errorf("enabled by pollux: %+v", x)
	}
	h.extension(src, "theirs", "3.0.0", "")
	if text := h.them("update", "theirs"); !strings.Contains(text, "2.0.0 → 3.0.0") {
		t.Errorf("the CLI's update after ours:\n%s", text)
	}
	h.us("uninstall", "theirs")
	if left := h.theyList(); len(left) != 0 {
		t.Errorf("after our uninstall the CLI lists %+v", left)
	}
	h.them("install", src, "--consent")
	if x := h.theyList()["theirs"]; x.Version != "3.0.0" || !x.IsActive {
		t.Errorf("installed again: %+v", x)
	}
}

// TestTheirSignedRecord: the CLI keeps a signed record of what it installed
// beyond an uninstall; an install of that name by pollux brings it up to date, or the CLI would refuse to update.
func TestTheirSignedRecord(t *testing.T) {
	h := newHouse(t)
	h.them("install", h.extension(t.TempDir(), "signed", "1.0.0", ""), "--consent")
	h.them("uninstall", "signed")
	repo := h.repository("signed", "2.0.0")
	h.us("install", "file://"+repo, "--yes")
	h.commit(repo, "signed", "3.0.0")
	if text := h.them("update", "signed"); !strings.Contains(text, "2.0.0 → 3.0.0") {
		t.Errorf("the CLI's update after our install:\n%s", text)
	}
	h.us("uninstall", "signed")
	h.them("install", h.extension(t.TempDir(), "signed", "4.0.0", ""), "--consent") // the store must still verify
}

// TestSettings: values and secrets that one program sets the other reads, and pollux never prints a secret.
func TestSettings(t *testing.T) {
	h := newHouse(t)
	h.us("install", h.extension(t.TempDir(), "asks", "1.0.0", `,"settings":[
		{"name":"Region","description":"where","envVar":"ASKS_REGION"},
		{"name":"Key","description":"what","envVar":"ASKS_KEY","sensitive":true}]`), "--yes")
	h.us("config", "asks", "Region", "a place with blanks # and 'quotes'")
	const secret = "s3cr3t-wörd"
	if _, all, code := h.run([]string{h.pollux, "extensions", "config", "asks", "ASKS_KEY", "-"}, secret+"\n"); code != 0 || strings.Contains(all, secret) {
		t.Fatalf("setting a secret: exit code %d\n%s", code, all)
	}
	got := map[string]string{}
	for _, v := range h.theyList()["asks"].ResolvedSettings {
		got[v.EnvVar] = v.Value
	}
	if got["ASKS_REGION"] != "a place with blanks # and 'quotes'" || got["ASKS_KEY"] != secret {
		t.Errorf("the CLI reads %q", got)
	}
	shown := h.us("config", "asks") + h.us("config", "asks", "--json") + h.us("describe", "asks") + h.us("list", "--json", "--all")
	if strings.Contains(shown, secret) || !strings.Contains(shown, "***") {
		t.Errorf("shown:\n%s", shown)
	}
	_, all, code := h.run(append(h.gemini, "extensions", "config", "asks", "ASKS_REGION"), "elsewhere\n")
	if code != 0 {
		t.Fatalf("the CLI's config: %d\n%s", code, all)
	}
	if text := h.us("config", "asks", "ASKS_REGION"); !strings.Contains(text, "elsewhere") {
		t.Errorf("the CLI set a value (%q), and pollux reads %s", all, text)
	}
}

// TestNothingOfOursBricksTheCLI: with a list of allowed extensions the CLI
// does not start when one lacks install metadata, and never when two folders hold one name; neither an
// installed extension of any kind nor what a killed pollux leaves does that.
func TestNothingOfOursBricksTheCLI(t *testing.T) {
	h := newHouse(t)
	src := h.extension(t.TempDir(), "one", "1.0.0", "")
	h.us("install", src, "--yes")
	h.us("link", h.extension(t.TempDir(), "two", "1.0.0", ""), "--yes")
	h.us("export", "one", "-o", filepath.Join(h.ws, "one.zip"))
	h.us("uninstall", "one")
	h.us("install", filepath.Join(h.ws, "one.zip"), "--yes")
	h.extension(filepath.Join(h.home.Dir, ".gemini", "pollux", "staging", "1", "new"), "one", "2.0.0", "")
	settings := filepath.Join(h.home.Dir, ".gemini", "settings.json")
	write(t, settings, `{"security":{"allowedExtensions":[".*"],"folderTrust":{"enabled":false}}}`)
	if list := h.theyList(); len(list) != 2 || !list["one"].IsActive || !list["two"].IsActive || list["one"].Version != "1.0.0" {
		t.Errorf("the CLI lists %+v", list)
	}
	write(t, settings, `{"security":{"allowedExtensions":["one.zip$"],"folderTrust":{"enabled":false}}}`)
	list := h.theyList()
	for name, x := range h.weList() {
		if _, loads := list[name]; loads != (x.Problem == "") {
			t.Errorf("%s: the CLI loads it: %v; pollux says %q", name, loads, x.Problem)
		}
	}
}

// TestRulesAgree: both programs read the same rules alike, the odd ones included.
func TestRulesAgree(t *testing.T) {
	h := newHouse(t)
	ws, parent := filepath.ToSlash(h.ws), filepath.ToSlash(filepath.Dir(h.ws))
	rules := [][]string{
		nil, {}, {"!/*"}, {"!" + ws + "/*"}, {"!" + ws + "/"}, {"!" + ws}, {"!" + parent + "/"}, {"!" + parent + "/*"},
		{"!" + parent + "/*", ws + "/*"}, {ws + "/*", "!" + parent + "/*"}, {"!*"}, {"!/tmp*/"}, {"!" + ws + "x/*"},
		{"!/tmp/*/" + filepath.Base(h.ws) + "/"}, {"!" + ws + "/*/"}, {"!" + strings.ReplaceAll(ws, "/", "//") + "/*"}, {"!"}, {""}, {"!" + ws[:len(ws)-1] + "?/"},
	}
	file := map[string]map[string][]string{}
	for i, list := range rules {
		name := "e" + strings.Repeat("x", i)
		h.extension(filepath.Join(h.home.Dir, ".gemini", "extensions", name), name, "1.0.0", "")
		if list != nil {
			file[name] = map[string][]string{"overrides": list}
		}
	}
	text, err := json.Marshal(file)
	must(t, err)
	write(t, filepath.Join(h.home.Dir, ".gemini", "extensions", "extension-enablement.json"), string(text))
	theirs, off := h.theyList(), 0
	for name, x := range h.weList() {
		if x.Enabled.Workspace != theirs[name].IsActive {
			t.Errorf("%q: pollux says %v, the CLI %v", file[name]["overrides"], x.Enabled.Workspace, theirs[name].IsActive)
		}
		if !theirs[name].IsActive {
			off++
		}
	}
	if len(theirs) != len(rules) || off < 4 {
		t.Errorf("the CLI lists %d of %d, %d of them off", len(theirs), len(rules), off)
	}
}
