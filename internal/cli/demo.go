package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	script "github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// demoName is the name of the demo's conversation.
const demoName = "profile"

func (s *session) demo() *cobra.Command {
	var clean bool
	c := &cobra.Command{
		Use:   "demo [flags]",
		Short: "See a team work, lose its node, and go on; needs no key",
		Long: `Demo runs a scripted team of three in a temporary directory, on loopback only. Half-way
it kills its own node with SIGKILL while a model call is under way, starts another,
and the team goes on. In the end the log is checked against the model server's own
record. The second node stays for you to look around and exits by itself when idle.`,
		Example: `  rollcall demo
  rollcall demo --clean
  rollcall demo --json`,
		GroupID: groupBegin, Args: args(0, 0),
	}
	c.Flags().BoolVar(&clean, "clean", false, "stop the node and delete everything at the end")
	return s.command(c, func(ctx context.Context, _ []string) error {
		d := &demoRun{s: s, clean: clean, begun: time.Now()}
		err := d.run(ctx)
		return errors.Join(err, d.tidy(err))
	})
}

// demoRun is one demo. The model server lives in this process, nodes are
// children of it.
type demoRun struct {
	s      *session
	clean  bool
	begun  time.Time
	dir    string
	models *scripted.Server
	node   Process
	client *api.Client

	first  int // process id of the node that was killed
	killed uint64
}

func (d *demoRun) run(ctx context.Context) error {
	d.s.say("A scripted team of three makes a profile page. No key is needed, nothing leaves this machine.")
	var err error
	if d.dir, err = os.MkdirTemp("", "rollcall-demo-"); err != nil {
		return dataDir(os.TempDir(), err)
	}
	d.models, err = scripted.Config{Script: script.Script(), Record: d.record()}.Start()
	if err != nil {
		return err
	}
	if err := d.startNode(ctx); err != nil {
		return err
	}
	d.s.say("node started: process %d, data in %s", d.node.PID(), d.dir)
	d.client, err = api.Connect(api.Target{Dir: d.dir}, "main", "rollcall demo")
	if err != nil {
		return err
	}
	opened, err := d.client.Open(ctx, &rollcallv1.OpenConversation{
		Name: demoName, Contract: "mailbox",
		Objective: &rollcallv1.Body{Text: script.Objective(script.SendUpdate, script.NewField)},
	})
	if err != nil {
		return err
	}
	return d.follow(ctx, opened.Conversation)
}

func (d *demoRun) record() string { return filepath.Join(d.dir, "model-calls.jsonl") }

func (d *demoRun) follow(ctx context.Context, conversation string) error {
	f := d.s.follow(d.client, settled)
	var failed error
	f.seen = func(u api.Update) {
		if d.first == 0 && halfway(f.state) {
			failed = d.crash(ctx, u.Commit.GetVersion(), f.progress)
		}
	}
	f.enough = func(s *domain.State) bool { return failed != nil || settled(s) }
	err := f.run(ctx, conversation)
	if failed != nil {
		return failed
	}
	r, err := f.result(ctx, err)
	if err != nil {
		return err
	}
	return d.end(ctx, f, r)
}

// halfway reports the moment to crash in: one task is done, another is in
// work, and a member's model call is under way.
func halfway(s *domain.State) bool {
	done, working, calling := false, false, false
	for _, t := range s.Tasks {
		done = done || t.Status == rollcallv1.TaskStatus_TASK_STATUS_COMPLETED
		working = working || t.Status == rollcallv1.TaskStatus_TASK_STATUS_IN_PROGRESS
	}
	for _, m := range s.Members {
		calling = calling || !m.IsLead() && m.Run != nil && m.Run.Phase == domain.Calling
	}
	return done && working && calling
}

// crash kills the node while the model server is at work for it, and starts
// another.
func (d *demoRun) crash(ctx context.Context, version uint64, p progress) error {
	d.inFlight(ctx)
	d.first, d.killed = d.node.PID(), version
	if err := d.node.Kill(); err != nil {
		return fmt.Errorf("kill the node: %w", err)
	}
	<-d.node.Done()
	p.done()
	d.s.say("── node %d is killed with SIGKILL at version %d, in the middle of a model call ──", d.first, version)
	if err := d.startNode(ctx); err != nil {
		return err
	}
	d.s.say("── node %d starts on the same directory: members answer the roll, open runs go on ──", d.node.PID())
	return nil
}

// inFlight waits, a moment at most, until the model server has a request in
// hand.
func (d *demoRun) inFlight(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		for _, r := range d.models.Requests() {
			if !r.Ended && r.Member != domain.LeadName {
				return
			}
		}
		if rest(ctx, 2*time.Millisecond) != nil {
			return
		}
	}
}

// startNode starts a node as a process of its own and waits until it is up.
func (d *demoRun) startNode(ctx context.Context) error {
	logFile := filepath.Join(d.dir, nodefile.LOG)
	before := sizeOf(logFile)
	child, err := d.s.Spawn(Child{
		Args: []string{
			"up", "--background", "--idle-exit", "5m", "--config", os.DevNull,
			"--data", d.dir, "--model", "scripted", "--base-url", d.models.URL(),
		},
		// What the user has set is for the user's own teams.
		Env: []string{"NATS_URL=", "NATS_CONTEXT=", "NATS_CREDS=", "OPENAI_API_KEY=demo"},
		Log: logFile, Detached: true,
	})
	if err != nil {
		return fmt.Errorf("start a node: %w", err)
	}
	d.node = child
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		if info, err := nodefile.Read(d.dir); err == nil && info.PID == child.PID() {
			return nil
		}
		select {
		case <-child.Done():
			return notStarted(logFile, before)
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tidy ends what must not stay.
func (d *demoRun) tidy(failed error) error {
	if d.client != nil {
		d.client.Close()
	}
	if d.node != nil && (d.clean || failed != nil) {
		_ = d.node.Stop() // it may have ended by itself
		<-d.node.Done()
	}
	var err error
	if d.models != nil {
		err = d.models.Close()
	}
	if d.clean && failed == nil {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return err
}
