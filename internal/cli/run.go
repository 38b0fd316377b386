package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/prompts"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// defaultContract is that of a run which names none.
const defaultContract = "dag"

// alternatives are words to choose from.
func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// runFlags are the flags of run.
type runFlags struct {
	contract, agent, agents, name string
	input                         []string
	output, budget                string
	detach                        bool
	approve                       []string
	approvalTimeout               time.Duration
	approveByDefault              bool
}

func (s *session) run() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   `run "OBJECTIVE" [flags]`,
		Short: "Give a Lead an objective and follow its team to the end",
		Long: `Run opens a conversation with a Lead, shows on stderr what its team does, and
prints the Lead's answer on stdout. When no node runs here, one is started in the
background, so that Ctrl-C or a lost terminal never stops a team: the run goes on,
and rollcall watch comes back to it. OBJECTIVE "-" is read from stdin.

--agent TYPE asks one expert: a conversation without a team, where that agent type
answers. So does an OBJECTIVE that begins with @TYPE, with --contract none.

It ends when nothing is due: with 0 when the work is done, 6 when the operator must
act, 7 when the team ended in failure, 8 when a budget is used up.`,
		Example: `  rollcall run "summarise ./notes for a newcomer" --input ./notes --output ./out
  rollcall run "review this design" --input design.md --agents team.yaml --budget 2.50
  rollcall run "watch the river with two people" --contract mailbox
  rollcall run "what is in these files?" --contract none --input ./data --json
  rollcall run "is this claim proved?" --agents team.yaml --agent checker
  git diff | rollcall run - --name review --detach`,
		GroupID: groupBegin, Args: args(1, 1),
	}
	addNodeSettings(c)
	c.Flags().StringVar(&f.contract, "contract", "", "how the team works together: "+alternatives(prompts.Contracts())+" (default: the agents file's, else "+defaultContract+")")
	_ = c.RegisterFlagCompletionFunc("contract", cobra.FixedCompletions(prompts.Contracts(), cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
	c.Flags().StringVar(&f.agent, "agent", "", "one agent type answers, alone; with --contract it leads the team (default: the agents file's lead, else general)")
	c.Flags().StringVar(&f.agents, "agents", "", "YAML file of agent types and members")
	c.Flags().StringVar(&f.name, "name", "", "name of the conversation")
	c.Flags().StringArrayVar(&f.input, "input", nil, "file or directory for the Lead's workspace; may be repeated")
	c.Flags().StringVar(&f.output, "output", "", "directory that gets the team's files, as MEMBER/PATH")
	c.Flags().StringVar(&f.budget, "budget", "", "limit, such as 2.50 (money) or 300000t (tokens); 0 is none (default 1.00, or 500000t where no price is known)")
	c.Flags().StringSliceVar(&f.approve, "approve", nil, "tools whose calls wait for rollcall approve or deny, such as team_create,file_delete")
	c.Flags().DurationVar(&f.approvalTimeout, "approval-timeout", 0, "deny what nobody approved within this time (default: wait for ever)")
	c.Flags().BoolVar(&f.approveByDefault, "approve-by-default", false, "approve, not deny, when the time is over")
	c.Flags().BoolVar(&f.detach, "detach", false, "do not follow: print the conversation's id and return")
	return s.command(c, func(ctx context.Context, args []string) error { return s.runObjective(ctx, args[0], f) })
}

func (s *session) runObjective(ctx context.Context, objective string, f runFlags) error {
	open, err := s.opening(objective, f)
	if err != nil {
		return err
	}
	files, err := s.readInput(f.input)
	if err != nil {
		return err
	}
	out, err := openOutput(s.path(f.output))
	if err != nil {
		return err
	}
	defer out.close()
	c, started, err := s.node(ctx)
	if err != nil {
		return err
	}
	if !started && s.scriptGiven() {
		return domain.Refuse("node-runs", "a scripted model can be chosen only when a node starts", "a node is running here ("+s.nodeInfo()+")",
			"stop it, or use another data directory with --data")
	}
	for _, file := range files {
		blob, err := c.Upload(ctx, open.GetConversation(), file.data)
		if err != nil {
			return err
		}
		open.Files = append(open.Files, &rollcallv1.FileChange{Path: file.path, Blob: blob})
	}
	if open.GetName() == "" {
		if open.Name, err = freeName(ctx, c, nameOf(open.GetObjective().GetText())); err != nil {
			return err
		}
	}
	answer, err := c.Open(ctx, open)
	if err != nil {
		return err
	}
	if f.detach {
		return s.print(answer, func(w io.Writer) { fmt.Fprintln(w, answer.Conversation) })
	}
	s.say("conversation %s, %s", shellWord(open.GetName()), open.GetConversation())
	return s.runToEnd(ctx, c, open.GetConversation(), out)
}

// scriptGiven reports whether this command line asks for a scripted model.
func (s *session) scriptGiven() bool { return s.scripted() && s.cfg.Origin("model") == "--model" }

// opening is the conversation to open.
func (s *session) opening(objective string, f runFlags) (*rollcallv1.OpenConversation, error) {
	if objective == "-" {
		data, err := io.ReadAll(io.LimitReader(s.In, api.MaxText+1))
		if err != nil {
			return nil, fmt.Errorf("read the objective from stdin: %w", err)
		}
		objective = strings.TrimRight(string(data), "\n")
	}
	if strings.TrimSpace(objective) == "" {
		return nil, domain.Refuse("text-empty", "the objective is empty", "", `say what is to be done: rollcall run "…"`)
	}
	if err := api.CheckText("the objective", objective, api.MaxText); err != nil {
		return nil, err
	}
	if err := api.CheckText("the name", f.name, api.MaxText); err != nil {
		return nil, err
	}
	if err := checkName(f.name); err != nil {
		return nil, err
	}
	team := config.DefaultTeam()
	if f.agents != "" {
		var err error
		if team, err = config.LoadTeam(s.path(f.agents)); err != nil {
			return nil, err
		}
	}
	o := &rollcallv1.OpenConversation{
		Conversation: api.NewID(), Name: f.name, Contract: f.contract, Objective: &rollcallv1.Body{Text: objective},
	}
	if err := s.compose(o, team, f); err != nil {
		return nil, err
	}
	if err := config.MergeApprovals(o, f.approve, f.approvalTimeout, f.approveByDefault); err != nil {
		return nil, err
	}
	if known := prompts.Contracts(); !slices.Contains(known, o.GetContract()) {
		return nil, domain.Refuse("contract-unknown", "the conversation is not opened", fmt.Sprintf("there is no contract %q", printable(o.GetContract())), "choose one of: "+strings.Join(known, ", "))
	}
	s.chooseModel(o)
	var err error
	o.Budget, err = s.budget(f.budget, o)
	return o, err
}

// chooseModel gives --model to the agents that name none. A node that runs
// already has a default of its own.
func (s *session) chooseModel(o *rollcallv1.OpenConversation) {
	if s.cfg.Origin("model") != "--model" || s.scripted() {
		return
	}
	for _, a := range o.GetAgents() {
		if a.GetModel() == "" {
			a.Model = s.cfg.Model
		}
	}
}

// runToEnd follows a conversation until nothing is due and shows how it ended.
func (s *session) runToEnd(ctx context.Context, c *api.Client, conversation string, out *output) error {
	f := s.follow(c, settled)
	f.revive = s.reviver()
	return s.finish(ctx, f, f.run(ctx, conversation), conversation, out)
}

// reviver starts a node again where this command line may start one.
func (s *session) reviver() func(context.Context) (*api.Client, error) {
	if s.cfg.NATS.Set() {
		return nil
	}
	return func(ctx context.Context) (*api.Client, error) {
		c, _, err := s.node(ctx)
		return c, err
	}
}

// finish shows the end of a followed conversation and gives the exit code.
func (s *session) finish(ctx context.Context, f *following, ended error, conversation string, out *output) error {
	r, err := f.result(ctx, ended)
	if err != nil {
		return err
	}
	r.Conversation = conversation
	if r.Files, err = out.save(ctx, f); err != nil && ended == nil {
		return err
	}
	if s.flags.json {
		s.line(s.Out, r)
		return exit(r.Exit)
	}
	if r.Answer != "" && ended == nil {
		s.put(s.Out, r.Answer)
	}
	s.lastWords(ctx, r, f, out)
	return exit(r.Exit)
}

func (s *session) lastWords(ctx context.Context, r result, f *following, out *output) {
	short := f.called(ctx, r.Conversation)
	if r.Answer != "" && slices.Contains([]int{api.ExitWaiting, api.ExitTeamFailed, api.ExitBudget}, r.Exit) {
		s.say("what stands above is the Lead's last word so far, not the final answer")
	}
	switch r.Status {
	case "done":
		s.say("done: %s, %s, %s", short, count(f.events, "event"), spent(f.state))
	case "interrupted":
		s.say("detached: the team goes on. Come back with: rollcall watch %s", short)
	case "timeout":
		s.say("the time ran out: the team goes on. Come back with: rollcall watch %s", short)
	case "waiting":
		s.say("waiting: %s", r.Why)
		s.say("  try  %s", nextStep(f.state, short))
	case "budget":
		s.say("stopped: %s (%s)", r.Why, spent(f.state))
		s.say("  try  rollcall retry %s --budget …   raises it and goes on", short)
	default:
		s.say("%s: %s", r.Status, strings.TrimPrefix(r.Why, r.Status+": "))
		s.say("  try  %s", afterFailure(f.state, short))
	}
	if len(r.Files) > 0 {
		s.say("%s in %s", count(len(r.Files), "file"), out.dir)
	}
}

// afterFailure is the command that helps a conversation that rests in failure:
// retry where something holds a member, else a word to the Lead.
func afterFailure(state *domain.State, short string) string {
	again := fmt.Sprintf("rollcall send %s \"…\"", short)
	if state != nil && slices.ContainsFunc(state.Members, func(m *domain.Member) bool { return m.Held }) {
		again = "rollcall retry " + short
	}
	return fmt.Sprintf("rollcall show %s   or   %s", short, again)
}

// nextStep is the command that lets a waiting conversation go on.
func nextStep(state *domain.State, short string) string {
	for _, need := range state.Verdict().NeedsOperator {
		switch need.Kind {
		case "approval":
			return fmt.Sprintf("rollcall approve %s %s   or   rollcall deny %s %s --reason \"…\"", short, need.ID, short, need.ID)
		case "task":
			return fmt.Sprintf("rollcall task %s done %s \"…\"", short, need.ID)
		case "question":
			return fmt.Sprintf("rollcall mail %s/user   and   rollcall send %s \"…\" --reply-to %s", short, askedBy(state, short, need.ID), need.ID)
		}
	}
	for _, m := range state.Members {
		if m.Held && !state.Paused {
			return fmt.Sprintf("rollcall retry %s   or   rollcall send %s \"…\"", short, short)
		}
	}
	if state.Paused {
		return "rollcall resume " + short
	}
	return fmt.Sprintf("rollcall show %s   or   rollcall send %s \"…\"", short, short)
}

// askedBy is the member who waits on a question, as a command names it: an answer
// to anybody else would not reach it.
func askedBy(state *domain.State, short, question string) string {
	for _, m := range state.Members {
		for _, w := range m.Waits {
			if w.Message == question {
				return short + shellWord("/"+m.Name)
			}
		}
	}
	return short
}

// shellWord quotes a name so that it can be pasted into a shell.
func shellWord(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(printable(name), "'", `'\''`) + "'"
}
