package config

import (
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// approvals says which calls the operator must approve, whoever makes them.
func (f *teamFile) approvals(_ *token.Token, n ast.Node) {
	p := new(rollcallv1.ApprovalPolicy)
	f.mapping(n, "approvals", []string{"tools", "timeout", "default"}, map[string]field{
		"tools": func(_ *token.Token, n ast.Node) {
			f.list(n, "tools of approvals", func(n ast.Node) { p.Tools = append(p.Tools, f.anyTool(n, "approvals")) })
		},
		"timeout": func(_ *token.Token, n ast.Node) { p.TimeoutSeconds = f.seconds(n, "timeout of approvals") },
		"default": func(_ *token.Token, n ast.Node) {
			switch word := f.text(n, "default of approvals"); word {
			case "", "deny":
			case "approve":
				p.ApproveOnTimeout = true
			default:
				f.unknown(mention{word, n.GetToken()}, "default", "defaults", []string{"deny", "approve"})
			}
		},
	})
	if p.GetApproveOnTimeout() && p.GetTimeoutSeconds() == 0 {
		f.at(where(n), "calls are to be approved by default, and no time is given after which", "add timeout: 1h")
	}
	f.team.Approvals = p
}

// anyTool is the name of a tool, of whatever kind.
func (f *teamFile) anyTool(n ast.Node, what string) string {
	before := len(f.all)
	name := f.text(n, "a tool of "+what)
	if len(f.all) == before && !toolName.MatchString(name) {
		f.at(n.GetToken(), fmt.Sprintf("%q is no name of a tool", name), "tool names are 1 to 64 letters, digits, _ and -")
	}
	return name
}

// seconds reads a time such as 30m or 24h.
func (f *teamFile) seconds(n ast.Node, what string) uint64 {
	before := len(f.all)
	text := f.text(n, what)
	if text == "" || len(f.all) > before {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		f.at(n.GetToken(), fmt.Sprintf("%s is %q, not whole seconds such as 90s, 30m or 24h", what, text), "")
		return 0
	}
	return uint64(d / time.Second)
}

// applyApprovals puts the file's rule for approvals into an opening that has none.
func (t Team) applyApprovals(o *rollcallv1.OpenConversation) {
	if o.GetApprovals() == nil && t.Approvals != nil {
		o.Approvals = t.Approvals
	}
}

// MergeApprovals joins what a command line says about approvals with what the
// file says: tools are added, a time or default that is given counts.
func MergeApprovals(o *rollcallv1.OpenConversation, tools []string, timeout time.Duration, approve bool) error {
	if len(tools) == 0 && timeout == 0 && !approve {
		return nil
	}
	if timeout < 0 || timeout%time.Second != 0 {
		return domain.Refuse("usage", "the time for approvals is no number of whole seconds", timeout.String(), "such as 90s, 30m or 24h")
	}
	p := o.GetApprovals()
	if p == nil {
		p = new(rollcallv1.ApprovalPolicy)
		o.Approvals = p
	}
	p.Tools = append(p.Tools, tools...)
	if timeout > 0 {
		p.TimeoutSeconds = uint64(timeout / time.Second)
	}
	p.ApproveOnTimeout = p.GetApproveOnTimeout() || approve
	return nil
}
