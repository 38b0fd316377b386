package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nearest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Team is what a file of agents says: what a conversation opens with.
type Team struct {
	// Contract is empty when the file names none.
	Contract string
	// Goal of the prepared team, in words.
	Goal string
	// Lead is the Lead's agent type.
	Lead string
	// Agents in the order of the file; general is always among them.
	Agents  []*rollcallv1.AgentDefinition
	Members []*rollcallv1.MemberSpec
	// Approvals is nil when the file says nothing of them.
	Approvals *rollcallv1.ApprovalPolicy
}

// DefaultTeam is a Lead of agent type general, alone.
func DefaultTeam() Team {
	return Team{Lead: domain.GeneralAgent, Agents: []*rollcallv1.AgentDefinition{{Name: domain.GeneralAgent, Description: "does whatever is asked"}}}
}

// LoadTeam reads a file of agents (--agents). Errors: *domain.Refusal with the
// code team-invalid.
func LoadTeam(file string) (Team, error) {
	data, err := readFile(file)
	if err != nil {
		return Team{}, refuse(codeTeam, file, err.Error(), "name a file that can be read")
	}
	return ParseTeam(file, data)
}

// Apply puts the team into an opening; a contract that is set there stays.
func (t Team) Apply(o *rollcallv1.OpenConversation) {
	if o.GetContract() == "" {
		o.Contract = t.Contract
	}
	o.Agents, o.LeadAgent, o.Members, o.Goal = t.Agents, t.Lead, t.Members, t.Goal
	t.applyApprovals(o)
}

// Budgets of one agent type; more is a slip of the finger.
const (
	maxSteps  = 100_000
	maxTokens = 1_000_000_000_000
)

// A mention is a name that must be known, checked when the file is read whole.
type mention struct {
	name string
	at   *token.Token
}

type teamFile struct {
	*document
	team    Team
	lead    mention
	types   []mention // agent types that members name
	members []placed
}

// ParseTeam reads the text of a file of agents; name stands in its errors.
func ParseTeam(name string, data []byte) (Team, error) {
	f := &teamFile{document: open(name, data)}
	f.mapping(f.root, "the file", []string{"contract", "goal", "lead", "agents", "members", "approvals"}, map[string]field{
		"contract": f.contract,
		"goal":     func(_ *token.Token, n ast.Node) { f.team.Goal = f.text(n, "goal") },
		"lead": func(_ *token.Token, n ast.Node) {
			f.lead = mention{f.text(n, "lead"), n.GetToken()}
		},
		"agents":    func(_ *token.Token, n ast.Node) { f.entries(n, "agents", f.agent) },
		"members":   func(_ *token.Token, n ast.Node) { f.list(n, "members", f.member) },
		"approvals": f.approvals,
	})
	f.check()
	if err := f.refusal(codeTeam); err != nil {
		return Team{}, err
	}
	return f.team, nil
}

func (f *teamFile) contract(_ *token.Token, n ast.Node) {
	f.team.Contract = f.text(n, "contract")
	if c := f.team.Contract; c != "" && contracts[c] == nil {
		f.unknown(mention{c, n.GetToken()}, "contract", "contracts", Contracts())
	}
}

func (f *teamFile) agent(key *token.Token, n ast.Node) {
	a := &rollcallv1.AgentDefinition{Name: f.name(key, domain.TypeName, key.Value)}
	what := "agent type " + a.GetName()
	if reserved(a.GetName()) {
		f.at(key, fmt.Sprintf("%q is the name of a tool", a.GetName()), "give the agent type another name")
	}
	if slices.ContainsFunc(f.team.Agents, func(b *rollcallv1.AgentDefinition) bool { return b.GetName() == a.GetName() }) {
		f.at(key, what+" is defined twice", "define it once")
	}
	text := func(into *string, name string) field {
		return func(_ *token.Token, n ast.Node) { *into = f.text(n, name+" of "+what) }
	}
	f.mapping(n, what, []string{"description", "prompt", "model", "tools", "memory", "budget", "approve"}, map[string]field{
		"description": text(&a.Description, "description"),
		"prompt":      text(&a.Prompt, "prompt"),
		"model":       text(&a.Model, "model"),
		"tools": func(_ *token.Token, n ast.Node) {
			f.list(n, "tools of "+what, func(n ast.Node) { a.Tools = append(a.Tools, f.tool(n, what)) })
			if s, ok := f.plain(n).(*ast.SequenceNode); ok && len(s.Values) == 0 {
				f.at(n.GetToken(), "an empty list of tools would mean all tools", "leave tools out for all of them, or name one")
			}
		},
		"memory": func(_ *token.Token, n ast.Node) { a.Memory = f.memory(n, what) },
		"budget": func(_ *token.Token, n ast.Node) { a.Budget = f.budget(n, "budget of "+what) },
		"approve": func(_ *token.Token, n ast.Node) {
			f.list(n, "approve of "+what, func(n ast.Node) { a.Approve = append(a.Approve, f.anyTool(n, what)) })
		},
	})
	f.team.Agents = append(f.team.Agents, a)
}

