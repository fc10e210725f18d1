package ide

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"github.com/pollux-companion/pollux/plugins"
)

// writeVSIX writes the package of Extension that the editors of VS Code's
// family install: a ZIP with the extension's files, an XML manifest and the
// types of the files in it, as Open Packaging Conventions have it. The
// extension starts command, an absolute path: an editor that a desktop has
// started does not know the PATH of the user's shell.
func writeVSIX(file, version, command string) error {
	root, err := fs.Sub(plugins.Files(), "vscode")
	if err != nil {
		return err
	}
	about, manifest, err := vsixManifest(root, semantic(version), command)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	add := func(name string, content []byte) {
		w, failed := archive.Create(name)
		if failed == nil {
			_, failed = w.Write(content)
		}
		if err == nil {
			err = failed
		}
	}
	add("[Content_Types].xml", []byte(xml.Header+`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">`+
		`<Default Extension="json" ContentType="application/json"/><Default Extension="js" ContentType="application/javascript"/>`+
		`<Default Extension="md" ContentType="text/markdown"/><Default Extension="vsixmanifest" ContentType="text/xml"/></Types>`))
	add("extension.vsixmanifest", manifest)
	add("extension/package.json", about)
	for _, name := range []string{"README.md", "dist/extension.js"} {
		content, failed := fs.ReadFile(root, name)
		if failed != nil {
			return failed
		}
		add("extension/"+name, content)
	}
	if failed := archive.Close(); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// vsixManifest returns package.json with the version and the command in it, and the manifest of the package.
func vsixManifest(root fs.FS, version, command string) (about, manifest []byte, err error) {
	data, err := fs.ReadFile(root, "package.json")
	if err != nil {
		return nil, nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil, err
	}
	all["version"], all["pollux"] = version, map[string]string{"command": command}
	for _, name := range []string{"private", "scripts", "devDependencies"} {
		delete(all, name)
	}
	if about, err = json.MarshalIndent(all, "", "  "); err != nil {
		return nil, nil, err
	}
	text := func(key string) string {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, fmt.Append(nil, all[key]))
		return b.String()
	}
	engine := all["engines"].(map[string]any)["vscode"].(string)
	return about, fmt.Appendf(nil, xml.Header+`<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id="%s" Version="%s" Publisher="%s"/>
<DisplayName>%s</DisplayName>
<Description xml:space="preserve">%s</Description>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value="%s"/>
<Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
</Properties>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>
<Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
<Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
</Assets>
</PackageManifest>
`, text("name"), version, text("publisher"), text("displayName"), text("description"), engine), nil
}

// semantic makes a version of pollux's one that VS Code takes: three numbers.
func semantic(version string) string {
	if found := regexp.MustCompile(`^v?(\d+\.\d+\.\d+)`).FindStringSubmatch(version); found != nil {
		return found[1]
	}
	return "0.0.0"
}
