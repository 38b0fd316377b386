package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// App is what a process gives the command line.
type App struct {
	// Args without the program's name.
	Args []string
	In   io.Reader
	Out  io.Writer
	Err  io.Writer
	// Env looks a variable up.
	Env func(string) (string, bool)
	// Dir is the working directory; empty: the process's.
	Dir     string
	Version string
	// Width is the number of columns of the terminal behind a stream, 0 when
	// there is none.
	Width func(io.Writer) int
	// StartNode starts a node in this process.
	StartNode func(context.Context, NodeConfig) (Node, error)
	// Spawn starts this program again as a process of its own.
	Spawn func(Child) (Process, error)
	// Terminate asks a process to end in good order.
	Terminate func(pid int) error
}

// NodeConfig is what a node is started with.
type NodeConfig struct {
	Settings *config.Settings
	// Join: the node runs on the NATS of the settings.
	Join bool
	// Cluster is the folder of this machine in a cluster.
	Cluster string
	Version string
	Log     *slog.Logger
}

// Node is a running node.
type Node interface {
	// Address opens the node to clients on this machine.
	Address() nodefile.Info
	// Quiet reports since when nothing has been going on; false while work is due.
	Quiet() (since time.Time, quiet bool)
	// Failed tells, once, why the node can store nothing any more.
	Failed() <-chan error
	// Close drains the node and ends it, or gives up with ctx.
	Close(ctx context.Context) error
}

// Child says how the program is started again.
type Child struct {
	Args []string
	// Env are variables to set beside the inherited ones, as NAME=value.
	Env []string
	// Log is the file that gets its output.
	Log string
	// Detached puts it into a session of its own, so that it outlives the
	// terminal.
	Detached bool
}

// Process is a started child.
type Process interface {
	PID() int
	// Done is closed when the child has ended.
	Done() <-chan struct{}
	// Kill ends the child at once, as a crash would.
	Kill() error
	// Stop asks the child to end in good order.
	Stop() error
}

// Run runs the command line and returns the exit code. When ctx is cancelled
// the command lets go: a team that runs on a node goes on.
func (a *App) Run(ctx context.Context) int {
	s := &session{App: a}
	root := s.root()
	root.SetArgs(a.Args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	s.close()
	if err == nil {
		return api.ExitDone
	}
	if ended, ok := errors.AsType[exitError](err); ok {
		return ended.code
	}
	if !s.begun { // cobra did not get as far as a command of ours
		err = usageError(err)
		// Reading the flags may have stopped before this one.
		s.flags.json = s.flags.json || wantsJSON(a.Args)
	}
	// The command's own timeout, or the user's Ctrl-C, however it surfaced.
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	s.fail(err)
	return api.ExitCode(err)
}

// exitError ends the program with a code when all has been said already.
type exitError struct{ code int }

func (exitError) Error() string { return "ended" }

// exit is nil for code 0.
func exit(code int) error {
	if code == 0 {
		return nil
	}
	return exitError{code}
}

// wantsJSON finds --json among arguments that could not be read.
func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == "--json" || a == "--json=true" {
			return true
		}
	}
	return false
}

// together finds in cobra's words which flags exclude each other.
var together = regexp.MustCompile(`none of the others can be; \[(.+)\] were all set`)

func usageError(err error) error {
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		return r
	}
	if m := together.FindStringSubmatch(err.Error()); m != nil {
		return domain.Refuse("usage", "two options exclude each other", "--"+strings.Join(strings.Fields(m[1]), " and --")+" were given", "leave one of them out")
	}
	return domain.Refuse("usage", "the command line cannot be understood", err.Error(), "rollcall --help, or rollcall COMMAND --help")
}

// session is one run of the command line.
type session struct {
	*App
	flags flags
	// begun is true once a command of ours runs: earlier errors are of usage.
	begun  bool
	cfg    *config.Settings
	client *api.Client
	cancel context.CancelFunc
}

// flags that every command takes.
type flags struct {
	json     bool
	timeout  time.Duration
	progress string
	tenant   string
}

// command makes a cobra command of ours: its errors are no errors of usage, and
// --timeout bounds it.
func (s *session) command(c *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, args []string) error {
		s.begun = true
		ctx := c.Context()
		if s.flags.timeout < 0 {
			return domain.Refuse("usage", "--timeout cannot be negative", "", "give a time such as 30s or 5m")
		}
		if !slices.Contains(progressModes, s.flags.progress) {
			return domain.Refuse("usage", fmt.Sprintf("--progress cannot be %q", printable(s.flags.progress)), "", "use "+strings.Join(progressModes, ", "))
		}
		if !domain.ValidToken(s.flags.tenant) {
			return domain.Refuse("tenant-invalid", fmt.Sprintf("%q is no tenant", printable(s.flags.tenant)), "a tenant is 1 to 64 of a-z, 0-9, '-' and '_'", "use main")
		}
		if s.flags.timeout > 0 {
			ctx, s.cancel = context.WithTimeout(ctx, s.flags.timeout)
		}
		if err := s.settings(c); err != nil {
			return err
		}
		if err := s.checkData(c); err != nil {
			return err
		}
		return run(ctx, args)
	}
	return c
}

// checkData refuses a data directory that is something else.
func (s *session) checkData(c *cobra.Command) error {
	if slices.Contains([]string{"version", "errors", "config", "demo", "init", "eval"}, c.Name()) || s.cfg.NATS.Set() && c.Name() != "up" || c.Flags().Changed("export") {
		return nil // it needs none
	}
	if s.cfg.Data == "" {
		return domain.Refuse("data-directory-unusable", "there is no data directory", "none is set, and neither HOME nor XDG_DATA_HOME says where to make one",
			"name one with --data or ROLLCALL_DATA")
	}
	info, err := os.Stat(s.cfg.Data)
	switch {
	case errors.Is(err, syscall.ENOTDIR), err == nil && !info.IsDir():
		return domain.Refuse("data-directory-unusable", fmt.Sprintf("the data directory %s cannot be used", printable(s.cfg.Data)),
			"it is no directory; it is set by "+s.cfg.Origin("data"), "choose another with --data or ROLLCALL_DATA")
	}
	return nil // what else is wrong with it is said by whoever needs it
}

func (s *session) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.cancel != nil {
		s.cancel()
	}
}

func (s *session) env(name string) string {
	v, _ := s.Env(name)
	return v
}
