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

// policy is what the CLI's settings say about extensions, of all levels
// together. A workspace's file can only forbid more (SPEC §11.3).
type policy struct {
	off       bool       // no extensions at all (admin.extensions.enabled: false)
	blockGit  bool       // security.blockGitExtensions
	allowed   [][]string // each list of security.allowedExtensions must have a match
	trustOn   bool       // security.folderTrust.enabled
	registry  string     // experimental.extensionRegistryURI
	unreadble []error    // settings files that are not valid: nothing may be assumed
}

// cliSettings is the part of the CLI's settings.json that matters here.
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

// readPolicy merges the levels as the CLI does: system over user over the
// system's defaults; and the workspace's, if that folder is trusted, on top of them but only narrower.
func (s *Store) readPolicy() *policy { return s.policyOf(clisettings.System(os.Getenv)) }

// policyOf is readPolicy with the machine's files, as clisettings.System gives them.
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

// narrow adds what the workspace's own settings forbid.
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

// readSettings reads one settings.json; a missing one is empty. The CLI allows comments in them.
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

// check says whether the settings allow an extension of this source to be
// installed and loaded; nil metadata mean that none were written.
func (p *policy) check(m *Metadata, workDir string) error {
	switch {
	case len(p.unreadble) > 0:
		return p.unreadble[0]
	case p.off:
		return fmt.Errorf("%w: extensions are switched off (admin.extensions.enabled)", ErrPolicy)
	case len(p.allowed) > 0 && m == nil:
		return fmt.Errorf("%w: with security.allowedExtensions every extension needs install metadata, and Gemini CLI does not start without; uninstall it", ErrPolicy)
	case len(p.allowed) > 0:
		return p.checkAllowed(m.Source, workDir)
	case p.blockGit && m != nil && (m.Type == string(source.Git) || m.Type == string(source.Release)):
		return fmt.Errorf("%w: extensions from repositories are blocked (security.blockGitExtensions)", ErrPolicy)
	}
	return nil
}

// checkAllowed matches a source against every list. The CLI matches what the address
// becomes when it is taken for a path (/folder/https:/host/…), on which a pattern that starts with ^https can
// never match; both readings count here.
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
				return fmt.Errorf("%w: the pattern %q in security.allowedExtensions cannot be used (%v); write it without look-around", ErrPolicy, pattern, err)
			}
			found = found || re.MatchString(asPath) || re.MatchString(location)
		}
		if !found {
			return fmt.Errorf("%w: no pattern in security.allowedExtensions matches the source %q", ErrPolicy, location)
		}
	}
	return nil
}

// Servers is what the CLI's settings say about MCP servers in the working folder, and whether the CLI trusts that folder; the
// folder's own settings count only then.
func (s *Store) Servers() (clisettings.Servers, clisettings.Trust) {
	trust, workspace := s.TrustOf(s.workDir), ""
	if trust == clisettings.Trusted {
		workspace = s.workDir
	}
	return clisettings.ReadServers(os.Getenv, filepath.Join(s.gemini, "settings.json"), workspace), trust
}

// TrustOf asks the CLI's trusted folders, by the CLI's own rule. Where they cannot be read nobody has said anything, and
// the user is told.
func (s *Store) TrustOf(dir string) clisettings.Trust {
	trust, err := clisettings.FolderTrust(os.Getenv, s.readPolicy().trustOn, filepath.Join(s.gemini, "trustedFolders.json"), dir)
	if err != nil {
		s.warn(err.Error() + "; until then no folder counts as trusted")
	}
	return trust
}
