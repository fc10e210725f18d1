package doctor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/finding"
	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
)

// mode examines whether the CLI looks for a companion at all.
func (x *examination) mode() {
	if x.o.Settings == "" {
		return
	}
	defaults, system := clisettings.System(x.w.Getenv)
	own := filepath.Join(x.w.Dir, ".gemini", "settings.json")
	if own == x.o.Settings {
		own = "" // in the home folder they are the user's own
	}
	on, by := false, ""
	trust, trustErr := clisettings.TrustOf(x.w.Getenv, defaults, x.o.Settings, system, x.w.Dir)
	var passed *bool // what the folder's settings would say
	// Each file outranks the ones before it.
	for _, file := range []string{defaults, x.o.Settings, own, system} {
		enabled, err := (*bool)(nil), error(nil)
		if file != "" {
			enabled, err = switches(file)
		}
		switch {
		case err != nil:
			x.add(broken(file, x.o.Settings, err))
			return
		case enabled == nil:
		case file == own && trust != clisettings.Trusted:
			passed = enabled
		default:
			on, by = *enabled, file
		}
	}
	if trustErr != nil {
		x.add(Finding{ID: "mode", Level: Fault, What: trustErr.Error(), Why: "with such a file the CLI does not start at all", Remark: "mend it at the place that is named"})
		return
	}
	if by == system && system != "" {
		passed = nil
	}
	if on && passed != nil && !*passed && trust == clisettings.Undecided {
		x.add(Finding{ID: "mode", Level: Warning, What: "IDE mode is on, and goes off once the CLI trusts this folder", Why: own + " switches it off, and counts from then on",
			Remark: `set "ide": {"enabled": true} in it, or take "ide" out`})
		return
	}
	if on {
		x.ok("mode", "IDE mode is on", "by "+by)
		return
	}
	x.r.Says = client.Disabled()
	f := Finding{ID: "mode", Level: Fault, What: "IDE mode is off in " + x.o.Settings, Why: "without it the CLI does not look for an editor",
		Mend: "pollux setup", Remark: "or /ide enable in the CLI", Fix: fixMode}
	switch by {
	case "", x.o.Settings, defaults:
		if passed != nil && *passed {
			f.What = own + " switches IDE mode on, and is passed over: the CLI does not trust this folder"
			f.Remark = "that is for every folder; or trust this one in the CLI: /permissions"
		}
	case own:
		f = Finding{ID: "mode", Level: Fault, What: own + " switches IDE mode off", Why: "the folder's settings outrank yours",
			Remark: `set "ide": {"enabled": true} in it, or take "ide" out`}
	default:
		f = Finding{ID: "mode", Level: Fault, What: by + " switches IDE mode off for everybody on this machine", Why: "it outranks every other settings file",
			Remark: "ask who looks after this machine"}
	}
	x.add(f)
}

// switches reads what a file says about IDE mode; nil for nothing. It fails for a switch that the CLI would not understand.
func switches(file string) (enabled *bool, err error) {
	for _, key := range clisettings.Switches() {
		value, err := clisettings.Program.Get(file, key)
		if err != nil {
			return nil, err
		}
		if key == clisettings.Enabled {
			enabled = value
		}
	}
	return enabled, nil
}

// broken reports a settings file with which the CLI does not start at all.
func broken(file, users string, err error) Finding {
	what := "the settings " + file + " cannot be read: "
	if file == users {
		what = "the CLI's settings cannot be read: "
	}
	return Finding{ID: "mode", Level: Fault, What: what + err.Error(), Why: "with such a file the CLI does not start at all", Remark: "mend it at the place that is named"}
}

// A limitation is something that a release of the CLI brought, and older ones lack.
type limitation struct {
	major, minor int
	lacks        string
}

func limitations() []limitation {
	return []limitation{
		{0, 3, "it knows no companion that is a command (pollux relay)"},
		{0, 27, "in a container it dials host.docker.internal even over ssh"},
		{0, 31, "it finds an editor only by the process that it computes, not by the workspace, and knows no GEMINI_CLI_IDE_PID"},
	}
}

// always is what no release can do.
func always() []string {
	return []string{
		"a lost connection does not come back by itself: /ide enable, or pollux setup --relay beforehand",
		`"Allow for this session" counts once while a diff is open in the editor: let the editor accept all of a session`,
	}
}

// version examines which CLI this shell would start, and what that release cannot do.
func (x *examination) version() {
	path, version := x.cli()
	if path == "" {
		x.add(Finding{ID: "version", Level: Note, What: "gemini is not in PATH", Why: "what is said here holds for release 0.61.0", Mend: "npm install -g @google/gemini-cli"})
		return
	}
	major, minor, ok := release(version)
	if !ok {
		x.add(Finding{ID: "version", Level: Note, What: "gemini is " + path + ", of an unknown release", Why: "what is said here holds for release 0.61.0"})
		return
	}
	f := Finding{ID: "version", Level: OK, What: "gemini is release " + version, Details: append([]string{path}, always()...)}
	var lacks []string
	for _, l := range limitations() {
		if major == l.major && minor < l.minor {
			lacks = append(lacks, l.lacks)
		}
	}
	if len(lacks) > 0 {
		f.Level, f.Why, f.Mend = Warning, strings.Join(lacks, "; "), "npm install -g @google/gemini-cli@latest"
		c := x.r.choice
		if major == 0 && minor < 31 && c.Taken >= 0 && !c.Candidates[c.Taken].Own {
			f.Level = Fault
			f.What += fmt.Sprintf(", which takes only a file of process %d, and there is none", c.Editor.PID)
		}
	}
	x.add(f)
}

// cli finds gemini in the world's PATH, and its release beside the script, without starting it.
func (x *examination) cli() (path, version string) {
	for _, dir := range filepath.SplitList(x.w.Getenv("PATH")) {
		for _, name := range []string{"gemini", "gemini.cmd"} {
			candidate := filepath.Join(dir, name)
			if info, err := os.Stat(candidate); err != nil || info.IsDir() {
				continue
			}
			return candidate, versionBeside(candidate)
		}
	}
	return "", ""
}

// maxPackage bounds a package.json that is read, in bytes.
const maxPackage = 1 << 20

func versionBeside(script string) string {
	target := paths.Real(script)
	dirs := []string{filepath.Dir(target)}
	for range 3 {
		dirs = append(dirs, filepath.Dir(dirs[len(dirs)-1]))
	}
	dirs = append(dirs, filepath.Join(filepath.Dir(script), "node_modules", "@google", "gemini-cli"))
	for _, dir := range dirs {
		data, _, err := safefile.ReadRegular(filepath.Join(dir, "package.json"), maxPackage)
		var m struct{ Name, Version string }
		if err == nil && json.Unmarshal(data, &m) == nil && m.Name == "@google/gemini-cli" {
			return m.Version
		}
	}
	return ""
}

func release(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err == nil && err2 == nil
}

// fixes are the kinds of repair that the findings ask for.
func (r *Report) fixes() (all []finding.Fix) {
	for _, f := range r.Findings {
		if f.Fix != fixNone && !slices.Contains(all, f.Fix) {
			all = append(all, f.Fix)
		}
	}
	return all
}
