package extensions

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pollux-companion/pollux/internal/cli/console"
	"github.com/pollux-companion/pollux/internal/cli/tools"
	"github.com/pollux-companion/pollux/internal/extension/bridge"
	"github.com/pollux-companion/pollux/internal/extension/consent"
	"github.com/pollux-companion/pollux/internal/extension/manifest"
	"github.com/pollux-companion/pollux/internal/extension/source"
	"github.com/pollux-companion/pollux/internal/extension/store"
	"github.com/pollux-companion/pollux/internal/words"
)

// installFlags are the flags of install; link and update share some.
type installFlags struct {
	wish       source.Wish
	autoUpdate bool
	yes        bool
	dryRun     bool
	force      bool
}

func (f *installFlags) consent(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "agree beforehand to what the extension may do")
	cmd.Flags().BoolVar(&f.yes, "consent", false, "the same, under Gemini CLI's name")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "fetch, check and show everything, and change nothing")
	_ = cmd.Flags().MarkHidden("consent")
}

func (f *installFlags) replace(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.force, "force", false, "replace an installed extension of the same name; its settings stay")
}

func installCommand(kit *tools.Kit) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install SOURCE",
		Short: "Install an extension after showing what it may do",
		Long: `Fetches an extension, checks it, shows what it is, where it comes from and what
it may do, and places it when you agree. SOURCE is one of

  owner/repo, github:owner/repo       the newest release on GitHub, else the repository
  https://…, ssh://…, git@host:path   a git repository, with your own credentials
  gitlab:group/repo, file:///path     likewise
  https://github.com/o/r/tree/REF/DIR a folder of a repository (or --path DIR)
  ./folder                            a copy of a folder (link follows it instead)
  file.zip, file.tar.gz               an archive, as export writes it`,
		Example: `  pollux extensions install owner/repo --ref v1.2.0
  pollux extensions install ./my-extension --yes
  pollux extensions install git@example.com:team/tools.git --path extensions/lint`,
		Args: console.OneArg("SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return tools.Coded(install(kit, cmd, args[0], &f))
		},
	}
	cmd.Flags().StringVar(&f.wish.Ref, "ref", "", "a branch, tag or commit of a repository")
	cmd.Flags().StringVar(&f.wish.Subdir, "path", "", "the extension's folder inside the source")
	cmd.Flags().BoolVar(&f.autoUpdate, "auto-update", false, "let Gemini CLI update it by itself")
	cmd.Flags().BoolVar(&f.wish.PreRelease, "pre-release", false, "take the newest release even when it is marked as not ready")
	f.replace(cmd)
	f.consent(cmd)
	return cmd
}

func install(kit *tools.Kit, cmd *cobra.Command, text string, f *installFlags) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	src, err := source.Parse(text, dir, f.wish)
	if err != nil {
		return err
	}
	return installSource(kit, cmd, src, f)
}

func installSource(kit *tools.Kit, cmd *cobra.Command, src source.Source, f *installFlags) error {
	if !f.yes && !f.dryRun && console.Terminal(kit.In) == nil {
		return console.Usage(errUnattended) // at once, not after minutes of fetching
	}
	s, err := kit.Store()
	if err != nil {
		return err
	}
	ctx, stop := cancellable(cmd)
	defer stop()
	if src.Kind == source.Git {
		fmt.Fprintf(kit.Err, "fetching %s …\n", words.Printable(src.String()))
	}
	p, err := s.PlanInstall(ctx, src, &store.PlanOptions{AutoUpdate: f.autoUpdate, Replace: f.force, Fetch: fetchOptions(kit)})
	if err != nil {
		return err
	}
	defer p.Close()
	if p.UpToDate {
		kit.Say("%s %s is installed already, from here and with this content; nothing was changed", p.Manifest.Name, p.Manifest.Version)
		return nil
	}
	showPlan(kit, p)
	question, would, did := "Install it?", "installed", "installed"
	if src.Kind == source.Link {
		did = "linked"
	}
	if p.Old != nil {
		noteReplaced(kit, s, p)
		question, would, did = "Replace the installed one?", "replaced", "replaced"
	}
	if f.dryRun {
		kit.Say("%s %s would be %s; nothing was changed", p.Manifest.Name, p.Manifest.Version, would)
		return nil
	}
	if err := tools.NotByAgent(ctx, kit, "agreeing to what an extension may do"); err != nil {
		return err
	}
	if !f.yes {
		yes, err := askYesNo(ctx, kit, question)
		if err != nil {
			return err
		}
		if !yes {
			return console.No(fmt.Errorf("%s was not installed", p.Manifest.Name))
		}
	}
	if err := p.Apply(ctx); err != nil {
		return err
	}
	kit.Say("%s %s %s", did, p.Manifest.Name, p.Manifest.Version)
	hintSettings(ctx, kit, s, p.Manifest.Name)
	hintNext(kit, s, p.Manifest)
	return nil
}

// hintNext says what is left to do before a model can use what was installed.
func hintNext(kit *tools.Kit, s *store.Store, m *manifest.Manifest) {
	if len(m.Tools)+len(m.Docs) == 0 {
		return
	}
	for _, program := range absentPrograms(m) {
		kit.Note(fmt.Sprintf("its tools need %s, which is not in PATH; install it first", program))
	}
	if x, err := s.Get(m.Name); err == nil && kit.ConsentOf(x).State != string(consent.Allowed) {
		kit.Note("models learn of it when you have allowed it: pollux extensions consent grant " + m.Name)
	}
	if !bridge.Installed(s) {
		kit.Note("Gemini CLI knows the tools and documents of extensions by the bridge, which is not there: pollux extensions bridge install")
	}
}

// hintSettings names the settings that still lack a value.
func hintSettings(_ context.Context, kit *tools.Kit, s *store.Store, name string) {
	x, err := s.Get(name)
	if err != nil || len(x.Manifest.Settings) == 0 {
		return
	}
	values, err := s.Values(x)
	if err != nil {
		kit.Note(err.Error())
		return
	}
	for _, v := range values {
		if !v.Set {
			kit.Note(fmt.Sprintf("the setting %q has no value yet; give it one with: pollux extensions config %s %s -", v.Setting.Name, name, v.Setting.EnvVar))
		}
	}
}

func linkCommand(kit *tools.Kit) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "link PATH",
		Short: "Install a folder under development, which stays where it is",
		Long: `Installs an extension as a link: its folder stays where it is, and every
change in it is in force at once. Uninstalling removes the link only.`,
		Example: `  pollux extensions link .`,
		Args:    console.OneArg("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := console.Here(args[0])
			if err != nil {
				return err
			}
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				return console.Usage(fmt.Errorf("%q is not a folder; link takes the extension's folder", args[0]))
			}
			return tools.Coded(installSource(kit, cmd, source.Source{Kind: source.Link, Location: filepath.Clean(path)}, &f))
		},
	}
	f.replace(cmd)
	f.consent(cmd)
	return cmd
}
