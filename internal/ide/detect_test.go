package ide

import (
	"strings"
	"testing"
)

// SPEC I-1, I-2: every entry of the tables is tested: its variable or process alone leads to its IDE, and other
// values do not.
func TestDetectEveryEntry(t *testing.T) {
	fitting := map[string]string{"TERM_PRODUCT": "Trae", "POSITRON": "1", "TERMINAL_EMULATOR": "JetBrains-JediTerm"}
	for _, m := range marks() {
		values := []string{fitting[m.variable], "sublime", "Zed", "vscode", "x"}
		found := false
		for _, value := range values {
			f, ok := Detect(func(name string) string {
				if name == m.variable {
					return value
				}
				return ""
			}, nil)
			if ok != (value != "" && matches(m.variable, value)) {
				t.Errorf("%s=%s: %+v, %v", m.variable, value, f, ok)
			}
			if ok && f.Name == m.name {
				found = true
				if f.DisplayName != m.display || !strings.Contains(f.Why, m.variable) {
					t.Errorf("%s=%s: %+v", m.variable, value, f)
				}
			}
		}
		if !found {
			t.Errorf("no value of %s leads to %s", m.variable, m.name)
		}
	}
	for command, want := range programs() {
		for _, c := range []string{command, "/usr/bin/" + command, `C:\Program Files\X\` + strings.ToUpper(command[:1]) + command[1:] + ".exe"} {
			if f, ok := Detect(func(string) string { return "" }, []string{"bash", c, "init"}); !ok || f.Name != want[0] || f.DisplayName != want[1] || !strings.Contains(f.Why, c) {
				t.Errorf("%s: %+v, %v", c, f, ok)
			}
		}
	}
	jetbrains := func(name string) string { return map[string]string{"TERMINAL_EMULATOR": "JetBrains-JediTerm"}[name] }
	for _, p := range products() {
		if f, ok := Detect(jetbrains, []string{"zsh", "/opt/x/bin/" + p[0]}); !ok || f.Name != p[1] || f.DisplayName != p[2] {
			t.Errorf("%s: %+v, %v", p[0], f, ok)
		}
	}
	vscode := func(name string) string { return map[string]string{"TERM_PROGRAM": "vscode"}[name] }
	for command, want := range map[string]string{"code": "vscode", "code-server": "vscode", "Code Helper": "vscode", "codium": "vscodefork", "windsurf": "vscodefork", "Cursor": "vscodefork", "bash": "vscode"} {
		if f, ok := Detect(vscode, []string{command}); !ok || f.Name != want {
			t.Errorf("%s: %+v, %v", command, f, ok)
		}
	}
}

// matches repeats by hand what a variable of the table accepts.
func matches(variable, value string) bool {
	switch variable {
	case "TERM_PROGRAM":
		return value == "sublime" || value == "Zed" || value == "vscode"
	case "TERM_PRODUCT":
		return value == "Trae"
	case "POSITRON":
		return value == "1"
	case "TERMINAL_EMULATOR":
		return strings.Contains(value, "JetBrains")
	}
	return true
}

// Precedence: an editor's own terminal wins over the terminal that the editor was started in.
func TestDetectPrecedence(t *testing.T) {
	all := marks()
	for i, outer := range all {
		for _, inner := range all[:i] {
			if inner.variable == outer.variable {
				continue
			}
			value := map[string]string{"TERM_PRODUCT": "Trae", "POSITRON": "1", "TERMINAL_EMULATOR": "jetbrains", "TERM_PROGRAM": "vscode"}
			f, ok := Detect(func(name string) string {
				if name == inner.variable || name == outer.variable {
					if v := value[name]; v != "" {
						return v
					}
					return "x"
				}
				return ""
			}, []string{"kate"})
			if !ok || f.Name != inner.name && inner.variable != "TERM_PROGRAM" {
				t.Errorf("%s within %s: %+v", inner.variable, outer.variable, f)
			}
		}
	}
}
