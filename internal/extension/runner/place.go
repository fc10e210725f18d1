package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/permission"
)

// place finds the tool's workspace and working folder (SPEC E-2). The root folder, the home folder and those above it
// cannot be a workspace. Permissions that need one are then refused.
func place(q Request, p permission.Permissions) (workspace, dir string, err error) {
	means := p.Read == permission.Workspace || p.Write == permission.Workspace
	refuse := func(format string, args ...any) (string, string, error) {
		return "", "", &RefusedError{Why: BecausePlace, Extension: q.Extension, Tool: q.Tool, Text: fmt.Sprintf(format, args...)}
	}
	if !filepath.IsAbs(q.WorkDir) {
		return refuse("the working folder %q is not absolute", q.WorkDir)
	}
	dir, err = filepath.EvalSymlinks(q.WorkDir)
	if err != nil {
		return refuse("the working folder %q is gone; go to another one", q.WorkDir)
	}
	workspace = nearestRoot(dir, q.Roots)
	home, err := os.UserHomeDir()
	if filepath.Dir(workspace) != workspace && (err != nil || !paths.Within(workspace, paths.Real(home))) {
		return workspace, workspace, nil
	}
	if means {
		return refuse("tools of %q work in a workspace, and the folder %q is none: it holds your whole home folder or more; go to a folder of the project's own", q.Extension, workspace)
	}
	return "", dir, nil
}

// nearestRoot returns the deepest root that contains dir, or dir itself.
func nearestRoot(dir string, roots []string) string {
	best := ""
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil && filepath.IsAbs(real) && paths.Within(real, dir) && len(real) > len(best) {
			best = real
		}
	}
	if best == "" {
		return dir
	}
	return best
}

// ownVariables are set by the sandbox. No setting can replace them.
func ownVariables() []string {
	return []string{"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "PYTHONDONTWRITEBYTECODE"}
}

// carried says whether a setting reaches a tool.
func carried(s manifest.Setting) bool {
	return !slices.Contains(ownVariables(), strings.ToUpper(s.EnvVar)) && !strings.ContainsAny(s.EnvVar, "=\x00") && s.EnvVar != ""
}

// settingNames returns the variables that a tool would get if every setting had a value.
func settingNames(m *manifest.Manifest) []string {
	env := []string{"PYTHONDONTWRITEBYTECODE="}
	for _, s := range m.Settings {
		if carried(s) {
			env = append(env, s.EnvVar+"=")
		}
	}
	return env
}

// environment returns what a tool gets beyond the sandbox's own variables: the settings that its extension declares,
// and nothing else of the user's.
func (r *Runner) environment(p *job) ([]string, error) {
	env := []string{"PYTHONDONTWRITEBYTECODE=1"} // bytecode files are not hashed, so they are neither written nor read
	for _, s := range p.content.manifest.Settings {
		if !carried(s) {
			r.o.Log.Warn("a setting would replace a variable of the sandbox's", "extension", p.extension.Name, "variable", s.EnvVar)
			continue
		}
		value, ok, err := r.o.Store.Secret(p.extension, s)
		if err != nil {
			return nil, fmt.Errorf("the setting %q of %q cannot be read: %w", s.Name, p.extension.Name, err)
		}
		if ok && !strings.ContainsRune(value, 0) {
			env = append(env, s.EnvVar+"="+value)
		}
	}
	return env, nil
}
