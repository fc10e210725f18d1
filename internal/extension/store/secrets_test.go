package store

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/peers"
)

// TestStable: JSON as the CLI signs it, compared with JavaScript's output.
func TestStable(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":"x"}`: `{"a":"x","b":1}`, ` [ 1 , "é<>&" , null , true ] `: `[1,"é<>&",null,true]`,
		`{"z":{"y":[{"b":2,"a":1}]}}`: `{"z":{"y":[{"a":1,"b":2}]}}`, `{}`: `{}`, `"\u2028\u2029\n\u0001\"\\/"`: "\"\u2028\u2029\\n\\u0001\\\"\\\\/\"",
		`1.50`: `1.50`,
	} {
		if got, err := stable([]byte(in)); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestID: the CLI's ids: of a GitHub repository in any spelling, of another source, of a name.
func TestID(t *testing.T) {
	hub := hexHash([]byte("https://github.com/o/r"))
	for _, c := range []struct {
		m    *Metadata
		want string
	}{
		{nil, hexHash([]byte("x"))},
		{&Metadata{Source: "https://github.com/o/r.git", Type: "git"}, hub},
		{&Metadata{Source: "git@github.com:o/r", Type: "github-release"}, hub},
		{&Metadata{Source: "https://github.com/o/r", Type: "local"}, hub}, // the text itself
		{&Metadata{Source: "/srv/x", Type: "local"}, hexHash([]byte("/srv/x"))},
		{&Metadata{Source: "https://example.com/o/r", Type: "git"}, hexHash([]byte("https://example.com/o/r"))},
	} {
		if got := c.m.id("x"); got != c.want {
			t.Errorf("%+v: %s", c.m, got)
		}
	}
}

// node runs a script in the CLI's own language, as an independent implementation of its formats.
func node(t *testing.T, script string, args ...string) string {
	t.Helper()
	cmd := exec.Command(peers.Need(t, peers.Node), append([]string{"-e", script}, args...)...)
	out, err := cmd.Output()
	must(t, err)
	return string(out)
}

// TestCredentials: pollux reads and writes the CLI's encrypted file as Node does.
func TestCredentials(t *testing.T) {
	const script = `
const c=require("crypto"),os=require("os"),fs=require("fs"),[file,op]=process.argv.slice(1);
const key=c.scryptSync("gemini-cli-oauth",os.hostname()+"-"+os.userInfo().username+"-gemini-cli",32);
if(op==="write"){const iv=c.randomBytes(16),e=c.createCipheriv("aes-256-gcm",key,iv);
 let x=e.update(JSON.stringify({s:{a:"wört"}}),"utf8","hex");x+=e.final("hex");
 fs.writeFileSync(file,iv.toString("hex")+":"+e.getAuthTag().toString("hex")+":"+x,{mode:0o600});
}else{const [iv,tag,x]=fs.readFileSync(file,"utf8").split(":"),d=c.createDecipheriv("aes-256-gcm",key,Buffer.from(iv,"hex"));
 d.setAuthTag(Buffer.from(tag,"hex"));process.stdout.write(d.update(x,"hex","utf8")+d.final("utf8"));}`
	k := &fileKeychain{path: filepath.Join(t.TempDir(), "gemini-credentials.json")}
	if got, err := k.get("s", "a"); err != nil || got != "" {
		t.Errorf("without a file: %q, %v", got, err)
	}
	node(t, script, k.path, "write")
	if got, err := k.get("s", "a"); err != nil || got != "wört" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, k.set("other", "b", "2"))
	var all map[string]map[string]string
	must(t, json.Unmarshal([]byte(node(t, script, k.path, "read")), &all))
	if diff := cmp.Diff(map[string]map[string]string{"s": {"a": "wört"}, "other": {"b": "2"}}, all); diff != "" {
		t.Error(diff)
	}
	must(t, k.remove("s", "a"))
	must(t, k.remove("s", "never"))
	must(t, k.remove("other", "b"))
	if exists(k.path) {
		t.Error("an empty file is left")
	}
	for _, bad := range []string{"", "a:b", "00:00:00", "zz:zz:zz", strings.Repeat("0", 24) + ":" + strings.Repeat("0", 32) + ":00"} {
		must(t, os.WriteFile(k.path, []byte(bad), 0o600))
		if _, err := k.get("s", "a"); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%q: %v", bad, err)
		}
		if err := k.set("s", "a", "x"); err == nil || read(t, k.path) != bad {
			t.Errorf("%q was overwritten: %v", bad, err)
		}
	}
}

