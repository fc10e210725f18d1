package sandbox

// protectedNames are what stays read-only in a writable workspace: through
// them whoever writes them later runs commands as the user. A test holds the
// list to the one that the editor page and the agents' diffs obey.
func protectedNames() []string {
	return []string{".git", ".gemini", ".vscode", ".idea", ".husky", ".envrc", ".mcp.json", ".claude", ".cursor", ".devcontainer"}
}

// protectedHome are the like of a home folder: what a shell, a desktop, git or
// an editor runs at its next start, and programs that the user calls by name.
func protectedHome() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc",
		".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh", ".oh-my-zsh", ".kshrc", ".cshrc", ".tcshrc", ".login",
		".config/fish", ".config/nushell", ".config/autostart", ".config/systemd", ".config/environment.d", ".config/git", ".config/direnv",
		".config/Code", ".config/VSCodium", ".config/Cursor", ".config/nvim", ".config/zed", ".config/JetBrains",
		".gitconfig", ".vimrc", ".vim", ".emacs", ".emacs.d", ".nvim", ".tmux.conf", ".screenrc",
		".local/bin", ".local/share/applications", ".local/share/systemd", "bin", "go/bin", ".cargo/bin", ".deno/bin", ".bun/bin", ".npm-global",
		".pyenv", ".rbenv", ".nvm", ".fnm", ".volta", ".asdf", ".local/share/mise", ".local/share/fnm", ".local/share/uv", ".sdkman", ".rustup",
		".xinitrc", ".xsession", ".xprofile", ".pam_environment", ".Xresources",
		".vscode", ".vscode-server", ".cursor", ".cursor-server", ".idea", ".husky", ".envrc", ".mcp.json", ".git", ".devcontainer",
		"Library/LaunchAgents", "Library/Preferences", ".hammerspoon",
	}
}

// secretStores are masked at every level: what is in them opens other doors.
func secretStores() []string {
	return []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op",
		".config/doctl", ".config/rclone", ".config/containers", ".config/sops", ".config/age", ".config/pollux", ".local/state/pollux",
		".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
		".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".vault-token", ".pgpass", ".my.cnf", ".s3cfg", ".boto",
		".gemini", ".claude", ".claude.json", ".codex", ".config/github-copilot", ".config/anthropic", ".config/openai",
		".local/share/keyrings", ".local/share/kwalletd", ".pki", ".password-store", ".config/keepassxc", ".electrum", ".bitcoin", ".ethereum",
		".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
		"snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome", ".config/Signal", ".config/Slack", ".config/discord",
		".bash_history", ".zsh_history", ".zhistory", ".local/share/fish/fish_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
		".sqlite_history", ".lesshst", ".viminfo", ".histfile", ".sh_history", ".Xauthority", ".ICEauthority",
		"Library/Keychains", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Application Support/BraveSoftware",
		"Library/Application Support/Microsoft Edge", "Library/Safari", "Library/Cookies", "Library/Mail", "Library/Messages", "Library/Containers",
		"Library/Group Containers", "Library/Application Support/AddressBook", "Library/Application Support/1Password",
	}
}
