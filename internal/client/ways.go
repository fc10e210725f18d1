package client

import (
	"encoding/json"
	"errors"
)

// Workspace returns why the CLI does not connect from its folder, nil when it would. The file's workspacePath counts
// first, then the environment's.
func (c *Choice) Workspace(w *World) error {
	w = w.orHere()
	path, given, err := c.Config.Workspace()
	if err != nil {
		return err
	}
	if !given {
		path, given = w.lookup("GEMINI_CLI_IDE_WORKSPACE_PATH")
	}
	mismatch, err := validate(w, path, given)
	return errors.Join(mismatch, err)
}

// Ways returns the ways that the CLI tries, in order: the port and the command of the one file, then those of the
// environment. The CLI does not try another file when a port is dead.
func (c *Choice) Ways(w *World) []Way {
	w = w.orHere()
	token, ok := c.Config.token()
	if !ok {
		token = w.Getenv("GEMINI_CLI_IDE_AUTH_TOKEN")
	}
	var ways []Way
	http := func(port, from string) {
		if n := parsePort(port); n != 0 {
			ways = append(ways, Way{Host: w.Host(), Port: n, Token: token, From: from})
		}
	}
	stdio := func(command string, args []string, from string) {
		ways = append(ways, Way{Command: command, Args: args, Dir: w.Dir, Env: stdioEnv(w), From: from})
	}
	if c.Config != nil {
		if port, ok := c.Config.Port(); ok && truthy(c.Config.members["port"]) {
			http(port, "the discovery file")
		}
		if command, args, ok := c.Config.stdio(); ok {
			stdio(command, args, "the discovery file")
		}
	}
	if port := w.Getenv("GEMINI_CLI_IDE_SERVER_PORT"); port != "" {
		http(port, "GEMINI_CLI_IDE_SERVER_PORT")
	}
	if command := w.Getenv("GEMINI_CLI_IDE_SERVER_STDIO_COMMAND"); command != "" {
		stdio(command, stdioArgs(w), "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND")
	}
	return ways
}

// stdioArgs reads a JSON array of strings; anything else counts as empty.
func stdioArgs(w *World) []string {
	v, err := parseJSON([]byte(w.Getenv("GEMINI_CLI_IDE_SERVER_STDIO_ARGS")))
	list, ok := v.([]any)
	if err != nil || !ok {
		return nil
	}
	args := make([]string, len(list))
	for i, e := range list {
		text, ok := e.(string)
		if !ok {
			b, _ := json.Marshal(e)
			text = string(b)
		}
		args[i] = text
	}
	return args
}
