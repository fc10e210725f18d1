package doctor

import "strings"

// An Explanation explains one sentence of the CLI.
type Explanation struct {
	Says   string   `json:"says"`   // the sentence, or its beginning
	Means  string   `json:"means"`  // what has happened
	Causes []string `json:"causes"` // the likely ones first
	Next   string   `json:"next"`   // what to do
}

// Explain looks up a sentence of the CLI, or a part of one with at least eight characters. It ignores surrounding quotation
// marks, and dots for omitted text at either end.
func Explain(text string) (Explanation, bool) {
	text = strings.Trim(squeeze(text), " .…\"'`“”")
	if len(text) < 8 {
		return Explanation{}, false
	}
	for rest, begins := range rests() {
		if strings.Contains(rest, text) || strings.Contains(text, rest) {
			text = squeeze(begins)
		}
	}
	for _, e := range explanations() {
		if says := squeeze(e.Says); strings.Contains(says, text) || strings.Contains(text, says) || strings.Contains(text, says[:min(len(says), 40)]) {
			return e, true
		}
	}
	return Explanation{}, false
}

// rests are endings and beginnings of sentences, which a screen may show on a line of their own.
func rests() map[string]string {
	return map[string]string{
		"please ensure the extension is running":                             "Failed to connect to IDE",
		"please run the cli from one of the following directories":           "Directory mismatch",
		"to use this feature, run gemini cli in one of these supported ides": "IDE integration is not supported",
		"please try reconnecting by running /ide enable":                     "IDE connection error",
	}
}

// squeeze makes texts comparable: capitals, blanks and line ends do not count.
func squeeze(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// Explanations returns every sentence that Explain knows, for help and completion.
func Explanations() []Explanation { return explanations() }

// seeDoctor is the advice for a sentence with many causes.
const seeDoctor = "pollux doctor   in the same terminal and folder says which it is"

func explanations() []Explanation { return append(unconnected(), disconnected()...) }

// unconnected are the sentences of a CLI that found no way to an editor.
func unconnected() []Explanation {
	return []Explanation{
		{
			"Failed to connect to IDE companion extension",
			"The CLI found no companion, or the one that it chose did not answer.",
			[]string{
				"no companion runs: pollux serve, or start the editor with its plugin",
				"the one discovery file that it takes is of a companion that has gone; it tries no other: pollux doctor --fix",
				"the terminal has another TMPDIR than the editor (tmux, nix-shell, ssh)",
				"the file belongs to another user (sudo)",
				"in a container the CLI looks outside it: export REMOTE_CONTAINERS=1",
				"a proxy stands between, with old CLIs: export NO_PROXY=127.0.0.1",
			}, seeDoctor,
		},
		{
			"Directory mismatch. Gemini CLI is running in a different location than the open workspace in the IDE",
			"A companion was found, but the folder that the CLI was started in is not inside the folders that the editor has open.",
			[]string{
				"gemini was started above the project, or in another one: cd into one of the folders that it names",
				"the editor has another folder open: open this one too, or run pollux serve here",
				"the path holds a colon or a percent sign and the companion does not encode it",
			}, seeDoctor,
		},
		{
			"IDE integration is not supported in your current environment",
			"At its start the CLI found neither a discovery file that introduces an editor nor a terminal that it knows. It asks only once.",
			[]string{
				"the companion was started after the CLI: quit gemini and start it again",
				"the companion's file has no ideInfo: update it, or export TERM_PROGRAM=vscode",
				"tmux and the like have replaced TERM_PROGRAM",
			}, seeDoctor,
		},
	}
}

// disconnected are the sentences of a CLI that was connected, or was told not to look, and of other failures on the way.
func disconnected() []Explanation {
	return []Explanation{
		{
			"IDE connection error. The connection was lost unexpectedly",
			"The CLI was connected, and then something went wrong with the connection. It does not come back by itself: diffs stay off until /ide enable.",
			[]string{
				"the companion or its editor has ended or crashed: start it again, then /ide enable",
				"the companion said nothing for five minutes, which Node takes for a dead connection",
				"the companion sent a context that the CLI does not understand",
				"/ide enable within three seconds of a loss falls back once: try again",
			}, "/ide enable in the CLI; when it happens again: pollux conform",
		},
		{
			"IDE connection closed. To reconnect, run /ide enable",
			"The companion that the CLI had started as a command (stdio) has ended.",
			[]string{"the relay was ended or could not start: pollux setup --relay writes its file anew"}, "/ide enable in the CLI",
		},
		{
			"To use this feature, please open a workspace folder in your IDE and try again",
			"The companion says that the editor has no folder open.",
			[]string{"a single file was opened: open its folder"}, seeDoctor,
		},
		{
			"IDE integration is currently disabled. To enable it, run /ide enable",
			"IDE mode is off in the CLI's settings.",
			[]string{"it was never switched on, or switched off by /ide disable"}, "pollux setup   (for good), or /ide enable",
		},
		{
			"IDE integration disabled. To enable it again, run /ide enable",
			"/ide disable was typed, in this CLI or in an earlier one: it is kept in the settings.",
			[]string{"it was meant so; the CLI then asks in the terminal and knows nothing of the editor"}, "/ide enable, or pollux setup",
		},
		{
			"No installer is available for",
			"/ide install, which the question at the start leads to, knows VS Code's family alone. Another editor needs no extension of theirs, but a companion.",
			[]string{"the editor has no companion yet: pollux install, or pollux serve for the page in the browser"}, "pollux install   and then /ide enable",
		},
		{
			"Failed to automatically enable IDE integration. To fix this, run the CLI in a new terminal window",
			"/ide install has installed the extension, and the editor had not started it when the CLI looked.",
			[]string{"the editor has to be started again, or its terminal"}, seeDoctor,
		},
		{
			"Uncaught error in notification handler",
			"The companion sent something that the CLI does not understand, and counts as disconnected since then.",
			[]string{"an open file without a timestamp, a selection that is null: a fault of the companion's"}, "/ide enable in the CLI; pollux conform says what the companion does wrong",
		},
		{
			"Maximum reconnection attempts (2) exceeded",
			"The companion has gone, and was not back within three seconds.",
			[]string{"the companion or its editor has ended: start it again, then /ide enable"}, "/ide enable in the CLI; pollux setup --relay for the next time",
		},
		{
			"Workspace trust has changed due to a change in the IDE connection",
			"The editor says something else about the trust of this folder than the CLI's own record, and the editor wins. A restart does not help, as both say the same again.",
			[]string{"trust the folder in the CLI: /permissions, or in ~/.gemini/trustedFolders.json", "trust it in the editor", "use a companion that does not speak of trust, as pollux does not without an editor's word"}, "make the two agree",
		},
		{
			"MCP error -32001: Request timed out",
			"The companion has not answered within ten minutes (an answer to closeDiff, most often).",
			[]string{"two CLIs in one window of an editor whose companion mixes up their answers", "the companion hangs: restart the editor"}, "quit the CLI and start it again: the lock of its diffs is not given back",
		},
		{
			"🔴 Disconnected",
			"The CLI has no companion. What stands behind the word says why, and can be looked up here as well.",
			[]string{
				"nothing was found, or the companion has gone: start it (pollux serve, or the editor), then /ide enable",
				"IDE mode is off: pollux setup",
			}, seeDoctor,
		},
		{
			"SSE stream disconnected: TypeError: terminated",
			"The stream of the companion's messages was cut: it ended or crashed.",
			[]string{"the companion or its editor has ended: start it again, then /ide enable"}, "/ide enable in the CLI",
		},
	}
}
