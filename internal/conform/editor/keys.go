package editor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keys are what a user types for each action, as the bytes of a terminal. {name} stands for a value of the action.
type Keys map[string]string

// actions are the names of Keys, with the values that each must hold.
func actions() map[string][]string {
	return map[string][]string{
		"open":     {"{path}"},           // opens a file
		"right":    nil,                  // moves the cursor one character to the right
		"left":     nil,                  // moves it back
		"select":   nil,                  // selects the cursor's line, or a part of it
		"unselect": nil,                  // ends that
		"nofile":   nil,                  // goes to what is no file of the user's
		"review":   nil,                  // shows the proposal that waits; needed where one waits for a user who has just typed
		"edit":     {"{text}"},           // types a text at the start of the proposal at hand
		"accept":   nil,                  // accepts the proposal at hand
		"reject":   nil,                  // rejects it
		"cancel":   nil,                  // answers a question with nothing
		"variable": {"{name}", "{path}"}, // has a shell of the editor's write a variable into a file
		"quit":     nil,                  // ends the editor
	}
}

// ParseKeys reads a JSON object of actions and keys.
func ParseKeys(data []byte) (Keys, error) {
	var k Keys
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("the keys are no JSON object of strings: %w", err)
	}
	known := actions()
	for name, keys := range k {
		values, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("no action is called %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		for _, value := range values {
			if !strings.Contains(keys, value) {
				return nil, fmt.Errorf("the keys of %q lack %s", name, value)
			}
		}
	}
	return k, nil
}

// can returns a skipError unless the keys of all actions are known.
func (p *play) can(names ...string) error {
	for _, name := range names {
		if p.o.Keys[name] == "" {
			if p.o.Keys == nil {
				return skipError("it needs a user: --keys FILE says what one types")
			}
			return skipError("the keys file has no keys for " + name)
		}
	}
	return nil
}

// press types the keys of an action; values are names and values in turn.
func (p *play) press(action string, values ...string) error {
	if err := p.can(action); err != nil {
		return err
	}
	return p.ed.keys(strings.NewReplacer(values...).Replace(p.o.Keys[action]))
}
