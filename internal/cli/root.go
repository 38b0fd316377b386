package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// Groups of commands in the help.
const (
	groupBegin   = "begin"
	groupWatch   = "watch"
	groupAct     = "act"
	groupTime    = "time"
	groupOperate = "operate"
)

func (s *session) root() *cobra.Command {
	root := s.command(&cobra.Command{
		Use:   "rollcall",
		Short: "Teams of LLM agents that survive their processes",
		Long: `Rollcall runs teams of LLM agents on an event log. Every change is an event, so a
team goes on after a crash, and anybody can check what it did.`,
		Example: `  rollcall demo
  rollcall run "summarise the files in ./notes" --input ./notes
  rollcall ls`,
		Args: noArgs,
	}, func(ctx context.Context, _ []string) error { return s.glance(ctx) })
	root.Version = s.Version
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("rollcall {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(err) })
	for _, g := range [][2]string{
		{groupBegin, "Begin:"}, {groupWatch, "Watch:"}, {groupAct, "Act:"}, {groupTime, "Time:"}, {groupOperate, "Operate:"},
	} {
		root.AddGroup(&cobra.Group{ID: g[0], Title: g[1]})
	}
	addSettings(root)
	p := root.PersistentFlags()
	p.StringVar(&s.flags.tenant, "tenant", "main", "tenant; not needed with credentials of a tenant's clients")
	p.BoolVar(&s.flags.json, "json", false, "print JSON: one document, or a line each where it follows")
	p.DurationVar(&s.flags.timeout, "timeout", 0, "give up after this time (exit 124); a running team goes on")
	p.StringVar(&s.flags.progress, "progress", "auto", "progress on stderr: auto, tty, plain, json or quiet")
	root.AddCommand(
		s.demo(), s.initCommand(), s.run(), s.up(), s.down(),
		s.ls(), s.show(), s.roll(), s.watch(), s.log(), s.mail(), s.files(),
		s.send(), s.task(), s.interrupt(), s.pause(), s.resume(), s.retry(), s.approve(), s.deny(), s.dissolve(),
		s.replay(), s.verify(), s.export(),
		s.doctor(), s.nodeCommand(), s.auth(), s.eval(), s.config(), s.errors(), s.versionCommand(),
	)
	for _, c := range root.Commands() {
		c.SuggestFor = alsoCalled[c.Name()]
	}
	return root
}

// alsoCalled are words that other programs have for what a command does.
var alsoCalled = map[string][]string{
	"ls":        {"list", "ps"},
	"show":      {"status", "get", "describe"},
	"up":        {"start", "serve"},
	"down":      {"stop", "kill"},
	"log":       {"logs", "events", "history"},
	"watch":     {"follow", "attach"},
	"send":      {"message", "tell", "say"},
	"task":      {"tasks", "board"},
	"interrupt": {"abort", "cancel"},
	"config":    {"settings"},
	"init":      {"new", "example"},
	"approve":   {"allow", "accept", "confirm"},
	"deny":      {"reject", "refuse"},
}

// connect gives the session's client of the node, of this machine or of
// NATS_URL.
func (s *session) connect() (*api.Client, error) {
	if s.client != nil {
		return s.client, nil
	}
	c, err := api.Connect(s.target(), s.flags.tenant, "rollcall command line")
	if err != nil {
		return nil, err
	}
	s.client = c
	return c, nil
}

func (s *session) target() api.Target {
	n := s.cfg.NATS
	if !n.Set() {
		return api.Target{Dir: s.cfg.Data}
	}
	return api.Target{
		URL: n.URL, Creds: n.Creds, NKey: n.NKey, CA: n.CA, Cert: n.Cert, Key: n.Key,
		User: n.User, Password: n.Password.Reveal(), Token: n.Token.Reveal(),
	}
}

// reconnect forgets the client, after the node it spoke to was lost for good.
func (s *session) reconnect() (*api.Client, error) {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
	return s.connect()
}

// nodeInfo is what a local node left about itself, for messages.
func (s *session) nodeInfo() string {
	info, err := nodefile.Read(s.cfg.Data)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("process %d", info.PID)
}
