package ide

import (
	"archive/zip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SPEC I-3: VS Code's family, installed by its own command, here a stand-in.
func TestFork(t *testing.T) {
	home := t.TempDir()
	program := filepath.Join(home, ".local", "bin", "codium")
	write(t, program, "#!/bin/sh\necho \"$1\" \"${2##*/}\" \"$3\" >> '"+home+"/said'\n"+
		"[ \"$1\" != --install-extension ] || cp \"$2\" '"+home+"/got'\n[ \"$1\" != --uninstall-extension ] || { echo no such extension; exit 1; }\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, error) { return "", fs.ErrNotExist }
	m := Machine{OS: "linux", Home: home, Getenv: func(string) string { return "" }}
	command, ok, err := m.Fork("vscodium", none)
	if err != nil || !ok || command != program {
		t.Fatalf("%q, %v, %v", command, ok, err)
	}
	if err := (&Installer{Version: "v1.2.3-4-gabc", Command: "/opt/pollux"}).InstallExtension(t.Context(), command); err != nil {
		t.Error(err)
	}
	if err := RemoveExtension(t.Context(), command); err == nil || !strings.Contains(err.Error(), "no such extension") {
		t.Error(err)
	}
	if said, _ := os.ReadFile(filepath.Join(home, "said")); !strings.HasPrefix(string(said), "--install-extension pollux.vsix --force\n") {
		t.Errorf("%s", said)
	}
	if _, ok, err := m.Fork("windsurf", none); !ok || !errors.Is(err, errNoCommand) {
		t.Errorf("%v, %v", ok, err)
	}
	if _, ok, _ := m.Fork("ed", none); ok {
		t.Error("ed is no fork of VS Code")
	}
	for _, os := range []string{"darwin", "windows", "linux"} {
		m.OS = os
		for _, name := range Forks() {
			if len(m.forkPlaces(forks()[name])) == 0 {
				t.Errorf("%s has no places on %s", name, os)
			}
		}
	}
}

func TestSnippets(t *testing.T) {
	for _, editor := range Snippets() {
		if where, text, ok := Snippet(editor, "/opt/pollux"); !ok || where == "" || !strings.Contains(text, "/opt/pollux") || !strings.Contains(text, "lsp") {
			t.Errorf("%s: %q", editor, text)
		}
	}
}

// The package has what VS Code looks for: its manifest, the extension's with
// this version and without what only its build needs, and the program.
func TestVSIX(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pollux.vsix")
	if err := writeVSIX(file, "v1.2.3-4-gabc", "/opt/pollux"); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	var about struct {
		Name, Publisher, Version, Main string
		DevDependencies                map[string]string
		Pollux                         struct{ Command string }
		Contributes                    struct{ Commands []struct{ Command string } }
	}
	if err := json.Unmarshal([]byte(files["extension/package.json"]), &about); err != nil {
		t.Fatal(err)
	}
	if about.Publisher+"."+about.Name != Extension || about.Version != "1.2.3" || about.DevDependencies != nil || about.Pollux.Command != "/opt/pollux" {
		t.Errorf("%+v", about)
	}
	var manifest struct {
		Metadata struct {
			Identity struct {
				ID      string `xml:"Id,attr"`
				Version string `xml:",attr"`
			}
		}
		Assets struct {
			Asset []struct {
				Path string `xml:",attr"`
			}
		}
	}
	if err := xml.Unmarshal([]byte(files["extension.vsixmanifest"]), &manifest); err != nil {
		t.Fatal(err)
	}
	if id := manifest.Metadata.Identity; id.ID != "pollux" || id.Version != "1.2.3" {
		t.Errorf("%+v", id)
	}
	for _, asset := range manifest.Assets.Asset {
		if files[asset.Path] == "" {
			t.Errorf("%s is missing", asset.Path)
		}
	}
	program := files["extension/"+strings.TrimPrefix(about.Main, "./")]
	if program == "" || files["[Content_Types].xml"] == "" {
		t.Errorf("%d files", len(files))
	}
	for _, c := range about.Contributes.Commands { // each is made by the loop over commands()
		if name := strings.TrimPrefix(c.Command, "pollux."); !strings.Contains(program, "    "+name+": ") {
			t.Errorf("the program has no command %s", name)
		}
	}
}
