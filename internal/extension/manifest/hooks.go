package manifest

import (
	"errors"
	"fmt"
	"io"
)

// hookCommands returns what hooks/hooks.json makes the CLI run, as lines such as "SessionStart: node start.js".
// Consent to an extension covers these lines, so an update that replaces one is noticed. An unreadable file is a line
// too.
func (c *checker) hookCommands(path string) ([]string, []Hook) {
	var data []byte
	unreadable := func(why string) ([]string, []Hook) {
		c.found = append(c.found, placed{at: len(c.data), Finding: Finding{
			Severity: Warning, File: c.shown, Text: path,
			Message: fmt.Sprintf("%q cannot be read: %s", path, why), Fix: "correct it, or remove it",
		}})
		return []string{"what they are could not be read"}, []Hook{{JSON: string(data)}}
	}
	f, err := c.folder.open(path)
	if errors.Is(err, errOutside) {
		c.outside(path)
	}
	if err != nil {
		return unreadable(err.Error())
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil || len(data) > maxBytes {
		return unreadable("it is too big")
	}
	first := ""
	root, complete := parse(data, func(at, _ int, message, _ string) {
		if line, column := place(data, at); first == "" {
			first = fmt.Sprintf("%d:%d: %s", line, column, message)
		}
	})
	if !complete || first != "" {
		return unreadable(first)
	}
	var out []string
	var entries []Hook
	hooks := root.get("hooks")
	if hooks == nil {
		return nil, nil
	}
	for _, event := range hooks.members {
		for _, group := range event.value.items {
			for _, h := range items(group.get("hooks")) {
				out = append(out, hookLine(event.name, group, h))
				entries = append(entries, Hook{event.name, str(group.get("matcher")), string(data[h.start:h.end])})
			}
		}
	}
	return out, entries
}

func hookLine(event string, group, hook *node) string {
	line := event
	if m := str(group.get("matcher")); m != "" && m != "*" {
		line += " of " + m
	}
	command := str(hook.get("command"))
	if command == "" {
		command = "a hook of type " + str(hook.get("type"))
	}
	return line + ": " + command
}

func items(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}