// TestIntegrity: an existing signed record follows the metadata, none is created, and what cannot be signed stays
// unchanged and is reported.
func TestIntegrity(t *testing.T) {
	s := newStore(t)
	key := strings.Repeat("ab", 32)
	must(t, s.keychain().set(integrityService, integrityAccount, key))
	sign := func(store string) string {
		return node(t, `const c=require("crypto");const [k,s]=process.argv.slice(1);process.stdout.write(c.createHmac("sha256",k).update(s).digest("hex"))`, key, store)
	}
	const old = `{"x":{"hash":"00","signature":"11"},"y":{"hash":"22","signature":"33"}}`
	file := `{"store":` + old + `,"signature":"` + sign(old) + `"}`
	s.fixIntegrity("x", &Metadata{Source: "/a", Type: "local"})
	if exists(s.integrityFile()) {
		t.Fatal("a store was made")
	}
	write(t, s.integrityFile(), file)
	s.fixIntegrity("unknown", &Metadata{Source: "/a", Type: "local"})
	if read(t, s.integrityFile()) != file {
		t.Error("a record was made")
	}
	s.fixIntegrity("x", &Metadata{Source: "/a", Type: "local"})
	hash := hexHash([]byte(`{"source":"/a","type":"local"}`))
	want := `{"x":{"hash":"` + hash + `","signature":"` + sign(hash) + `"},"y":{"hash":"22","signature":"33"}}`
	var got struct {
		Store     json.RawMessage
		Signature string
	}
	must(t, json.Unmarshal([]byte(read(t, s.integrityFile())), &got))
	if text, _ := stable(got.Store); text != want || got.Signature != sign(want) {
		t.Errorf("%s, %s; want %s, %s", text, got.Signature, want, sign(want))
	}
	s.fixIntegrity("x", nil)
	must(t, json.Unmarshal([]byte(read(t, s.integrityFile())), &got))
	if text, _ := stable(got.Store); strings.Contains(text, `"x"`) || got.Signature != sign(text) {
		t.Errorf("after uninstalling: %s", text)
	}
	var told []string
	s.warn = func(text string) { told = append(told, text) }
	for _, broken := range []string{strings.Replace(file, `"signature":"`+sign(old), `"signature":"00`+sign(old)[2:], 1), `{`} {
		write(t, s.integrityFile(), broken)
		s.fixIntegrity("x", &Metadata{Source: "/a", Type: "local"})
		if read(t, s.integrityFile()) != broken {
			t.Errorf("%s was changed", broken)
		}
	}
	must(t, s.keychain().remove(integrityService, integrityAccount))
	write(t, s.integrityFile(), file)
	s.fixIntegrity("x", &Metadata{Source: "/a", Type: "local"})
	if len(told) != 3 {
		t.Errorf("told %q", told)
	}
	write(t, filepath.Join(s.gemini, "integrity.key"), key+"\n") // where the CLI stores it without a keychain
	s.fixIntegrity("x", &Metadata{Source: "/a", Type: "local"})
	if len(told) != 3 || read(t, s.integrityFile()) == file {
		t.Errorf("with the key in a file: told %q", told[3:])
	}
}

