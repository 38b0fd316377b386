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

func (s *session) approve() *cobra.Command {
	return s.decision(&cobra.Command{
		Use:   "approve CONV [APPROVAL] [flags]",
		Short: "Let a tool call be made that waits for you",
		Long: `Approve lets a call be made that waits for the operator. The first answer counts. APPROVAL
is an id such as a1, which rollcall show lists; it may be left out while only one waits.`,
		Example: `  rollcall approve harbor
  rollcall approve harbor a3 --reason "after the backup"`,
	}, "approved", (*api.Client).Approve)
}

func (s *session) deny() *cobra.Command {
	return s.decision(&cobra.Command{
		Use:   "deny CONV [APPROVAL] --reason TEXT [flags]",
		Short: "Refuse a tool call that waits for you, and say why",
		Long: `Deny refuses a call that waits for the operator. The member is told the reason and goes on
without the call. The first answer counts. APPROVAL may be left out while only one waits.`,
		Example: `  rollcall deny harbor --reason "not on a Friday; write down the steps instead"
  rollcall deny harbor a3 --reason "use the test database"`,
	}, "denied", (*api.Client).Deny)
}

func (s *session) decision(c *cobra.Command, done string, decide func(*api.Client, context.Context, string, string, string) (api.AnswerBody, error)) *cobra.Command {
	var reason string
	c.GroupID, c.Args, c.ValidArgsFunction = groupAct, args(1, 2), s.completeConversation
	c.Flags().StringVar(&reason, "reason", "", "told to the member")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err == nil {
			err = r.now()
		}
		if err == nil {
			err = r.whole()
		}
		if err != nil {
			return err
		}
		if done == "denied" && strings.TrimSpace(reason) == "" {
			return domain.Refuse("usage", "a denial needs a reason", "the member has nothing else to go on", `add --reason "…"`)
		}
		if err := api.CheckText("the reason", reason, api.MaxText); err != nil {
			return err
		}
		client, err := s.connect()
		if err != nil {
			return err
		}
		approval := ""
		if len(args) > 1 {
			approval = args[1]
		} else if approval, err = onlyPending(ctx, client, r); err != nil {
			return err
		}
		a, err := decide(client, ctx, r.conversation, approval, reason)
		if err != nil {
			return err
		}
		return s.answer(a, done)
	})
}

// onlyPending is the one approval that is pending. It is named to the node, so
// that the answer never meets another one that was asked for meanwhile.
func onlyPending(ctx context.Context, c *api.Client, r ref) (string, error) {
	d, err := c.Show(ctx, r.read())
	if err != nil {
		return "", err
	}
	var ids, names []string
	for _, a := range d.Approvals {
		if a.Status == "pending" {
			ids = append(ids, a.ID)
			names = append(names, fmt.Sprintf("%s (%s of %s)", a.ID, oneLine(a.Tool, 40), oneLine(a.Member, 24)))
		}
	}
	switch len(ids) {
	case 0:
		return "", domain.Refuse("approval-not-found", "nothing is decided", "no approval is pending", "rollcall show tells how things stand")
	case 1:
		return ids[0], nil
	}
	return "", domain.Refuse("approval-ambiguous", "nothing is decided", "several approvals are pending", "name one of: "+strings.Join(names, ", "))
}

// showApprovals lists the approvals that are pending, with what would be called.
func showApprovals(w io.Writer, all []api.Approval) {
	head := "\napprovals that wait for you\n"
	for _, a := range all {
		if a.Status != "pending" {
			continue
		}
		fmt.Fprint(w, head)
		head = ""
		fmt.Fprintf(w, "  %s  %s: %s(%s)\n", a.ID, oneLine(a.Member, 24), oneLine(a.Tool, 40), oneLine(a.Arguments, 400))
		if !a.Due.IsZero() {
			fmt.Fprintf(w, "      by default: %s, at %s\n", a.Default, a.Due.Local().Format(time.DateTime))
		}
	}
}
