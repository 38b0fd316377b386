package domain

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// GeneralAgent is the agent type of whoever is not told another.
const GeneralAgent = "general"

// Bounds of what one OpenConversation may bring, in bytes, so that its commit
// fits: agents stand in it twice, as they were defined and as they are bound,
// with the tools and prompts of the contract.
const (
	maxOpening   = 704 << 10
	bindingBytes = 24 << 10
)

func openingSize(o *rollcallv1.OpenConversation) int {
	types := map[string]bool{leadAgent(o): true}
	for _, m := range o.GetMembers() {
		types[agentType(m.GetAgentType())] = true
	}
	return 2*proto.Size(o) + bindingBytes*len(types)
}

// openConversation begins a conversation: its agents, its Lead, a prepared
// team, files, and the operator's first words.
func (d *Decision) openConversation(o *rollcallv1.OpenConversation) (string, *Refusal) {
	s := d.State()
	if s.Opened {
		return "", Refuse("conversation-exists", fmt.Sprintf("conversation %s is not opened again", s.Key.Conversation), "it is open", "write to it with: rollcall send")
	}
	name, agents, refusal := d.checkOpening(o)
	if refusal != nil {
		return "", refusal
	}
	d.emit(&rollcallv1.ConversationOpened{
		Conversation: s.Key.Conversation, Tenant: s.Key.Tenant, Name: name, Contract: o.GetContract(),
		Agents: agents, LeadAgent: leadAgent(o), Budget: o.GetBudget(), Approvals: o.GetApprovals(),
	})
	d.emit(&rollcallv1.MemberAdded{
		Member: LeadID, Name: LeadName, Role: rollcallv1.MemberRole_MEMBER_ROLE_LEAD, AgentType: leadAgent(o), Ready: true,
	})
	d.emitFiles(LeadID, o.GetFiles())
	if len(o.GetMembers()) > 0 {
		d.emit(&rollcallv1.TeamCreated{Team: nth(teamPrefix, 1), Name: name, Goal: o.GetGoal()})
		d.openTeam(o.GetMembers())
	}
	if !emptyBody(o.GetObjective()) {
		d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, from: Operator, to: LeadID, body: o.GetObjective()})
	}
	return s.Key.Conversation, nil
}

// checkOpening checks all that an opening brings, and completes its agents.
func (d *Decision) checkOpening(o *rollcallv1.OpenConversation) (string, []*rollcallv1.AgentDefinition, *Refusal) {
	s := d.State()
	what := "the conversation is not opened"
	if (o.GetConversation() != "" && o.GetConversation() != s.Key.Conversation) || (o.GetTenant() != "" && o.GetTenant() != s.Key.Tenant) || !s.Key.Valid() {
		return "", nil, Refuse("conversation-invalid", what, fmt.Sprintf("%s.%s is not the id %s it was sent to", o.GetTenant(), o.GetConversation(), s.Key),
			"leave conversation and tenant empty, or make them the subject's")
	}
	if n := openingSize(o); n > maxOpening {
		return "", nil, Refuse("text-too-long", what, fmt.Sprintf("it would take %d bytes in the log, at most %d are allowed", n, maxOpening), "shorten prompts and briefs, or put them into files (--input)")
	}
	name, refusal := title("the conversation's name", o.GetName())
	if refusal != nil {
		return "", nil, refusal
	}
	contract, ok := d.b.r.Contracts[o.GetContract()]
	if !ok {
		return "", nil, Refuse("contract-unknown", what, fmt.Sprintf("there is no contract %q", o.GetContract()),
			"choose one of: "+quoteAll(slices.Sorted(maps.Keys(d.b.r.Contracts))))
	}
	agents, refusal := d.checkAgents(o)
	if refusal != nil {
		return "", nil, refusal
	}
	if refusal := d.checkApprovals(o, contract); refusal != nil {
		return "", nil, refusal
	}
	if refusal := contract.CheckTeam(o.GetMembers()); refusal != nil {
		return "", nil, refusal
	}
	if refusal := d.checkMembers(contract, o.GetMembers(), agents); refusal != nil {
		return "", nil, refusal
	}
	if refusal := checkText("the team's goal", o.GetGoal(), MaxTaskText); refusal != nil {
		return "", nil, refusal
	}
	if o.GetObjective() != nil && !emptyBody(o.GetObjective()) {
		if refusal := checkBody("the objective", o.GetObjective()); refusal != nil {
			return "", nil, refusal
		}
	}
	return name, agents, checkFiles(o.GetFiles())
}

