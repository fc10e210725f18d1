package client

import "strings"

// An IDE is the CLI's name for the editor.
type IDE struct {
	Name        string // "vscode"
	DisplayName string // "VS Code"
}

// detect names the editor; nil when the CLI says that it supports none here. The file's
// ideInfo outranks everything. Without it, only a few terminals are recognised.
func detect(w *World, config *Config, command string) *IDE {
	if ide, ok := config.IDE(); ok {
		return &ide
	}
	jetbrains := strings.Contains(strings.ToLower(w.Getenv("TERMINAL_EMULATOR")), "jetbrains")
	switch w.Getenv("TERM_PROGRAM") {
	case "vscode", "sublime", "Zed":
	default:
		if w.Getenv("ZED_SESSION_ID") == "" && w.Getenv("XCODE_VERSION_ACTUAL") == "" && !jetbrains {
			return nil
		}
	}
	ide := fromEnviron(w, jetbrains)
	command = strings.ToLower(command)
	switch {
	case jetbrains && ide.Name == "jetbrains":
		for _, product := range jetbrainsProducts() {
			if command != "" && strings.Contains(command, product[0]) {
				return &IDE{product[1], product[2]}
			}
		}
	case !jetbrains && ide.Name == "vscode" && command != "" && !strings.Contains(command, "code"):
		return &IDE{"vscodefork", "IDE"}
	}
	return &ide
}

// fromEnviron follows the CLI's own order, which differs from the order in which pollux recognises a terminal.
func fromEnviron(w *World, jetbrains bool) IDE {
	is := func(name string) bool { return w.Getenv(name) != "" }
	term := w.Getenv("TERM_PROGRAM")
	switch {
	case is("ANTIGRAVITY_CLI_ALIAS"):
		return IDE{"antigravity", "Antigravity"}
	case is("__COG_BASHRC_SOURCED"):
		return IDE{"devin", "Devin"}
	case is("REPLIT_USER"):
		return IDE{"replit", "Replit"}
	case is("CURSOR_TRACE_ID"):
		return IDE{"cursor", "Cursor"}
	case is("CODESPACES"):
		return IDE{"codespaces", "GitHub Codespaces"}
	case is("EDITOR_IN_CLOUD_SHELL"), is("CLOUD_SHELL"):
		return IDE{"cloudshell", "Cloud Shell"}
	case w.Getenv("TERM_PRODUCT") == "Trae":
		return IDE{"trae", "Trae"}
	case is("MONOSPACE_ENV"):
		return IDE{"firebasestudio", "Firebase Studio"}
	case w.Getenv("POSITRON") == "1":
		return IDE{"positron", "Positron"}
	case term == "sublime":
		return IDE{"sublimetext", "Sublime Text"}
	case is("ZED_SESSION_ID"), term == "Zed":
		return IDE{"zed", "Zed"}
	case is("XCODE_VERSION_ACTUAL"):
		return IDE{"xcode", "XCode"}
	case jetbrains:
		return IDE{"jetbrains", "JetBrains IDE"}
	}
	return IDE{"vscode", "VS Code"}
}

// jetbrainsProducts: part of the command, name, display name.
func jetbrainsProducts() [][3]string {
	return [][3]string{
		{"idea", "intellijidea", "IntelliJ IDEA"}, {"webstorm", "webstorm", "WebStorm"},
		{"pycharm", "pycharm", "PyCharm"}, {"goland", "goland", "GoLand"},
		{"studio", "androidstudio", "Android Studio"}, {"clion", "clion", "CLion"},
		{"rustrover", "rustrover", "RustRover"}, {"datagrip", "datagrip", "DataGrip"},
		{"phpstorm", "phpstorm", "PhpStorm"},
	}
}
