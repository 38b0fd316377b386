package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// downWait bounds the wait for a node to drain: a little more than it takes at
// most by itself.
const downWait = drainTime + 5*time.Second

func (s *session) down() *cobra.Command {
	c := &cobra.Command{
		Use:   "down [flags]",
		Short: "Stop the node of this data directory",
		Long: `Down stops the node that runs in the data directory, in the background or not, and
waits until it is gone. Open runs are set down and go on with the next node: rollcall
up, or rollcall run. It is how a node gets new settings.`,
		Example: `  rollcall down
  rollcall down --data ./team-data`,
		GroupID: groupBegin, Args: args(0, 0),
	}
	return s.command(c, func(ctx context.Context, _ []string) error {
		dir := s.cfg.Data
		info, err := nodefile.Read(dir)
		if err != nil || !nodefile.Held(dir) {
			return domain.Refuse("node-unreachable", "no node is running here", "nobody holds the lock of "+dir, "name another data directory with --data or ROLLCALL_DATA")
		}
		if err := s.Terminate(info.PID); err != nil {
			return domain.Refuse("node-not-stopped", fmt.Sprintf("process %d cannot be stopped", info.PID), err.Error(), "stop it by hand")
		}
		ctx, cancel := context.WithTimeout(ctx, downWait)
		defer cancel()
		for nodefile.Held(dir) {
			if err := rest(ctx, 20*time.Millisecond); err != nil {
				return domain.Refuse("node-not-stopped", fmt.Sprintf("process %d is still running", info.PID), "it was told to stop and drains", "wait, or stop it by hand")
			}
		}
		return s.print(downDocument{PID: info.PID, Data: dir}, func(w io.Writer) {
			fmt.Fprintf(w, "stopped process %d\n", info.PID)
		})
	})
}

// downDocument is what `down --json` prints.
type downDocument struct {
	PID  int    `json:"pid"`
	Data string `json:"data"`
}