// checkAgents gives the agent types, with the general one among them.
func (d *Decision) checkAgents(o *rollcallv1.OpenConversation) ([]*rollcallv1.AgentDefinition, *Refusal) {
	agents := slices.Clone(o.GetAgents())
	known := map[string]bool{}
	tools := d.externalTools()
	for _, a := range agents {
		what := fmt.Sprintf("agent type %q is refused", a.GetName())
		switch {
		case badName(a.GetName()) != "":
			return nil, Refuse("agent-type-invalid", what, "its name is no name: "+badName(a.GetName()), "give it another name")
		case known[a.GetName()]:
			return nil, Refuse("agent-type-invalid", what, "it is defined twice", "define it once")
		}
		for _, text := range []string{a.GetDescription(), a.GetPrompt(), a.GetModel()} {
			if refusal := checkText("the definition of agent type "+a.GetName(), text, maxOpening); refusal != nil {
				return nil, refusal
			}
		}
		for _, name := range a.GetTools() {
			if !slices.Contains(tools, name) {
				return nil, Refuse("tool-unknown", what, fmt.Sprintf("it names the tool %q, which this node does not have", name), "choose from: "+quoteAll(tools))
			}
		}
		known[a.GetName()] = true
	}
	if !known[GeneralAgent] {
		known[GeneralAgent] = true
		agents = append(agents, &rollcallv1.AgentDefinition{Name: GeneralAgent, Description: "does whatever is asked"})
	}
	if !known[leadAgent(o)] {
		return nil, unknownAgent(leadAgent(o), known)
	}
	return agents, nil
}

// openTeam makes the members of a prepared team, which were checked.
func (d *Decision) openTeam(specs []*rollcallv1.MemberSpec) {
	if d.contract().Policy().Assignments {
		d.assign(assignmentsOf(specs))
		return
	}
	for _, spec := range specs {
		d.addMember(Name(spec.GetName()), agentType(spec.GetAgentType()), spec.GetBrief(), Framework)
	}
}

func assignmentsOf(specs []*rollcallv1.MemberSpec) []Assignment {
	var all []Assignment
	for _, spec := range specs {
		a := Assignment{Name: Name(spec.GetName()), AgentType: agentType(spec.GetAgentType()), Brief: spec.GetBrief()}
		for _, n := range spec.GetDependsOn() {
			a.DependsOn = append(a.DependsOn, Name(n))
		}
		all = append(all, a)
	}
	return all
}

func (d *Decision) checkMembers(contract Contract, specs []*rollcallv1.MemberSpec, agents []*rollcallv1.AgentDefinition) *Refusal {
	known := map[string]bool{}
	for _, a := range agents {
		known[a.GetName()] = true
	}
	if len(specs) >= d.b.limits.Members {
		return tooMany("members", d.b.limits.Members, 1)
	}
	seen := map[string]bool{}
	for _, spec := range specs {
		name, refusal := d.State().memberName(spec.GetName())
		if refusal != nil {
			return refusal
		}
		if seen[name] {
			return Refuse("name-taken", fmt.Sprintf("the name %q is refused", name), "two members have it", "give each member a name of its own")
		}
		seen[name] = true
		if t := agentType(spec.GetAgentType()); !known[t] {
			return unknownAgent(t, known)
		}
		if refusal := checkText("the brief of "+name, spec.GetBrief(), MaxInline); refusal != nil {
			return refusal
		}
		if refusal := CheckBrief(name, spec.GetBrief()); refusal != nil && contract.Policy().Assignments {
			return refusal
		}
	}
	if contract.Policy().Assignments {
		return d.checkEdges(assignmentsOf(specs))
	}
	return nil
}

func unknownAgent(name string, known map[string]bool) *Refusal {
	return Refuse("agent-type-unknown", fmt.Sprintf("agent type %q cannot be used", cut(name, 200)), "it is not defined in this conversation",
		"choose one of: "+quoteAll(slices.Sorted(maps.Keys(known))))
}

// agentTypes are the agent types of the conversation.
func (s *State) agentTypes() map[string]bool {
	known := map[string]bool{}
	for a := range s.Agents {
		known[a] = true
	}
	return known
}

// tooMany refuses more of what than a limit leaves room for beside those there are.
func tooMany(what string, limit, have int) *Refusal {
	left := "none is left"
	if have < limit {
		left = fmt.Sprintf("%d are left", limit-have)
	}
	return Refuse("limit-reached", "no more "+what, fmt.Sprintf("a conversation has at most %d, and %s", limit, left), "finish or remove some first")
}

func leadAgent(o *rollcallv1.OpenConversation) string { return agentType(o.GetLeadAgent()) }

func agentType(name string) string {
	if name == "" {
		return GeneralAgent
	}
	return name
}
