package extensions

import (
	"maps"
	"slices"
	"strings"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/permission"
	"github.com/pollux-companion/pollux/internal/words"
)

// describeReport is the output of describe --json.
type describeReport struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Path        string `json:"path" jsonschema:"the folder that holds its content, absolute"`

	Installed   bool                `json:"installed"`
	ID          string              `json:"id,omitempty" jsonschema:"Gemini CLI's id of the extension"`
	Source      string              `json:"source,omitempty" jsonschema:"where it came from"`
	SourceType  string              `json:"sourceType,omitempty" jsonschema:"git, local, link or github-release, as Gemini CLI has it; archive"`
	Subdir      string              `json:"subdir,omitempty" jsonschema:"the extension's folder inside the source"`
	Ref         string              `json:"ref,omitempty"`
	ReleaseTag  string              `json:"releaseTag,omitempty"`
	Commit      string              `json:"commit,omitempty"`
	ContentHash string              `json:"contentHash,omitempty" jsonschema:"sha256: and 64 hex digits, over every file of the content"`
	InstalledBy string              `json:"installedBy,omitempty"`
	InstalledAt string              `json:"installedAt,omitempty" jsonschema:"RFC 3339, UTC"`
	AutoUpdate  bool                `json:"autoUpdate,omitempty"`
	Linked      bool                `json:"linked,omitempty" jsonschema:"whether it is a folder under development"`
	Enabled     *enabledReport      `json:"enabled,omitempty"`
	Consent     tools.ConsentReport `json:"consent"`

	Permissions        permission.Permissions `json:"permissions" jsonschema:"what its tools may do; what is not named is denied"`
	PermissionsInWords []string               `json:"permissionsInWords"`
	Tools              []toolReport           `json:"tools"`
	Docs               []docReport            `json:"docs"`
	Examples           []exampleReport        `json:"examples"`
	MCPServers         []serverReport         `json:"mcpServers" jsonschema:"run by Gemini CLI outside any sandbox"`
	Hooks              bool                   `json:"hooks" jsonschema:"whether it has commands that Gemini CLI runs by itself"`
	HookCommands       []string               `json:"hookCommands" jsonschema:"such as SessionStart: node start.js"`
	ContextFiles       []string               `json:"contextFiles"`
	ExcludeTools       []string               `json:"excludeTools"`
	Commands           []string               `json:"commands"`
	Skills             []string               `json:"skills"`
	Agents             []string               `json:"agents"`
	Policies           []string               `json:"policies"`
	Themes             []string               `json:"themes"`
	Settings           []settingReport        `json:"settings"`
	MigratedTo         string                 `json:"migratedTo,omitempty"`
	UnknownFields      []string               `json:"unknownFields"`

	Problem      string              `json:"problem,omitempty" jsonschema:"what keeps it from loading"`
	Findings     manifest.Findings   `json:"findings"`
	Verification *store.Verification `json:"verification,omitempty" jsonschema:"with --verify: what changed since it was installed"`
}

type enabledReport struct {
	User      bool `json:"user" jsonschema:"in the home folder"`
	Workspace bool `json:"workspace" jsonschema:"in the working folder"`
}

func (e *enabledReport) words() string {
	switch {
	case e == nil:
		return ""
	case e.User && e.Workspace:
		return "yes"
	case e.Workspace:
		return "in this folder, not in general"
	case e.User:
		return "not in this folder"
	}
	return "no"
}

type toolReport struct {
	Name        string      `json:"name"`
	Signature   string      `json:"signature" jsonschema:"such as lintFile(file: string)"`
	Description string      `json:"description"`
	Executable  string      `json:"executable"`
	Runtime     string      `json:"runtime"`
	Output      string      `json:"output"`
	Args        []argReport `json:"args"`
}

type argReport struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Optional    bool   `json:"optional,omitempty" jsonschema:"whether a call may leave it out"`
	Default     string `json:"default,omitempty" jsonschema:"what the program gets where it is left out, as JSON text"`
}

type docReport struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file"`
}

type exampleReport struct {
	Prompt   string `json:"prompt"`
	ToolCall string `json:"tool_call"`
}

type serverReport struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Command     string   `json:"command,omitempty"`
	Args        []string `json:"args,omitempty"`
	URL         string   `json:"url,omitempty"`
	Env         []string `json:"env,omitempty" jsonschema:"names only; values may be secrets"`
	Headers     []string `json:"headers,omitempty" jsonschema:"names only; values may be secrets"`
}

type settingReport struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	EnvVar      string `json:"envVar"`
	Sensitive   bool   `json:"sensitive"`
}

// newDescribeReport fills in the manifest's data.
func newDescribeReport(m *manifest.Manifest, found manifest.Findings) describeReport {
	r := describeReport{
		Name: m.Name, Version: m.Version, Description: m.Description, MigratedTo: m.MigratedTo,
		Consent:     tools.NewConsentReport(consent.Verdict{Status: consent.NotAsked}),
		Permissions: m.Permissions, PermissionsInWords: m.Permissions.Sentences(),
		Hooks: m.Found.Hooks, HookCommands: console.List(m.Found.HookCommands), ContextFiles: console.List(m.Found.ContextFiles), ExcludeTools: console.List(m.ExcludeTools),
		Commands: console.List(m.Found.Commands), Skills: console.List(m.Found.Skills), Agents: console.List(m.Found.Agents), Policies: console.List(m.Found.Policies),
		Findings: console.List(found), UnknownFields: []string{}, Tools: []toolReport{},
	}
	for _, t := range m.Tools {
		r.Tools = append(r.Tools, toolReport{t.Name, t.Signature(), t.Description, t.Executable, t.Runtime, t.Output,
			console.Each(t.Args, func(x manifest.Arg) argReport { return argReport(x) })})
	}
	r.Docs = console.Each(m.Docs, func(d manifest.Doc) docReport { return docReport(d) })
	r.Examples = console.Each(m.Examples, func(e manifest.Example) exampleReport { return exampleReport(e) })
	r.MCPServers = console.Each(m.MCPServers, func(s manifest.MCPServer) serverReport {
		return serverReport{s.Name, s.Description, s.Command, s.Args, words.Address(s.URL), slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(s.Headers))}
	})
	r.Themes = console.Each(m.Themes, func(t manifest.Theme) string { return t.Name })
	r.Settings = console.Each(m.Settings, func(s manifest.Setting) settingReport { return settingReport(s) })
	for name := range m.Unknown {
		r.UnknownFields = append(r.UnknownFields, name)
	}
	slices.SortFunc(r.UnknownFields, strings.Compare)
	return r
}
