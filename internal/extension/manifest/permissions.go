package manifest

import "github.com/pollux-companion/pollux/internal/permission"

// The words of the permissions block. Package permission says what they mean.
type (
	// Access is how much of the file system a right covers.
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
