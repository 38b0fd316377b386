package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/config"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// alone is the contract of conversations without a team.
const alone = "none"

// compose puts the team of the agents file into an opening, as far as the
// command line wants it: whoever asks for one expert, or for no team, gets the
// agent types and not the members.
func (s *session) compose(o *rollcallv1.OpenConversation, team config.Team, f runFlags) error {
	if o.Contract == "" && f.agent != "" {
		o.Contract = alone
	}
	if o.GetContract() == alone && team.Contract != alone && len(team.Members) > 0 {
		s.say("a conversation without a team: the members of %s are left out", printable(f.agents))
		team.Members, team.Goal = nil, ""
	}
	team.Apply(o)
	if o.GetContract() == "" {
		o.Contract = defaultContract
	}
	return s.chooseLead(o, f.agent)
}

// chooseLead makes an agent type the one that answers: the one that is named,
// or, where there is no team, the one that the objective mentions at its start.
func (s *session) chooseLead(o *rollcallv1.OpenConversation, agent string) error {
	var known []string
	for _, a := range o.GetAgents() {
		known = append(known, a.GetName())
	}
	if agent == "" && o.GetContract() == alone {
		agent = domain.Mentioned(o.GetObjective().GetText(), known)
	}
	if agent == "" {
		return nil
	}
	if agent = domain.Name(agent); !slices.Contains(known, agent) {
		return domain.Refuse("agent-type-unknown", fmt.Sprintf("there is no agent type %q", printable(agent)),
			"known are "+strings.Join(known, ", "), "define it in a file and name that with --agents")
	}
	o.LeadAgent = agent
	return nil
}
