package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/e2e/model"
	"github.com/pollux-companion/pollux/e2e/terminal"
)

// An Agent is one running agent that is not of Gemini CLI's kin. It is for one goroutine at a time.
type Agent struct {
	*terminal.Terminal
	Model        *model.Server
	t            testing.TB
	prompt, busy string // what the screen shows where something can be typed, and while the agent works
}

func startAgent(t testing.TB, m *model.Server, dir, prompt, busy string, env, args []string) *Agent {
	t.Helper()
	return &Agent{Model: m, t: t, prompt: prompt, busy: busy, Terminal: terminal.Start(t, terminal.Options{Dir: dir, Env: env, Args: args})}
}

// Idle waits until the agent has done what it was asked.
func (c *Agent) Idle() {
	c.t.Helper()
	idle := time.Now() // since when; right after a prompt, and between two answers, it looks idle for a moment
	c.Until("an end of the work", waitTimeout, func(screen string) bool {
		if !strings.Contains(screen, c.prompt) || strings.Contains(screen, c.busy) {
			idle = time.Now()
		}
		return time.Since(idle) > time.Second
	})
}

// Ask types a prompt and returns the model's request that carries it. A prompt that vanishes is typed again: Copilot CLI empties its
// prompt a moment after a refusal.
func (c *Agent) Ask(prompt string, turns ...model.Turn) *model.Request {
	c.t.Helper()
	c.Idle()
	c.Model.Script(prompt, turns...)
	n := len(c.Model.Requests())
	fits := func(r *model.Request) bool { return r.Prompt() == prompt }
	c.Type(prompt)
	pressed, typed := time.Time{}, time.Now()
	c.Until("the model is asked "+prompt, waitTimeout, func(screen string) bool {
		for _, r := range c.Model.Requests()[n:] {
			if fits(r) {
				return true
			}
		}
		if strings.Contains(screen, prompt) && time.Since(pressed) > 2*time.Second {
			c.Keys("Enter")
			pressed = time.Now()
		}
		if !strings.Contains(screen, prompt) && time.Since(typed) > 5*time.Second {
			c.Type(prompt)
			typed = time.Now()
		}
		return false
	})
	return c.Model.Wait(c.t, n, waitTimeout, fits)
}

// Answer waits for a question with that answer chosen, and gives it. A key that comes too early is swallowed, so it is pressed until
// the question has gone.
func (c *Agent) Answer(choice string) {
	c.t.Helper()
	c.Wait(choice, waitTimeout)
	pressed := time.Time{}
	c.Until("an end of the question", waitTimeout, func(screen string) bool {
		if strings.Contains(screen, choice) && time.Since(pressed) > 2*time.Second {
			c.Keys("Enter")
			pressed = time.Now()
		}
		return !strings.Contains(screen, choice)
	})
}
