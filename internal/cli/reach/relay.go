package reach

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/agent"
	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/client"
	"github.com/pollux-companion/pollux/internal/relay"
)

// Relay makes pollux relay.
func Relay(con *console.Console) *cobra.Command {
	var temp string
	homes := map[string]*string{} // by agent name
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Connect the CLI that starts it to the editor that serves its folder",
		Long: `A CLI starts the relay as its companion and speaks to it over standard input and
output. The relay finds the editor that serves the CLI's folder and passes every
message on. If the editor is restarted, the relay finds it again and shows it the
changes that are still undecided. The CLI stays connected all the time, and hears
only your own decisions. While there is no editor, the CLI asks in the terminal.

After pollux setup --relay, every Gemini CLI and Qwen Code that finds no editor
starts a relay. pollux setup --no-relay takes that back. You never start one by
hand.`,
		Example: `  pollux setup --relay
  GEMINI_CLI_IDE_SERVER_STDIO_COMMAND=pollux GEMINI_CLI_IDE_SERVER_STDIO_ARGS='["relay"]' gemini`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if console.Terminal(con.In) != nil {
				return console.Usage(errors.New("relay is not for a terminal: a CLI starts it and speaks to it; see: pollux relay --help"))
			}
			w := &client.World{}
			if temp != "" {
				if !filepath.IsAbs(temp) {
					return console.Usage(errors.New("--tmp must be an absolute path"))
				}
				w.Temp = filepath.Clean(temp)
			}
			o := relay.Options{In: con.In, Out: con.Out, World: w, Version: console.Version(), Log: con.Log}
			for name, home := range homes {
				if *home == "" {
					continue
				}
				if !filepath.IsAbs(*home) {
					return console.Usage(fmt.Errorf("--%s-home must be an absolute path", name))
				}
				one, _ := agent.Find(name)
				o.Ways = relay.Ways(one.Choose, *home, w)
			}
			return relay.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&temp, "tmp", "", "look for editors with this temp folder (`DIR`): a CLI does not pass its own on")
	for _, one := range agent.All() {
		if one.Relay != nil && one.Choose != nil {
			homes[one.Name] = cmd.Flags().String(one.Name+"-home", "", "look for editors as "+one.Label+" does that keeps its files in `DIR`")
		}
	}
	return cmd
}