// Tools that every node has.
var (
	fileTools = []string{"file_write", "file_read", "file_list", "file_edit", "file_delete"}
	toolName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// contracts are the coordination tool sets, and roleTools the names of tools
// that nobody gets by naming them: a contract or the program itself gives them.
var (
	contracts = contract.All()
	roleTools = toolsByRole()
)

func toolsByRole() map[string]bool {
	names := map[string]bool{"task": true, "complete": true, domain.ReadMail: true}
	for _, c := range contracts {
		for _, role := range []rollcallv1.MemberRole{rollcallv1.MemberRole_MEMBER_ROLE_LEAD, rollcallv1.MemberRole_MEMBER_ROLE_MEMBER} {
			for _, t := range c.Tools(role) {
				names[t.GetName()] = true
			}
		}
	}
	return names
}

// Contracts are the names that a team's contract can have.
func Contracts() []string { return slices.Sorted(maps.Keys(contracts)) }

// reserved names cannot be given to anything else.
func reserved(name string) bool {
	return strings.HasPrefix(name, "team_") || strings.HasPrefix(name, "file_") || roleTools[name]
}

// tool is one of the tools beside the contract's.
func (f *teamFile) tool(n ast.Node, what string) string {
	before := len(f.all)
	name := f.text(n, "a tool of "+what)
	switch {
	case len(f.all) > before: // told already
	case slices.Contains(fileTools, name):
	case strings.HasPrefix(name, "file_"), !reserved(name) && len(nearest.To(name, fileTools, 1)) > 0:
		f.unknown(mention{name, n.GetToken()}, "tool", "file tools", fileTools)
	case reserved(name):
		f.at(n.GetToken(), fmt.Sprintf("the tool name %q is reserved: the contract gives such tools by role", name), "leave it out of tools")
	case !toolName.MatchString(name):
		f.at(n.GetToken(), fmt.Sprintf("%q is no name of a tool", name), "tool names are 1 to 64 letters, digits, _ and -")
	}
	return name
}

func (f *teamFile) memory(n ast.Node, what string) rollcallv1.MemoryPolicy {
	policies := map[string]rollcallv1.MemoryPolicy{
		"": rollcallv1.MemoryPolicy_MEMORY_POLICY_UNSPECIFIED, "transcript": rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT,
		"summary": rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY, "fresh": rollcallv1.MemoryPolicy_MEMORY_POLICY_FRESH,
	}
	name := f.text(n, "memory of "+what)
	policy, ok := policies[name]
	if !ok {
		f.unknown(mention{name, n.GetToken()}, "memory", "memory policies", []string{"transcript", "summary", "fresh"})
	}
	return policy
}

func (f *teamFile) budget(n ast.Node, what string) *rollcallv1.Budget {
	b := new(rollcallv1.Budget)
	f.mapping(n, what, []string{"steps", "tokens", "money"}, map[string]field{
		"steps":  func(_ *token.Token, n ast.Node) { b.Steps = uint32(f.whole(n, "steps", maxSteps)) },
		"tokens": func(_ *token.Token, n ast.Node) { b.Tokens = f.whole(n, "tokens", maxTokens) },
		"money":  func(_ *token.Token, n ast.Node) { b.CostMicros = f.money(n, "money") },
	})
	return b
}

// unknown names what is meant to be there, and what is.
func (f *teamFile) unknown(m mention, what, all string, known []string) {
	why := fmt.Sprintf("unknown %s %q", what, m.name)
	if near := nearest.To(m.name, known, 1); len(near) > 0 {
		why += fmt.Sprintf("; did you mean %q?", near[0])
	}
	f.at(m.at, why, fmt.Sprintf("%s: %s", all, strings.Join(known, ", ")))
}
