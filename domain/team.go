package domain

import (
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// CreateTeam makes the active team. A conversation has at most one at a time.
func (d *Decision) CreateTeam(name, goal string) (*Team, *Refusal) {
	s := d.State()
	if t := s.ActiveTeam(); t != nil {
		return nil, Refuse("team-exists", "no second team is created", fmt.Sprintf("team %s (%s) is active", t.ID, t.Name), "work with it, or dissolve it first with team_dissolve")
	}
	name, refusal := title("the team's name", name)
	if refusal != nil {
		return nil, refusal
	}
	if name == "" {
		return nil, Refuse("text-empty", "the team is not created", "its name is empty", "give it a name")
	}
	if refusal := checkText("the team's goal", goal, MaxTaskText); refusal != nil {
		return nil, refusal
	}
	id := nth(teamPrefix, uint64(len(s.Teams)+1))
	d.emit(&rollcallv1.TeamCreated{Team: id, Name: name, Goal: goal})
	return s.Team(id), nil
}

// AddMember adds a member to the active team and wakes it with its brief.
func (d *Decision) AddMember(name, agent, brief string) (*Member, *Refusal) {
	s := d.State()
	what := "the member is not added"
	if s.ActiveTeam() == nil {
		return nil, noTeam(what)
	}
	name, refusal := s.memberName(name)
	if refusal != nil {
		return nil, refusal
	}
	agent = agentType(agent)
	if s.Agents[agent] == nil {
		return nil, unknownAgent(agent, s.agentTypes())
	}
	if len(s.aliveNames()) >= d.b.limits.Members {
		return nil, tooMany("members", d.b.limits.Members, len(s.aliveNames()))
	}
	if refusal := CheckBrief(name, brief); refusal != nil {
		return nil, refusal
	}
	return d.addMember(name, agent, brief, Framework), nil
}

// addMember adds a member that was checked. Without a brief it waits for mail.
func (d *Decision) addMember(name, agent, brief, from string) *Member {
	s := d.State()
	id := nth("m", uint64(len(s.Members)))
	none := strings.TrimSpace(brief) == ""
	d.emit(&rollcallv1.MemberAdded{
		Member: id, Name: name, Role: rollcallv1.MemberRole_MEMBER_ROLE_MEMBER, AgentType: agent, Team: s.ActiveTeam().ID, Ready: none,
	})
	if !none {
		d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_BRIEF, from: from, to: id, body: textBody(brief)})
	}
	for _, t := range s.Tasks { // it may have been named as an owner before it was there
		if t.Owner == name && t.Status == claimable {
			d.ready(t, 1)
		}
	}
	return s.Member(id)
}

// RemoveMember shuts a member down: its run is cancelled, its open tasks are
// free again, mail to it is refused from now on.
func (d *Decision) RemoveMember(name string) (*Member, *Refusal) {
	s := d.State()
	m := s.Recipient(name)
	what := fmt.Sprintf("%q is not removed", cut(Name(name), 4*maxName))
	switch {
	case m == nil && s.Named(Name(name)) != nil:
		return nil, Refuse("member-shut-down", what, "it was shut down before", "choose one of: "+d.recipients())
	case m == nil:
		return nil, Refuse("member-not-found", what, "no member has that name", "choose one of: "+d.recipients())
	case m.IsLead():
		return nil, Refuse("lead-stays", what, "a conversation keeps its Lead", "dissolve the team with team_dissolve")
	}
	d.shutDown(m, "removed")
	board := d.onBoard()
	for _, t := range s.Tasks {
		if t.Open() && t.Owner == m.Name {
			d.emit(&rollcallv1.TaskReleased{Task: t.ID, By: d.actor})
			board.tell(t, "task.released", m.Name+" was removed")
		}
	}
	board.settle()
	return m, nil
}

// shutDown ends a member for good.
func (d *Decision) shutDown(m *Member, reason string) {
	d.control(m, controlShutdown, reason)
	if m.Run != nil {
		d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_CANCELLED, Detail: reason})
	}
	d.endWaits(m, waitCancelled)
	d.emit(&rollcallv1.MemberShutdown{Member: m.ID, Reason: reason})
}

// DissolveTeam ends the active team: its members are shut down and its open
// tasks cancelled. The Lead, and the operator, can.
func (d *Decision) DissolveTeam() *Refusal {
	s := d.State()
	team := s.ActiveTeam()
	if team == nil {
		return Refuse("team-not-found", "nothing is dissolved", "there is no active team", "rollcall show tells what there is")
	}
	d.emit(&rollcallv1.TeamDissolved{Team: team.ID, By: d.actor})
	for _, m := range s.Members {
		if m.Alive() && m.Team == team.ID {
			d.shutDown(m, dissolved)
		}
	}
	for _, t := range s.Tasks {
		if t.Open() && t.Team == team.ID {
			d.emit(&rollcallv1.TaskCancelled{Task: t.ID, Reason: dissolved, By: d.actor})
		}
	}
	board := d.onBoard()
	board.settle()
	if d.actor != LeadID {
		d.notify(LeadID, "team.dissolved", "", fmt.Sprintf("The operator dissolved team %s. Its members were shut down and its open tasks cancelled.", team.Name))
	}
	return nil
}

const dissolved = "dissolved"
