package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/scrub"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

func (s *session) doctor() *cobra.Command {
	var online bool
	c := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check this installation and say how to mend it",
		Long: `Doctor runs small named checks at once, here and on the nodes, and says for each what it
found and what to do. It fails (exit 1) when one fails. With NATS_URL, what is here is
left out: it is nothing to nodes elsewhere. The model is asked only with
--online: one short call, which costs next to nothing.`,
		Example: `  rollcall doctor
  rollcall doctor --online
  rollcall doctor --json`,
		GroupID: groupOperate, Args: args(0, 0),
	}
	addNodeSettings(c)
	c.Flags().BoolVar(&online, "online", false, "ask the model a word, with the settings of here")
	return s.command(c, func(ctx context.Context, _ []string) error {
		out := s.examine(ctx, online)
		if err := s.print(out, func(w io.Writer) { showChecks(w, out) }); err != nil {
			return err
		}
		for _, c := range out.Checks {
			if c.Level == api.Fail {
				return exit(api.ExitFailed)
			}
		}
		return nil
	})
}

// examine runs the checks side by side; they are shown in this order.
func (s *session) examine(ctx context.Context, online bool) api.DoctorAnswer {
	checks := []func(context.Context) []api.Check{s.checkNode}
	// What is here is nothing to a client of nodes elsewhere.
	if !s.cfg.NATS.Set() {
		checks = []func(context.Context) []api.Check{s.checkDirectory, s.checkDamage, s.checkLock, s.checkKey, s.checkNode}
	}
	if online {
		checks = append(checks, s.checkModel)
	}
	found := make([][]api.Check, len(checks))
	var work sync.WaitGroup
	for i, check := range checks {
		work.Go(func() { found[i] = check(ctx) })
	}
	work.Wait()
	out := api.DoctorAnswer{Checks: []api.Check{}}
	for _, f := range found {
		for _, c := range f {
			out.Node = cmp.Or(out.Node, c.Node) // the one that answers comes first
			out.Checks = append(out.Checks, c)
		}
	}
	return out
}

