package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/auth"
)

func (s *session) auth() *cobra.Command {
	return family(&cobra.Command{
		Use:   "auth",
		Short: "Who may do what on NATS",
		Long: `Auth makes the roles of an installation on NATS: nodes, the clients of each tenant,
auditors, and those who run the servers. Each has an account of its own, and nothing is
shared between them but what docs/roles.md lists. A node alone, rollcall up, needs none
of it: it is closed to everyone but its user.`,
		Example: `  rollcall auth init ./roles --server a=10.0.0.1 --server b=10.0.0.2 --server c=10.0.0.3
  rollcall auth add ./roles --tenant acme --auditor alice`,
		GroupID: groupOperate,
	}, s.authInit(), s.authAdd())
}

func (s *session) authInit() *cobra.Command {
	var servers []string
	var who roles
	c := &cobra.Command{
		Use:   "init DIR [flags]",
		Short: "Make the keys, roles and certificates of an installation",
		Long: `Init writes a new directory: credentials for every role, and the keys that made them,
which no machine needs. It never writes over what is there.

With --server, one, three or five times, it has a folder for each machine with all that
rollcall up --cluster needs there, certificates too, and the folder "node" for machines
that run no server. Without, nats.conf is for NATS servers that you run yourself.

A server is NAME=HOST[:CLIENTPORT[/ROUTEPORT]], with ports 4222 and 6222. Without
--tenant there is one, main. An auditor reads the log of all tenants, or as NAME=TENANT
that of one.`,
		Example: `  rollcall auth init ./roles --server a=10.0.0.1 --server b=10.0.0.2 --server c=10.0.0.3
  rollcall auth init ./roles --tenant acme --tenant bakery --auditor alice --auditor bob=acme
  rollcall auth init ./roles --json`,
		Args: args(1, 1),
	}
	c.Flags().StringArrayVar(&servers, "server", nil, "a NATS server of the cluster, as NAME=HOST[:CLIENTPORT[/ROUTEPORT]]")
	who.flags(c)
	return s.command(c, func(_ context.Context, args []string) error {
		plan := auth.Plan{Tenants: who.tenants, Auditors: who.named()}
		if len(plan.Tenants) == 0 {
			plan.Tenants = []string{"main"}
		}
		for _, text := range servers {
			server, err := auth.ParseServer(text)
			if err != nil {
				return err
			}
			plan.Servers = append(plan.Servers, server)
		}
		made, err := auth.Init(s.path(args[0]), plan, time.Now())
		if err != nil {
			return err
		}
		return s.made(made)
	})
}

func (s *session) authAdd() *cobra.Command {
	var who roles
	c := &cobra.Command{
		Use:   "add DIR [flags]",
		Short: "Add tenants and auditors to those of rollcall auth init",
		Long: `Add makes further roles in a directory of rollcall auth init, which must have its
folder keys. What is there stays as it is, so it may be repeated. The servers let the
new ones in when they have the new folders, or the new nats.conf.`,
		Example: `  rollcall auth add ./roles --tenant acme
  rollcall auth add ./roles --auditor alice --auditor bob=acme`,
		Args: args(1, 1),
	}
	who.flags(c)
	return s.command(c, func(_ context.Context, args []string) error {
		if len(who.tenants)+len(who.auditors) == 0 {
			return domain.Refuse("usage", "nothing is to be added", "neither --tenant nor --auditor is given", c.UseLine())
		}
		made, err := auth.Add(s.path(args[0]), who.tenants, who.named())
		if err != nil {
			return err
		}
		return s.made(made)
	})
}

// roles are those that flags name.
type roles struct{ tenants, auditors []string }

func (r *roles) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&r.tenants, "tenant", nil, "a tenant, whose clients get credentials")
	c.Flags().StringArrayVar(&r.auditors, "auditor", nil, "an auditor, of all tenants, or as NAME=TENANT of one")
}

func (r *roles) named() []auth.Auditor {
	var all []auth.Auditor
	for _, text := range r.auditors {
		all = append(all, auth.ParseAuditor(text))
	}
	return all
}

// made tells what there is now and what to do with it.
func (s *session) made(m *auth.Made) error {
	return s.print(m, func(w io.Writer) {
		rows := [][]string{{"ROLE", "NAME", "TENANT", "CREDENTIALS", ""}}
		for _, r := range m.Roles {
			is := ""
			if r.New {
				is = "new"
			}
			rows = append(rows, []string{r.Role, orDash(r.Name), orDash(r.Tenant), r.Creds, is})
		}
		table(w, rows)
		fmt.Fprintln(w)
		for _, f := range m.Folders {
			switch {
			case !f.Changed:
			case f.Server == "":
				fmt.Fprintf(w, "further nodes:  copy %s to each, then rollcall up --cluster on the copy\n", f.Dir)
			default:
				fmt.Fprintf(w, "server %s:  copy %s to its machine, then rollcall up --cluster on the copy\n", f.Server, f.Dir)
			}
		}
		if len(m.Folders) == 0 {
			fmt.Fprintf(w, "NATS servers:  include %s in the configuration of each\n", m.Conf)
		} else {
			fmt.Fprintf(w, "clients:  NATS_URL=%s NATS_CA=%s NATS_CREDS=theirs\n", m.URL, m.CA)
		}
		fmt.Fprintf(w, "keep %s where nothing runs: whoever has it can be anybody\n", filepath.Join(m.Dir, "keys"))
	})
}
