package main

// subagentMutants break what holds of members that work for one call.
var subagentMutants = []Mutant{
	{
		Name:    "subagent-outlives-its-caller",
		Breaks:  "When the caller's run ends, its subagents are cancelled in the same commit.",
		File:    "domain/run.go",
		Old:     `	d.cancelSubagents(m, e)`,
		New:     ``,
		Package: "./domain", Test: "TestSubagentsEndWithTheirCaller",
	},
	{
		Name:    "subagent-has-team-tools",
		Breaks:  "A subagent has no tool of the contract.",
		File:    "domain/toolset.go",
		Old:     `	if c == nil || m.IsSubagent() {`,
		New:     `	if c == nil {`,
		Package: "./domain", Test: "TestDagExpertNoTeamTools",
	},
	{
		Name:    "caller-taken-for-lost",
		Breaks:  "A run that waits for its subagents was not lost with its node: what is owed is the subagent's run.",
		File:    "domain/due.go",
		Old:     `		case InTool:`,
		New:     `		case InTool, Delegating:`,
		Package: "./domain", Test: "TestSubagent/none",
	},
	{
		Name:    "undelivered-as-delivered",
		Breaks:  "Last words of a subagent that delivered nothing are told as such.",
		File:    "domain/subagent.go",
		Old:     `Paths: []string{}, Undelivered: true}`,
		New:     `Paths: []string{}}`,
		Package: "./domain", Test: "TestSubagentThatDeliversNothing",
	},
}
