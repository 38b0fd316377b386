package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
)

// clusterReplicas is how many copies of each stream a cluster keeps where
// nothing else is said.
const clusterReplicas = 3

// initTime bounds node init: streams of three copies take seconds to make.
const initTime = 2 * time.Minute

func (s *session) nodeInit() *cobra.Command {
	var o initOptions
	c := &cobra.Command{
		Use: "init [flags]", Short: "Make a NATS ready for nodes",
		Long: `Init makes the streams and buckets that nodes work on, on the NATS of NATS_URL, and
sets those that are there as this program needs them. It says what it changed; the
second time there is nothing to change. It may run on several machines at once, and
while nodes run. It deletes nothing and never lowers the number of copies.

A node with a server of its own (rollcall up) does this by itself.`,
		Example: `  rollcall node init --nats-url nats://nats-1:4222 --dry-run
  rollcall node init --nats-url nats://nats-1:4222 --nats-creds admin.creds --replicas 3
  rollcall node init --auditor alice --auditor bob=acme`,
		Args: args(0, 0),
	}
	c.Flags().IntVar(&o.replicas, "replicas", 0, "copies of each stream; 0: as they are, at least 3 on a cluster")
	c.Flags().StringArrayVar(&o.auditors, "auditor", nil, "prepare the consumer of an auditor, NAME or NAME=TENANT; may be repeated")
	c.Flags().BoolVar(&o.dry, "dry-run", false, "only say what would be made or changed")
	return s.command(c, func(ctx context.Context, _ []string) error {
		if o.replicas < 0 || o.replicas > 5 {
			return domain.Refuse("usage", fmt.Sprintf("there cannot be %d copies of a stream", o.replicas), "NATS keeps 1 to 5", "use --replicas 3 on a cluster, 1 on a server that stands alone")
		}
		doc, err := s.initialise(ctx, o)
		if err != nil {
			return err
		}
		return s.print(doc, func(w io.Writer) { showInit(w, doc) })
	})
}

type initOptions struct {
	replicas int
	auditors []string
	dry      bool
}

// initDocument is what node init says.
type initDocument struct {
	// Server that was spoken to, as host:port.
	Server string `json:"server"`
	// Cluster it belongs to; empty for a server that stands alone.
	Cluster string `json:"cluster,omitempty"`
	// DryRun: nothing was changed.
	DryRun bool `json:"dry_run"`
	// Changes that were made, or would be; empty when all was as it must be.
	Changes []initChange `json:"changes"`
}

// initChange is one thing that is made or set.
type initChange struct {
	// Stream by its name on the server; a bucket's begins with KV_ or OBJ_.
	Stream string `json:"stream"`
	// Setting that changes; empty when the stream is made.
	Setting string `json:"setting,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`

	text string
}

func (s *session) initialise(ctx context.Context, o initOptions) (initDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, initTime)
	defer cancel()
	if !s.cfg.NATS.Set() {
		return initDocument{}, domain.Refuse("usage", "no NATS is named", "a node with a server of its own, as rollcall up starts one, needs no init",
			"name the servers with --nats-url or NATS_URL, their credentials with --nats-creds")
	}
	nc, err := api.Dial(s.target(), "rollcall node init")
	if err != nil {
		return initDocument{}, err
	}
	defer nc.Close()
	doc := initDocument{Server: nc.ConnectedAddr(), Cluster: nc.ConnectedClusterName(), DryRun: o.dry, Changes: []initChange{}}
	if o.replicas == 0 && doc.Cluster != "" {
		o.replicas = clusterReplicas
	}
	cfg := eventstore.Config{Replicas: o.replicas, EveryEpoch: true}
	changes, err := eventstore.Plan(ctx, nc, cfg)
	if err != nil {
		return doc, err
	}
	var auditors []auth.Auditor
	for _, text := range o.auditors {
		a := auth.ParseAuditor(text)
		c, missing, err := eventstore.PlanAuditor(ctx, nc, a.Name, a.Tenant)
		if err != nil {
			return doc, err
		}
		auditors = append(auditors, a)
		if missing {
			changes = append(changes, c)
		}
	}
	for _, c := range changes {
		doc.Changes = append(doc.Changes, initChange{Stream: c.Stream, Setting: c.Setting, From: c.From, To: c.To, text: c.String()})
	}
	if o.dry {
		return doc, nil
	}
	if err := eventstore.Provision(ctx, nc, cfg); err != nil {
		return doc, err
	}
	for _, a := range auditors {
		if _, err := eventstore.PrepareAuditor(ctx, nc, a.Name, a.Tenant); err != nil {
			return doc, err
		}
	}
	return doc, nil
}

func showInit(w io.Writer, doc initDocument) {
	switch {
	case len(doc.Changes) == 0:
		fmt.Fprintf(w, "nothing to change on %s\n", doc.Server)
		return
	case doc.DryRun:
		fmt.Fprintf(w, "would change on %s:\n", doc.Server)
	default:
		fmt.Fprintf(w, "changed on %s:\n", doc.Server)
	}
	for _, c := range doc.Changes {
		fmt.Fprintf(w, "  %s\n", oneLine(c.text, 300))
	}
}
