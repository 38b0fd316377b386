// Package node puts one Rollcall process together: the embedded NATS server,
// the event store on it, the read models, the model
// client, the tools, the actors and the service that the outside speaks to.
//
// It is wiring only: what each part does is in its own package. Read next:
// package actors.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/contract/subagent"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
	"github.com/rollcall-dev/rollcall/internal/tool"
	"github.com/rollcall-dev/rollcall/internal/tool/files"
	"github.com/rollcall-dev/rollcall/internal/tool/mail"
	"github.com/rollcall-dev/rollcall/projections"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Config is what a node is made of.
type Config struct {
	Settings *config.Settings
	// Join: the node runs on the NATS that the settings name.
	Join bool
	// Cluster is the folder of a machine of a cluster; see package auth.
	Cluster string
	// Version of the program.
	Version string
	// Log gets what the operator of the node should know.
	Log *slog.Logger
}

// Node is a running node. It owns everything it started; Close ends it.
type Node struct {
	// name is the node's lasting name.
	name string
	// address is how clients on this machine reach its NATS.
	address nodefile.Info
	log     *slog.Logger
	actors  *actors.Node
	failed  chan error
	// undo ends what was started, last first.
	undo []func(context.Context) error
}

// Start brings a node up in its data directory, or leaves nothing behind.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	n := &Node{log: cfg.Log, failed: make(chan error, 1)}
	if err := n.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, n.Close(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// aloneTTL is how long the leases of a node with its own server last. The lock
// of the data directory keeps every other node out, and this one takes its own
// claims over at once, so a short lease would only make a busy machine lose its
// own partitions.
const aloneTTL = time.Minute

func (n *Node) start(ctx context.Context, cfg Config) error {
	set := cfg.Settings
	models, modelName, err := n.models(set)
	if err != nil {
		return err
	}
	g, err := n.stand(ctx, cfg)
	if err != nil {
		return err
	}
	log, err := eventstore.Open(ctx, g.nc, g.store)
	if err != nil {
		return err
	}
	if !g.alone { // a data directory may be copied, and moved, with all that is in it
		if err := n.nameIsFree(ctx, log, place(set.Data)); err != nil {
			return err
		}
	}
	db, err := n.follow(ctx, set.Data, log)
	if err != nil {
		return err
	}
	store := eventstore.Guard(log, db, cfg.Log)
	feed := api.NewFeed(g.nc, store, cfg.Log)
	n.onClose(func(context.Context) error { feed.Close(); return nil })

	rules := &domain.Rules{Contracts: contract.All(), Delegation: subagent.Delegation{}, DefaultModel: modelName, Prices: set.Prices, Limits: set.Limits, Origins: map[string]string{}}
	var tools []tool.Tool
	for _, kit := range []struct {
		name  string
		tools []tool.Tool
	}{{"files", files.New(store)}, {"mail", []tool.Tool{mail.New(store)}}} {
		for _, t := range kit.tools {
			rules.Tools = append(rules.Tools, t.Definition())
			rules.Origins[t.Definition().GetName()] = kit.name
		}
		tools = append(tools, kit.tools...)
	}
	if err := n.act(ctx, cfg, store, g, models, rules, tools, feed); err != nil {
		return err
	}
	service, err := api.Serve(g.nc, api.Config{
		Store: store, Views: views{db, n.actors}, Roller: roller{n.actors}, Cluster: &cluster{store: log, node: n.actors, name: n.name},
		Doctor: &doctor{node: n, settings: set, store: log, views: db, nc: g.nc, footing: g.footing},
		Rules:  rules, Node: n.name, Version: cfg.Version, Touch: n.actors.Touch, Log: cfg.Log,
		Settings: api.SettingsOf(set.Model, set.BaseURL, set.Key.Reveal(), set.SyncAlways),
	})
	if err != nil {
		return err
	}
	n.onClose(func(context.Context) error { return service.Close() })
	return nil
}

// models makes the model client; a script is served by the node itself.
func (n *Node) models(set *config.Settings) (model.Client, string, error) {
	if set.Model == "" {
		return noModel{}, "none", nil
	}
	path, isScript := config.Script(set.Model)
	if !isScript {
		c := model.New(model.Config{BaseURL: set.BaseURL, Key: set.Key.Reveal()})
		n.onClose(func(context.Context) error { c.Close(); return nil })
		return c, set.Model, nil
	}
	script, err := scripted.Load(path)
	if err != nil {
		return nil, "", scripted.Unfit(err)
	}
	server, err := scripted.Start(script, "")
	if err != nil {
		return nil, "", err
	}
	n.onClose(func(context.Context) error { return server.Close() })
	c := model.New(model.Config{BaseURL: server.URL()})
	n.onClose(func(context.Context) error { c.Close(); return nil })
	return c, "scripted", nil
}

// viewsPause is how long the read models rest after their file failed.
const viewsPause = 5 * time.Second

// follow opens the read models and keeps them up with the log.
func (n *Node) follow(ctx context.Context, dir string, store eventstore.Log) (*projections.DB, error) {
	views, err := projections.Open(ctx, filepath.Join(dir, "views.db"))
	if err != nil {
		return nil, domain.Refuse("data-directory-unusable", "the data directory "+dir+" cannot be used", err.Error(),
			"free space on its disk and see that it can be read and written, or choose another with --data")
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for running.Err() == nil {
			if err := views.Run(running, store); running.Err() == nil {
				n.log.Error("the read models cannot be written and are tried again: meanwhile ls and show fall behind", "error", err)
				wait(running, viewsPause)
			}
		}
	}()
	n.onClose(func(context.Context) error { stop(); <-done; return views.Close() })
	return views, nil
}

func (n *Node) act(ctx context.Context, cfg Config, store eventstore.Store, g ground, models model.Client, rules *domain.Rules, tools []tool.Tool, feed actors.Feed) error {
	a, err := actors.Start(ctx, actors.Config{
		Node: n.name, Store: store, Models: models, Tools: tools, Rules: rules, Feed: feed, Log: cfg.Log,
		MaxRuns: cfg.Settings.MaxRuns, WarmMembers: cfg.Settings.WarmMembers,
		Alone: g.alone, ReadsOnly: !g.alone && cfg.Settings.Model == "", Life: ulid.Make().String(), Place: place(cfg.Settings.Data), Version: cfg.Version,
		Answer: func(subject string, answer *rollcallv1.Answer) {
			data, err := proto.Marshal(answer)
			if err == nil {
				err = g.nc.Publish(subject, data)
			}
			if err != nil {
				n.log.Warn("an answer could not be sent; its asker will ask again", "command", answer.GetCommand(), "error", err)
			}
		},
	})
	if err != nil {
		return err
	}
	n.actors = a
	n.onClose(a.Close)
	return nil
}

// Address opens the node to clients on this machine.
func (n *Node) Address() nodefile.Info { return n.address }

// Quiet reports since when nothing has been going on; false while work is due.
func (n *Node) Quiet() (since time.Time, quiet bool) { return n.actors.Quiet() }

// closeGrace is what each part gets to end when the time for all is over: a
// NATS that is away must not keep a node from ending, and the server's files
// shall be closed all the same.
const closeGrace = 2 * time.Second

// Close suspends open runs, lets go of the partitions and ends everything the
// node started. It returns when all is ended, or soon after ctx ended.
func (n *Node) Close(ctx context.Context) error { return n.undoTo(ctx, 0) }

// undoTo ends what was started since there were so many things to undo.
func (n *Node) undoTo(ctx context.Context, left int) error {
	var errs []error
	for i := len(n.undo) - 1; i >= left; i-- {
		ended := make(chan error, 1)
		go func() { ended <- n.undo[i](ctx) }()
		var err error
		select {
		case err = <-ended:
		case <-ctx.Done():
			select {
			case err = <-ended:
			case <-time.After(closeGrace):
				err = fmt.Errorf("close node: a part of it does not end: %w", ctx.Err())
			}
		}
		errs = append(errs, err)
	}
	n.undo = n.undo[:min(left, len(n.undo))]
	return errors.Join(errs...)
}

func (n *Node) onClose(fn func(context.Context) error) { n.undo = append(n.undo, fn) }

// lastingName is the node's name, made once for a data directory: by it a
// restarted node takes its own claims over at once.
func lastingName(dir string) (string, error) {
	path := filepath.Join(dir, "node.name")
	data, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		return name, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the node's name: %w", err)
	}
	name := "n-" + strings.ToLower(ulid.Make().String())
	if err := os.WriteFile(path, []byte(name+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the node's name: %w", err)
	}
	return name, nil
}
