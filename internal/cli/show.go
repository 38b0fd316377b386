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
	"github.com/rollcall-dev/rollcall/projections"
)

func (s *session) show() *cobra.Command {
	var tools bool
	c := &cobra.Command{
		Use:   "show CONV[/MEMBER][@VERSION] [flags]",
		Short: "Show a conversation: members, tasks, runs, verdict",
		Example: `  rollcall show harbor
  rollcall show harbor@40
  rollcall show harbor/Backend --tools
  rollcall show harbor --json`,
		GroupID: groupWatch, Args: args(1, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().BoolVar(&tools, "tools", false, "the member's tools, and where each comes from")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		if tools && r.member == "" {
			return domain.Refuse("usage", "--tools needs a member", "", "rollcall show CONV/MEMBER --tools")
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		d, err := c.Show(ctx, r.read())
		if err != nil {
			return err
		}
		answer := ""
		if d.Answer != nil && !s.flags.json {
			if answer, err = c.Text(ctx, d.ID, d.Answer.Text); err != nil {
				return err
			}
		}
		return s.print(d, func(w io.Writer) {
			switch {
			case tools:
				showTools(w, d)
			case r.member != "":
				showMember(w, d)
			default:
				s.showConversation(w, d, answer)
			}
		})
	})
}

func (s *session) showConversation(w io.Writer, d api.Detail, answer string) {
	fmt.Fprintf(w, "%s  %s\n", orDash(oneLine(d.Name, 80)), d.ID)
	fmt.Fprintf(w, "contract %s · %s · version %d · %s\n", d.Contract, d.Status, d.Version, usageText(d.Usage))
	if d.Fault != nil {
		fmt.Fprintf(w, "set aside: %s [%s]\n", oneLine(d.Fault.Why, 200), d.Fault.Code)
	}
	fmt.Fprintf(w, "verdict  %s\n", verdictText(d.Verdict))
	fmt.Fprintln(w, "\nmembers")
	rows := [][]string{{"  ID", "NAME", "STATUS", "UNREAD", "RUNS", "AGENT", "LAST"}}
	for _, m := range d.Members {
		rows = append(rows, []string{"  " + m.ID, m.Name, m.Status, fmt.Sprint(m.Unread), fmt.Sprint(runsOf(d, m.ID)), m.AgentType, now(d, m)})
	}
	table(w, rows)
	showTasks(w, d)
	showWaits(w, d)
	showApprovals(w, d.Approvals)
	showGuards(w, d.Guards)
	if answer != "" {
		fmt.Fprintln(w, "\nanswer")
		indentLines(w, "  ", answer)
	}
}

func showMember(w io.Writer, d api.Detail) {
	for _, m := range d.Members {
		fmt.Fprintf(w, "%s  %s\n", m.Name, m.ID)
		fmt.Fprintf(w, "%s · %s since %s · agent type %s\n", m.Role, m.Status, m.Since.Local().Format(time.DateTime), m.AgentType)
		fmt.Fprintf(w, "mail: %d delivered, %d consumed, %d unread\n", m.Mail.Delivered, m.Mail.Consumed, m.Mail.Unread)
		if text := now(d, m); text != "" {
			fmt.Fprintf(w, "last run: %s\n", text)
		}
	}
	fmt.Fprintln(w, "\nruns")
	rows := [][]string{{"  ID", "VERSIONS", "WOKEN BY", "STEPS", "TOOLS", "END", "USED"}}
	for _, r := range d.Runs {
		rows = append(rows, []string{
			"  " + r.ID, fmt.Sprintf("%d-%d", r.From, r.To), strings.Join(r.Consumed, ","),
			fmt.Sprint(r.Steps), fmt.Sprint(r.Tools), r.Reason, usageText(r.Usage),
		})
	}
	table(w, rows)
}

func runsOf(d api.Detail, member string) int {
	n := 0
	for _, r := range d.Runs {
		if r.MemberID == member {
			n++
		}
	}
	return n
}

// now is why the member's open run stands still, else how its last one ended.
func now(d api.Detail, m projections.MemberDetail) string {
	for _, r := range d.Runs {
		if r.MemberID == m.ID && r.Status == "suspended" {
			return "suspended: " + r.Detail
		}
	}
	return last(m)
}

func last(m projections.MemberDetail) string {
	text := m.LastReason
	if m.Held { // before the detail, which a table may cut
		text += " (held: rollcall retry)"
	}
	if m.LastCode != "" {
		text += ": " + m.LastDetail + " [" + m.LastCode + "]"
	}
	return text
}

func verdictText(v api.Verdict) string {
	if v.Why == "" {
		return v.Status
	}
	return v.Status + ": " + oneLine(v.Why, 600)
}

func usageText(u projections.Usage) string {
	text := fmt.Sprintf("%s, %s tokens", count(uint64(u.Calls), "call"), thousands(u.InputTokens+u.OutputTokens))
	if u.Cost > 0 {
		text += ", cost " + u.Cost.String()
	}
	return text
}
