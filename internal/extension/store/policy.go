package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/tailscale/hujson"

	"github.com/pollux-companion/pollux/internal/agent/gemini/clisettings"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/paths"
)

// policy is what all levels of the CLI's settings together say about extensions. A workspace's file can only forbid
// more (SPEC §11.3).
type policy struct {
	off       bool       // no extensions at all (admin.extensions.enabled: false)
	blockGit  bool       // security.blockGitExtensions
	allowed   [][]string // each list of security.allowedExtensions must have a match
	trustOn   bool       // security.folderTrust.enabled
	registry  string     // experimental.extensionRegistryURI
	unreadble []error    // invalid settings files: nothing may be assumed
}

// cliSettings is the relevant part of the CLI's settings.json.
type cliSettings struct {
	Security struct {
		BlockGit    *bool    `json:"blockGitExtensions"`
		Allowed     []string `json:"allowedExtensions"`
		FolderTrust struct {
			Enabled *bool `json:"enabled"`
		} `json:"folderTrust"`
	} `json:"security"`
	Admin struct {
		Extensions struct {
			Enabled *bool `json:"enabled"`
		} `json:"extensions"`
	} `json:"admin"`
	Experimental struct {
		Registry string `json:"extensionRegistryURI"`
	} `json:"experimental"`
}

// readPolicy merges the levels as the CLI does: system over user over the system's defaults. A trusted workspace's
// settings can only restrict the result.
func (s *Store) readPolicy() *policy { return s.policyOf(clisettings.System(os.Getenv)) }

// policyOf is readPolicy with the machine's files, as clisettings.System returns them.
func (s *Store) policyOf(defaults, system string) *policy {
	p := &policy{trustOn: true}
	for _, file := range []string{defaults, filepath.Join(s.gemini, "settings.json"), system} {
		if file == "" {
			continue
		}
		set, err := readSettings(file)
		if err != nil {
			p.unreadble = append(p.unreadble, err)
			continue
		}
		over(&p.blockGit, set.Security.BlockGit)
		over(&p.trustOn, set.Security.FolderTrust.Enabled)
		if set.Security.Allowed != nil {
			p.allowed = nil
			if len(set.Security.Allowed) > 0 {
				p.allowed = [][]string{set.Security.Allowed}
			}
		}
		if set.Experimental.Registry != "" {
			p.registry = set.Experimental.Registry
		}
		p.off = p.off || set.Admin.Extensions.Enabled != nil && !*set.Admin.Extensions.Enabled
	}
	s.narrow(p)
	return p
}

// narrow adds what the workspace's settings forbid.
func (s *Store) narrow(p *policy) {
	if s.workDir == s.home {
		return
	}
	set, err := readSettings(filepath.Join(s.workDir, ".gemini", "settings.json"))
	if err != nil {
		return // a workspace's broken file forbids nothing
	}
	p.blockGit = p.blockGit || set.Security.BlockGit != nil && *set.Security.BlockGit
	if len(set.Security.Allowed) > 0 {
		p.allowed = append(p.allowed, set.Security.Allowed)
	}
}

func over(to *bool, from *bool) {
	if from != nil {
		*to = *from
	}
}

// readSettings reads one settings.json, which may contain comments. A missing file is empty.
func readSettings(file string) (cliSettings, error) {
	var set cliSettings
	data, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	if err == nil {
		data, err = hujson.Standardize(data)
	}
	if err == nil {
		err = json.Unmarshal(data, &set)
	}
	if err != nil {
		return set, &brokenFile{file, err.Error(), "repair it: it may hold rules about extensions"}
	}
	return set, nil
}

// check says whether the settings allow an extension from this source to be installed and loaded. nil means that it
// has no metadata.
func (p *policy) check(m *Metadata, workDir string) error {
	switch {
	case len(p.unreadble) > 0:
		return p.unreadble[0]
	case p.off:
		return fmt.Errorf("%w: extensions are switched off (admin.extensions.enabled)", errPolicy)
	case len(p.allowed) > 0 && m == nil:
		return fmt.Errorf("%w: with security.allowedExtensions every extension needs install metadata, and Gemini CLI does not start without; uninstall it", errPolicy)
	case len(p.allowed) > 0:
		return p.checkAllowed(m.Source, workDir)
	case p.blockGit && m != nil && (m.Type == string(source.Git) || m.Type == string(source.Release)):
		return fmt.Errorf("%w: extensions from repositories are blocked (security.blockGitExtensions)", errPolicy)
	}
	return nil
}

// checkAllowed matches a source against every list. The CLI matches the address resolved as a path
// (/folder/https:/host/…), which a pattern with ^https can never match. So pollux tries both forms.
func (p *policy) checkAllowed(location, workDir string) error {
	asPath := location
	if !filepath.IsAbs(asPath) {
		asPath = filepath.Join(workDir, location)
	}
	asPath = paths.Real(asPath)
	for _, list := range p.allowed {
		found := false
		for _, pattern := range list {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return fmt.Errorf("%w: the pattern %q in security.allowedExtensions cannot be used (%v); write it without look-around", errPolicy, pattern, err)
			}
			found = found || re.MatchString(asPath) || re.MatchString(location)
		}
		if !found {
			return fmt.Errorf("%w: no pattern in security.allowedExtensions matches the source %q", errPolicy, location)
		}
	}
	return nil
}

// Servers returns what the CLI's settings say about MCP servers in the working folder, and whether the CLI trusts
// that folder. An untrusted folder's own settings do not count.
func (s *Store) Servers() (clisettings.Servers, clisettings.Trust) {
	trust, workspace := s.TrustOf(s.workDir), ""
	if trust == clisettings.Trusted {
		workspace = s.workDir
	}
	return clisettings.ReadServers(os.Getenv, filepath.Join(s.gemini, "settings.json"), workspace), trust
}

// TrustOf says whether the CLI trusts a folder, by the CLI's own rule. If its list of trusted folders is unreadable,
// no folder counts as trusted, and the user is told.
func (s *Store) TrustOf(dir string) clisettings.Trust {
	trust, err := clisettings.FolderTrust(os.Getenv, s.readPolicy().trustOn, filepath.Join(s.gemini, "trustedFolders.json"), dir)
	if err != nil {
		s.warn(err.Error() + "; until then no folder counts as trusted")
	}
	return trust
}
