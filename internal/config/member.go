package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// maxMembers of a file are more than a conversation takes with any settings
// that make sense.
const maxMembers = 1000

// placed is a member with where it stands, and where what it depends on does.
type placed struct {
	*rollcallv1.MemberSpec
	at    *token.Token
	needs []mention
}

func (f *teamFile) member(n ast.Node) {
	m := placed{MemberSpec: new(rollcallv1.MemberSpec)}
	if len(f.members) > maxMembers { // counted, and read no more
		f.members = append(f.members, m)
		return
	}
	f.mapping(n, "a member", []string{"name", "agent_type", "brief", "depends_on"}, map[string]field{
		"name": func(_ *token.Token, n ast.Node) {
			m.at = n.GetToken()
			before := len(f.all)
			if name := f.text(n, "name"); len(f.all) == before {
				m.Name = f.name(m.at, domain.MemberName, name)
			}
		},
		"agent_type": func(_ *token.Token, n ast.Node) {
			if m.AgentType = f.text(n, "agent_type"); m.AgentType != "" {
				f.types = append(f.types, mention{m.AgentType, n.GetToken()})
			}
		},
		"brief": func(_ *token.Token, n ast.Node) { m.Brief = f.text(n, "brief") },
		"depends_on": func(_ *token.Token, n ast.Node) {
			f.list(n, "depends_on", func(n ast.Node) {
				name := domain.Name(f.text(n, "a name in depends_on"))
				m.DependsOn = append(m.DependsOn, name)
				m.needs = append(m.needs, mention{name, n.GetToken()})
			})
		},
	})
	switch {
	case m.at == nil:
		m.at = where(n)
		f.at(m.at, "a member without a name", "give each member a name")
	case m.Name != "" && slices.ContainsFunc(f.members, func(b placed) bool { return b.Name == m.Name }):
		f.at(m.at, fmt.Sprintf("two members are named %q", m.Name), "give each member a name of its own")
	}
	f.members = append(f.members, m)
	f.team.Members = append(f.team.Members, m.MemberSpec)
}

// name normalises a name and refuses what no conversation would take.
func (f *teamFile) name(at *token.Token, valid func(string) (string, *domain.Refusal), raw string) string {
	name, refusal := valid(raw)
	if refusal != nil {
		f.at(at, refusal.What+": "+refusal.Why, refusal.Try)
		return domain.Name(raw)
	}
	return name
}

// check looks at what names what, and completes the team.
func (f *teamFile) check() {
	t := &f.team
	if !slices.ContainsFunc(t.Agents, func(a *rollcallv1.AgentDefinition) bool { return a.GetName() == domain.GeneralAgent }) {
		t.Agents = append(t.Agents, DefaultTeam().Agents...)
	}
	var agents []string
	for _, a := range t.Agents {
		agents = append(agents, a.GetName())
	}
	if t.Lead = f.lead.name; t.Lead == "" {
		t.Lead = domain.GeneralAgent
	} else if !slices.Contains(agents, t.Lead) {
		f.unknown(f.lead, "agent type", "agent types", agents)
	}
	for _, m := range f.types {
		if !slices.Contains(agents, m.name) {
			f.unknown(m, "agent type", "agent types", agents)
		}
	}
	if len(f.members) > maxMembers {
		f.at(f.members[maxMembers].at, fmt.Sprintf("%d members are listed, of which this is one too many", len(f.members)), fmt.Sprintf("list at most %d", maxMembers))
		return
	}
	f.checkEdges()
	f.checkContract()
}

// checkEdges refuses members that depend on nobody there is, or on each other.
func (f *teamFile) checkEdges() {
	needs := map[string][]mention{}
	var members []string
	for _, m := range f.members {
		needs[m.Name] = append(needs[m.Name], m.needs...)
		members = append(members, m.Name)
	}
	told := map[string]bool{}
	for _, m := range f.members {
		for _, n := range m.needs {
			switch {
			case n.name == m.Name:
				f.at(n.at, m.Name+" depends on itself", "leave that out")
			case !slices.Contains(members, n.name):
				f.unknown(n, "member", "members", members)
			case !told[m.Name]:
				way := wayTo(n.name, m.Name, needs, map[string]bool{m.Name: true})
				if way == nil {
					continue
				}
				for _, name := range way {
					told[name] = true
				}
				f.at(n.at, "members would wait for each other: "+strings.Join(append([]string{m.Name}, way...), " -> "), "leave one of these dependencies out")
			}
		}
	}
}

// wayTo is the way from a member along what it depends on to another, both
// included; nil when there is none.
func wayTo(from, to string, needs map[string][]mention, seen map[string]bool) []string {
	for _, n := range needs[from] {
		if n.name == to {
			return []string{from, to}
		}
	}
	seen[from] = true
	for _, n := range needs[from] {
		if seen[n.name] {
			continue
		}
		if way := wayTo(n.name, to, needs, seen); way != nil {
			return append([]string{from}, way...)
		}
	}
	return nil
}

// checkContract refuses a team that the contract of the file cannot work with.
// A file that names none is held against the run's when it is opened.
func (f *teamFile) checkContract() {
	c := contracts[f.team.Contract]
	if c == nil {
		return
	}
	for _, m := range f.members {
		refusal := c.CheckTeam([]*rollcallv1.MemberSpec{m.MemberSpec})
		if refusal == nil && c.Policy().Assignments {
			refusal = domain.CheckBrief(m.Name, m.Brief)
		}
		if refusal != nil {
			f.at(m.at, refusal.What+": "+refusal.Why, refusal.Try)
		}
	}
}
