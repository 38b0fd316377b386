package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/domain"
)

// Bounds of what limits can be set to; more is a slip of the finger.
const (
	mostOfLimit  = 1_000_000
	mostOfTokens = 1_000_000_000_000
)

// limits reads the guards of a node: whole numbers, where 0 is the default and
// -1, or off, is none.
func (d *document) limits(n ast.Node) domain.Limits {
	var l domain.Limits
	fields := map[string]field{}
	var names []string
	set := func(name string, into func(int64), most int64) {
		names = append(names, name)
		fields[name] = func(_ *token.Token, n ast.Node) { into(d.limit(n, name, most)) }
	}
	for _, x := range []struct {
		name string
		into *int
	}{
		{"members", &l.Members},
		{"tasks", &l.Tasks},
		{"steps", &l.Steps},
		{"calls", &l.Calls},
		{"reports", &l.Reports},
		{"runs", &l.Runs},
		{"all_runs", &l.AllRuns},
		{"idle_hops", &l.IdleHops},
		{"identical_calls", &l.IdenticalCalls},
		{"depth", &l.Depth},
	} {
		set(x.name, func(v int64) { *x.into = int(v) }, mostOfLimit)
	}
	set("member_tokens", func(v int64) { l.MemberTokens = v }, mostOfTokens)
	set("team_tokens", func(v int64) { l.TeamTokens = v }, mostOfTokens)
	for name, into := range map[string]*int64{"member_money": &l.MemberCost, "team_money": &l.TeamCost} {
		fields[name] = func(_ *token.Token, n ast.Node) { *into = int64(d.money(n, name)) }
	}
	d.mapping(n, "limits", append(names, "member_money", "team_money"), fields)
	return l
}

func (d *document) limit(n ast.Node, what string, most int64) int64 {
	x := d.plain(n)
	if x == nil {
		return 0
	}
	text := x.GetToken().Value
	if strings.EqualFold(text, "off") {
		return domain.Off
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < domain.Off || v > most {
		d.at(where(x), fmt.Sprintf("%s is %q", what, text), fmt.Sprintf("write a whole number up to %d, 0 for the default, or -1 for no limit", most))
		return 0
	}
	return v
}

// limitsText tells which limits are set.
func limitsText(l domain.Limits) string {
	if l == (domain.Limits{}) {
		return "the defaults"
	}
	return "some are set"
}
