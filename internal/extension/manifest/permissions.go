package manifest

import "github.com/pollux-companion/pollux/internal/permission"

// The types of the permissions block. Package permission defines their meaning.
type (
	// Access is how much of the file system a permission covers.
	Access = permission.Access
	// Permissions is what an extension's tools may do.
	Permissions = permission.Permissions
	// Host is one entry of allowedHosts.
	Host = permission.Host
)

// The levels of access, narrowest first.
const (
	None      = permission.None
	Workspace = permission.Workspace
	Home      = permission.Home
	Full      = permission.Full
)
