package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/config"
)

// nodeFlags are settings of a node; only commands that start one take them.
var nodeFlags = []string{"model", "base-url", "sync", "max-concurrent-runs", "warm-members"}

// addNodeSettings gives a command the flags of the settings of a node.
func addNodeSettings(c *cobra.Command) {
	for _, x := range config.All {
		if slices.Contains(nodeFlags, x.Flag) {
			c.Flags().String(x.Flag, "", x.About+fromEnv(x))
		}
	}
}

// addSettings gives every command the flags of all other settings.
func addSettings(root *cobra.Command) {
	for _, x := range config.All {
		if x.Flag != "" && !slices.Contains(nodeFlags, x.Flag) {
			root.PersistentFlags().String(x.Flag, "", x.About+fromEnv(x))
		}
	}
	root.PersistentFlags().String("config", "", "settings file ($ROLLCALL_CONFIG)")
}

func fromEnv(x config.Setting) string {
	if x.Env == "" {
		return ""
	}
	return " ($" + x.Env + ")"
}

// settings reads the settings for a command, its flags first.
func (s *session) settings(c *cobra.Command) error {
	given := map[string]string{}
	names := []string{"config"}
	for _, x := range config.All {
		names = append(names, x.Flag)
	}
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			given[name] = f.Value.String()
		}
	}
	if f := c.Flags().Lookup(joinFlag); f != nil && f.Changed {
		given["nats-url"] = f.Value.String()
	}
	home, _ := s.Env("HOME")
	var err error
	s.cfg, err = config.Load(config.Sources{Flags: given, Env: s.Env, Dir: s.Dir, Home: home})
	if err != nil {
		return err
	}
	// Who may speak for one tenant only need not name it.
	if f := c.Root().PersistentFlags().Lookup("tenant"); s.cfg.NATS.Set() && !f.Changed {
		if tenant, ok := auth.ClientOf(s.cfg.NATS.Creds); ok {
			s.flags.tenant = tenant
		}
	}
	if s.flags.progress != quiet {
		for _, w := range s.cfg.Warnings {
			fmt.Fprintln(s.Err, "warning:", w)
		}
	}
	return nil
}