func (s *session) checkDirectory(context.Context) []api.Check {
	c := api.Check{Name: "data directory", Level: api.OK, Found: s.cfg.Data + " can be written"}
	if _, err := os.Stat(s.cfg.Data); os.IsNotExist(err) {
		c.Found = s.cfg.Data + " is not made yet; the first node makes it"
		return []api.Check{c}
	}
	f, err := os.CreateTemp(s.cfg.Data, "doctor-*")
	if err != nil {
		return []api.Check{{Name: c.Name, Level: api.Fail, Found: err.Error(), Fix: "make it writable, or choose another with ROLLCALL_DATA"}}
	}
	_, err = f.Write([]byte("x"))
	if err == nil {
		err = f.Sync()
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	if err != nil {
		return []api.Check{{Name: c.Name, Level: api.Fail, Found: err.Error(), Fix: "free space on its disk, or choose another with ROLLCALL_DATA"}}
	}
	if free, ok := freeSpace(s.cfg.Data); ok && free < littleSpace {
		c.Level, c.Found = api.Warn, fmt.Sprintf("%s, and has %d MiB left", c.Found, free>>20)
		c.Fix = "free space on its disk before it is full: a node that cannot write ends"
	}
	return []api.Check{c}
}

// littleSpace is so little free space that doctor warns of it.
const littleSpace = 256 << 20

// freeSpace is what is free to us on the disk of a directory.
func freeSpace(dir string) (free uint64, ok bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:gosec,unconvert // the types differ by system
}

// checkDamage tells of what nodes cut out of the storage and kept beside.
func (s *session) checkDamage(context.Context) []api.Check {
	c := api.Check{Name: "damage", Level: api.OK, Found: "none was found when the last node started"}
	dir := natsd.DamagedDir(s.cfg.Data)
	all, err := scrub.Known(dir)
	switch {
	case err != nil:
		c.Level, c.Found, c.Fix = api.Fail, err.Error(), "look into "+dir
	case len(all) > 0:
		c.Level, c.Found = api.Fail, fmt.Sprintf("%s cut out of the storage; the newest: %s", count(len(all), "damaged place"), all[len(all)-1])
		c.Fix = "rollcall verify says what is missing; restore a backup; when all is dealt with, move " + dir + " away"
		if !slices.ContainsFunc(all, scrub.Damage.Lost) {
			c.Level, c.Found = api.Warn, fmt.Sprintf("%s found, and nothing is lost by it; the newest: %s", count(len(all), "damaged place"), all[len(all)-1])
			c.Fix = "look after the disk; when rollcall verify is content, move " + dir + " away"
		}
	}
	return []api.Check{c}
}

func (s *session) checkLock(context.Context) []api.Check {
	info, err := nodefile.Read(s.cfg.Data)
	held := nodefile.Held(s.cfg.Data)
	switch {
	case held && err == nil:
		return []api.Check{{Name: "lock", Level: api.OK, Found: fmt.Sprintf("held by process %d", info.PID)}}
	case held:
		return []api.Check{{Name: "lock", Level: api.Warn, Found: "held by a node that is starting or stopping", Fix: "look again in a moment"}}
	case err == nil:
		return []api.Check{{Name: "lock", Level: api.Warn, Found: fmt.Sprintf("free, but process %d left its address: it crashed", info.PID), Fix: "start a node again: it goes on with what was unfinished"}}
	}
	return []api.Check{{Name: "lock", Level: api.OK, Found: "free"}}
}

func (s *session) checkKey(context.Context) []api.Check {
	c := api.Check{Name: "key", Level: api.OK}
	switch {
	case s.scripted():
		c.Found = "not needed: " + s.cfg.Model
	case s.cfg.Key.Set():
		c.Found = "set by " + s.cfg.Origin("api_key")
	case s.cfg.BaseURL != "":
		c.Found = "none, for " + s.cfg.BaseURL
	default:
		c.Level, c.Found, c.Fix = api.Warn, "none here", "export OPENAI_API_KEY=… before the node starts, or see it work without: rollcall demo"
	}
	return []api.Check{c}
}

// maxSkew is how far the clocks of node and command line may differ.
const maxSkew = 2 * time.Second

func (s *session) checkNode(ctx context.Context) []api.Check {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := s.connect()
	var info api.InfoAnswer
	before := time.Now()
	if err == nil {
		info, err = c.Info(ctx)
	}
	if err != nil {
		level := api.Fail
		if _, none := nodefile.Read(s.cfg.Data); none != nil && !s.cfg.NATS.Set() {
			level = api.Warn // nobody started one
		}
		return []api.Check{{Name: "node", Level: level, Found: found(err), Fix: api.AsRefusal(err).Try}}
	}
	checks := []api.Check{{Name: "node", Level: api.OK, Found: fmt.Sprintf("%s answers in %v", info.Node, max(time.Since(before).Round(100*time.Microsecond), 100*time.Microsecond)), Node: info.Node}}
	if info.Version != s.Version {
		checks = append(checks, api.Check{Name: "version", Level: api.Warn, Found: "the node runs " + info.Version + ", this is " + s.Version, Fix: "stop the node and start it with this program"})
	}
	checks = append(checks, skew(info, before, time.Now()))
	// Who may ask for every tenant does; others hear of their own.
	answer, err := c.DoctorOfAll(ctx)
	if refused, ok := errors.AsType[*domain.Refusal](err); ok && refused.Code == "nats-denied" {
		answer, err = c.Doctor(ctx)
	}
	if err != nil {
		return append(checks, api.Check{Name: "node's own checks", Level: api.Fail, Found: found(err), Fix: "look at the node's log"})
	}
	return append(checks, answer.Checks...)
}

func skew(info api.InfoAnswer, before, after time.Time) api.Check {
	at, err := time.Parse(time.RFC3339Nano, info.Time)
	off := max(before.Sub(at), at.Sub(after), 0)
	if err != nil || off > maxSkew {
		return api.Check{Name: "clock", Level: api.Warn, Found: fmt.Sprintf("the node's clock differs by %v", off.Round(time.Millisecond)), Fix: "let both machines keep time with NTP"}
	}
	return api.Check{Name: "clock", Level: api.OK, Found: "agrees with the node's"}
}

// found are the words of what went wrong, for a check.
func found(err error) string {
	r := api.AsRefusal(err)
	return strings.TrimSuffix(r.What+": "+r.Why, ": ")
}

// showChecks shows the checks made here first, then those of each node; where
// there are several, below their names.
func showChecks(w io.Writer, a api.DoctorAnswer) {
	marks := map[string]string{api.OK: "✓", api.Warn: "!", api.Fail: "✗"}
	nodes := []string{""}
	for _, c := range a.Checks {
		if !slices.Contains(nodes, c.Node) {
			nodes = append(nodes, c.Node)
		}
	}
	for _, node := range nodes {
		if node != "" && len(nodes) > 2 {
			fmt.Fprintf(w, "node %s\n", printable(node))
		}
		for _, c := range a.Checks {
			if c.Node != node {
				continue
			}
			fmt.Fprintf(w, "%s %s %s\n", marks[c.Level], pad(c.Name, 16), oneLine(c.Found, 300))
			if c.Fix != "" {
				fmt.Fprintf(w, "  %-16s try: %s\n", "", oneLine(c.Fix, 200))
			}
		}
	}
}
