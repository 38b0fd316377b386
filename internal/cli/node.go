package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) nodeCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "node",
		Short: "The nodes of an installation",
		Long: `Nodes on one NATS share the work: each conversation is worked on by one of them, and
moves to another when that one stops, is drained or dies.

They are the operator's: of the commands below a client's credentials open none.`,
		Example: `  rollcall node init --dry-run
  rollcall node ls
  rollcall node drain n-01kq`,
		GroupID: groupOperate,
	}, s.nodeInit(), s.nodeLs(), s.nodeDrain())
}

func (s *session) nodeLs() *cobra.Command {
	return s.command(&cobra.Command{
		Use: "ls [flags]", Short: "List the nodes and what they work on",
		Long: `Ls lists the nodes with the partitions of conversations that each works on. A node
that is gone is listed until what it held has lapsed and is taken by another.`,
		Example: `  rollcall node ls
  rollcall node ls --json`,
		Args: args(0, 0),
	}, func(ctx context.Context, _ []string) error {
		c, err := s.connect()
		if err != nil {
			return err
		}
		all, err := c.Nodes(ctx)
		if err != nil {
			return err
		}
		return s.print(all, func(w io.Writer) { nodeTable(w, all) })
	})
}

func nodeTable(w io.Writer, all api.NodesAnswer) {
	rows := [][]string{{"NODE", "STATUS", "PARTITIONS", "VERSION", "UP SINCE", "PLACE"}}
	held := 0
	for _, n := range all.Nodes {
		status, since := n.Status, "-"
		if n.Drained {
			status += ", drained"
		}
		if n.Started != nil {
			since = n.Started.Local().Format("2006-01-02 15:04:05")
		}
		held += len(n.Partitions)
		rows = append(rows, []string{n.Name, status, fmt.Sprint(len(n.Partitions)), orDash(n.Version), since, orDash(n.Place)})
	}
	table(w, rows)
	switch free := domain.Partitions - held; {
	case free == 1:
		fmt.Fprintf(w, "\n1 of %d partitions is on its way to a node\n", domain.Partitions)
	case free > 1:
		fmt.Fprintf(w, "\n%d of %d partitions are on their way to a node\n", free, domain.Partitions)
	}
}

func (s *session) nodeDrain() *cobra.Command {
	var off bool
	c := &cobra.Command{
		Use: "drain NODE [flags]", Short: "Have a node hand over all it works on",
		Long: `Drain has a node set down its open runs and hand every conversation to the others; it
stays up and answers, but takes nothing until --off, also after a restart. NODE is a
name or the beginning of one. The command returns when the node holds nothing.

Stopping a node (Ctrl-C, SIGTERM) hands over by itself: drain is for looking into a
node, or for emptying it well before.`,
		Example: `  rollcall node drain n-01kq
  rollcall node drain n-01kq --off`,
		Args: args(1, 1),
	}
	c.Flags().BoolVar(&off, "off", false, "let it take work again")
	return s.command(c, func(ctx context.Context, args []string) error {
		c, err := s.connect()
		if err != nil {
			return err
		}
		all, err := c.Nodes(ctx)
		if err != nil {
			return err
		}
		name, err := nodeNamed(args[0], all.Nodes)
		if err != nil {
			return err
		}
		was := lineOf(all, name).Drained
		if all, err = c.Drain(ctx, name, off); err != nil {
			return err
		}
		for !off && len(lineOf(all, name).Partitions) > 0 {
			if err := rest(ctx, drainLook); err != nil {
				return err
			}
			if all, err = c.Nodes(ctx); err != nil {
				return err
			}
		}
		return s.print(all, func(w io.Writer) {
			switch {
			case off && was:
				s.say("node %s takes work again", name)
			case off:
				s.say("node %s was not drained", name)
			default:
				s.say("node %s is drained: it works on nothing", name)
			}
			nodeTable(w, all)
		})
	})
}

// drainLook is the time between two looks at a node that is being drained.
const drainLook = 200 * time.Millisecond

// nodeNamed finds the one node that a beginning of a name means.
func nodeNamed(ref string, all []api.NodeLine) (string, error) {
	var found, names []string
	for _, n := range all {
		if n.Name == ref {
			return ref, nil
		}
		names = append(names, n.Name)
		if ref != "" && strings.HasPrefix(n.Name, ref) {
			found = append(found, n.Name)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", domain.Refuse("node-not-found", fmt.Sprintf("there is no node %q", printable(ref)), "there are: "+strings.Join(names, ", "), "rollcall node ls lists them")
	}
	return "", domain.Refuse("node-ambiguous", fmt.Sprintf("%q means several nodes", printable(ref)), strings.Join(found, ", "), "give more of the name")
}

// lineOf is what is told of a node; of one that is not there, nothing.
func lineOf(all api.NodesAnswer, name string) (line api.NodeLine) {
	for _, n := range all.Nodes {
		if n.Name == name {
			line = n
		}
	}
	return line
}
