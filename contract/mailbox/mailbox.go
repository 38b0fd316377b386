// Package mailbox is the contract of long-lived members: they write to each
// other, share a board, sleep when there is nothing to do and are woken by
// mail. Finishing a task and interrupting somebody are two different acts:
// task_complete tells those concerned when they next wake, send_message wakes.
package mailbox

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/contract/toolset"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/prompts"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Contract implements domain.Contract.
type Contract struct{}

var _ domain.Contract = Contract{}

// tools in the order they are shown: the team, mail, the board.
var tools = toolset.Set{
	toolset.New("team_create", "Make the team of this conversation. There is at most one active team.", teamCreate).LeadOnly(),
	toolset.New("team_member_add", "Add a member to the team and wake it with its assignment.", memberAdd).LeadOnly(),
	toolset.New("team_member_remove", "Shut a member down for good: its turn is cancelled and its open tasks are free again.", memberRemove).LeadOnly(),
	toolset.New("team_dissolve", "Dissolve the team: all members are shut down and its open tasks cancelled.", teamDissolve).LeadOnly(),
	toolset.New("send_message", "Write to a member, to Lead, or to user (the operator). It wakes a member and costs it a turn; a message to user is recorded and shown.", sendMessage),
	toolset.New("task_create", "Put a task on the board. It can start when its dependencies are completed.", taskCreate),
	toolset.New("task_update", "Change a task. To claim it: your name as owner and status in_progress. To give it back, or open it again: status claimable.", taskUpdate, taskStatuses),
	toolset.New("task_complete", "Deliver a task you own. Those concerned are notified and what depends on it can start.", taskComplete),
	toolset.New("task_list", "List all tasks with status, owner and dependencies.", taskList),
	toolset.New("task_get", "Read one task in full, with its result.", taskGet),
}

// Name of the contract.
func (Contract) Name() string { return "mailbox" }

// Tools of a role.
func (Contract) Tools(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition {
	return tools.Definitions(role)
}

// Instructions of a role.
func (c Contract) Instructions(role rollcallv1.MemberRole) string {
	if role == rollcallv1.MemberRole_MEMBER_ROLE_LEAD {
		return prompts.Text(c.Name(), prompts.Lead)
	}
	return prompts.Text(c.Name(), prompts.Member)
}

// Policy: a member goes on where it was, with its whole transcript, and a
// message wakes at once.
func (Contract) Policy() domain.Policy {
	return domain.Policy{Memory: rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT}
}

// CheckTeam refuses members that depend on each other: in this contract tasks do.
func (Contract) CheckTeam(members []*rollcallv1.MemberSpec) *domain.Refusal {
	for _, m := range members {
		if len(m.GetDependsOn()) > 0 {
			return domain.Refuse("contract-unfit", "the team is refused", fmt.Sprintf("%s depends on other members, which the contract mailbox does not know", m.GetName()),
				"leave depends_on out and let tasks depend on each other")
		}
	}
	return nil
}

// Call runs a tool.
func (Contract) Call(d *domain.Decision, call domain.Call) (string, *domain.Refusal) {
	return tools.Call(d, call)
}
