package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// joinFlag sets the NATS servers, and says that the node has none of its own.
const joinFlag = "join"

// drainTime bounds the good-ordered stop of a node.
const drainTime = 15 * time.Second

func (s *session) up() *cobra.Command {
	var background bool
	var cluster string
	var idle time.Duration
	c := &cobra.Command{
		Use:   "up [flags]",
		Short: "Run a node in the foreground",
		Long: `Up runs a node until it is told to stop: an embedded NATS server on loopback with
the event log, and the teams of its conversations. What was unfinished goes on.
Ctrl-C or SIGTERM drains it: open runs are set down and taken up by the next node.

With --join the node brings no server: it runs on the NATS at that address, made
ready once with rollcall node init, and shares the work with the other nodes there.
With --cluster it runs one of the three NATS servers of a cluster, as its folder from
rollcall auth init says; the folder DIR/node is for further nodes without a server.`,
		Example: `  rollcall up
  rollcall up --data ./team-data --model gpt-4o-mini
  rollcall up --sync interval
  rollcall up --join nats://nats-1:4222,nats://nats-2:4222 --nats-creds node.creds
  rollcall up --cluster ./auth/a`,
		GroupID: groupBegin, Args: args(0, 0),
	}
	addNodeSettings(c)
	c.Flags().String(joinFlag, "", "run on this NATS, with whatever other nodes are there: URLs, as in NATS_URL")
	c.Flags().StringVar(&cluster, "cluster", "", "run this machine of a cluster: a folder that rollcall auth init made")
	c.Flags().BoolVar(&background, "background", false, "log to stderr only, and exit when idle: how run starts a node")
	c.Flags().DurationVar(&idle, "idle-exit", 0, "exit after this time without work; 0: never (with --background 10m)")
	c.MarkFlagsMutuallyExclusive("cluster", joinFlag)
	return s.command(c, func(ctx context.Context, _ []string) error {
		if background && idle == 0 {
			idle = 10 * time.Minute
		}
		node := NodeConfig{Settings: s.cfg, Join: c.Flags().Changed(joinFlag)}
		if cluster != "" {
			node.Cluster = s.path(cluster)
		}
		return s.runNode(ctx, node, background, idle)
	})
}

func (s *session) runNode(ctx context.Context, start NodeConfig, background bool, idle time.Duration) error {
	if err := s.needModel(); err != nil {
		means := "conversations can be read, no run will succeed"
		if start.Join || start.Cluster != "" {
			means = "this node answers, and takes no work"
		}
		s.say("warning: %s: %s (%s)", api.AsRefusal(err).What, means, api.AsRefusal(err).Try)
	}
	dir := s.cfg.Data
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dataDir(dir, err)
	}
	if !s.cfg.SyncAlways && !background && !start.Join {
		s.say("sync: interval — a crash of the process loses nothing, a power cut may lose the last seconds")
	}
	level := slog.LevelInfo
	if s.flags.progress == quiet {
		level = slog.LevelError
	}
	log := slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: level}))
	start.Version, start.Log = s.Version, log
	node, err := s.StartNode(ctx, start)
	if err != nil {
		return err
	}
	info := node.Address()
	info.PID = os.Getpid()
	if err := nodefile.Write(dir, info); err != nil {
		return errors.Join(dataDir(dir, err), closeNode(ctx, node))
	}
	if s.flags.json {
		s.line(s.Out, upLine{Type: "node", PID: os.Getpid(), Data: dir, Model: s.cfg.Model})
	} else {
		s.say("node is up: process %d, data in %s, model %s", os.Getpid(), dir, cmp.Or(s.cfg.Model, "none"))
	}
	why, failed := untilIdle(ctx, node, idle)
	if failed != nil {
		// Nothing more can be set down: what is committed is all there is.
		log.Error("the node stops", "because", failed)
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = node.Close(stop)
		_ = nodefile.Remove(dir, os.Getpid())
		return failed
	}
	log.Info("the node stops", "because", why)
	return errors.Join(nodefile.Remove(dir, os.Getpid()), closeNode(ctx, node))
}

// upLine is what `up --json` says when the node is ready.
type upLine struct {
	Type  string `json:"type"`
	PID   int    `json:"pid"`
	Data  string `json:"data"`
	Model string `json:"model"`
}

// untilIdle waits until the node is told to stop, or has been quiet long
// enough, and says which; or until it fails.
func untilIdle(ctx context.Context, node Node, idle time.Duration) (why string, failed error) {
	var look <-chan time.Time
	if idle > 0 {
		tick := time.NewTicker(min(idle/4+time.Millisecond, 5*time.Second))
		defer tick.Stop()
		look = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			return "it was told to", nil
		case failed := <-node.Failed():
			return "", failed
		case <-look:
			if since, quiet := node.Quiet(); quiet && time.Since(since) >= idle {
				return fmt.Sprintf("nothing was going on for %v", idle), nil
			}
		}
	}
}

func closeNode(ctx context.Context, node Node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	return node.Close(ctx)
}