// TestValues: settings come from the user and, only in a trusted folder, from the workspace. The user's own .env
// there stays unchanged, and no readable file contains a secret.
func TestValues(t *testing.T) {
	s, ctx := newStore(t), context.Background()
	s.workDir = t.TempDir()
	dir := t.TempDir()
	write(t, filepath.Join(dir, manifest.FileName), `{"name":"x","version":"1","settings":[
		{"name":"Plain","description":"d","envVar":"X_PLAIN"},{"name":"Secret","description":"d","envVar":"X_SECRET","sensitive":true}]}`)
	must(t, perform(s, "install", dir))
	x, err := s.Get("x")
	must(t, err)
	plainOne, secret := x.Manifest.Settings[0], x.Manifest.Settings[1]
	text := func(v string) *string { return &v }
	env := filepath.Join(s.workDir, ".env")
	write(t, env, "# mine\nexport OTHER='a b' # x\nX_PLAIN=workspace\nMULTI=\"a\\nb\"\n")

	set := func(setting manifest.Setting, scope Scope, v *string) {
		t.Helper()
		_, err := s.SetValue(ctx, x, setting, scope, v)
		must(t, err)
	}
	get := func(setting manifest.Setting) string {
		t.Helper()
		v, _, err := s.Secret(x, setting)
		must(t, err)
		return v
	}
	for _, v := range []string{"simple", "with blanks", "#hash", `quote"s`, "it's", "`back`", `C:\new\table`, "a=b", "wört", " padded ", "\u00a0hard"} {
		set(plainOne, User, text(v))
		set(secret, User, text(v))
		if got := get(plainOne); got != v || get(secret) != v {
			t.Errorf("%q became %q and %q", v, got, get(secret))
		}
	}
	if strings.Contains(read(t, filepath.Join(s.folder("x"), ".env")), "X_SECRET") {
		t.Error("the secret is in the file")
	}
	if _, err := s.SetValue(ctx, x, plainOne, Workspace, text("v")); err == nil || !strings.Contains(err.Error(), "not trusted") {
		t.Errorf("in a folder that nobody trusts: %v", err)
	}
	t.Setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
	if got := get(plainOne); got != "workspace" {
		t.Errorf("in a trusted folder: %q", got)
	}
	set(plainOne, Workspace, text("new"))
	if got, want := read(t, env), "# mine\nexport OTHER='a b' # x\nMULTI=\"a\\nb\"\nX_PLAIN=new\n"; got != want {
		t.Errorf("the workspace's file is now\n%s", got)
	}
	values, err := s.Values(x)
	must(t, err)
	if values[0].Text != "new" || values[0].Scope != Workspace || values[1].Text != "" || !values[1].Set {
		t.Errorf("%+v", values)
	}
	set(plainOne, Workspace, nil)
	set(plainOne, User, nil)
	set(secret, User, nil)
	if values, err := s.Values(x); err != nil || values[0].Set || values[1].Set {
		t.Errorf("%+v, %v", values, err)
	}
	for _, bad := range []string{"two\nlines", "a\rb", "a\x00b", "'\"`"} {
		if _, err := s.SetValue(ctx, x, plainOne, User, &bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestSettingsLink: a link in place of an extension's settings, which the CLI would have copied as its author made
// it, reveals nothing and is not written through.
func TestSettingsLink(t *testing.T) {
	s, dir := newStore(t), t.TempDir()
	told := 0
	s.warn = func(string) { told++ }
	write(t, filepath.Join(dir, manifest.FileName), `{"name":"x","version":"1","settings":[{"name":"K","description":"d","envVar":"KEY"}]}`)
	must(t, perform(s, "install", dir))
	victim := filepath.Join(t.TempDir(), "credentials")
	write(t, victim, "KEY=secret\n")
	env := filepath.Join(s.folder("x"), ".env")
	if err := os.Symlink(victim, env); err != nil {
		t.Skip(err)
	}
	x, err := s.Get("x")
	must(t, err)
	if v, set, err := s.Secret(x, x.Manifest.Settings[0]); err == nil || set || v != "" {
		t.Errorf("read %q through the link, %v", v, err)
	}
	write(t, filepath.Join(dir, "new"), "")
	must(t, perform(s, "update", ""))
	if exists(env) || told != 1 {
		t.Errorf("the update carried the link over; told %d times", told)
	}
	if read(t, victim) != "KEY=secret\n" {
		t.Error("the file behind the link was written to")
	}
}

// FuzzEnv: any file can be read, and a written value is read back.
func FuzzEnv(f *testing.F) {
	f.Add("A=1\nexport B='x'\n", "a b")
	f.Add("=\n'\"`", "it's \"`#")
	f.Fuzz(func(t *testing.T, file, value string) {
		for line := range strings.Lines(file) {
			if key, _, is := envLine(line); is && key == "" {
				t.Errorf("%q has no key", line)
			}
		}
		if strings.ContainsAny(value, "\r\n\x00") || strings.Contains(value, `\n`) || strings.Contains(value, `\r`) {
			return
		}
		quotes := 0
		for _, q := range []string{`'`, `"`, "`"} {
			if strings.Contains(value, q) {
				quotes++
			}
		}
		if key, got, is := envLine(string(formatEnv(map[string]string{"K": value}))); quotes < 3 && (!is || key != "K" || got != value) {
			t.Errorf("%q was read back as %q", value, got)
		}
	})
}
