package main

// dagMutants break when assignments begin and what is told of them.
var dagMutants = []Mutant{
	{
		Name:    "launched-before-the-leads-run-ends",
		Breaks:  "Members begin when the Lead's run is over, so that it has said all of its plan.",
		File:    "domain/wake.go",
		Old:     `s.goesOn(mail.After)`,
		New:     `false`,
		Package: "./contract/dag", Test: "TestLaunch/dag-launch-after-lead-run",
	},
	{
		Name:    "begun-before-all-is-delivered",
		Breaks:  "An assignment begins when everything that it depends on is delivered.",
		File:    "domain/wake.go",
		Old:     `t.Status == claimable || t.Status == inProgress`,
		New:     `t.Open()`,
		Package: "./contract/dag", Test: "TestLaunch/dag-dependents-after-all",
	},
	{
		Name:    "missing-path-delivered",
		Breaks:  "A delivery names only files that are there: with a missing one the task stays open.",
		File:    "domain/files.go",
		Old:     `if _, ok := readable[c]; !ok {`,
		New:     `if _, ok := readable[c]; !ok && len(paths) == 1 {`,
		Package: "./contract/dag", Test: "TestComplete/dag-complete-missing-path-blocks",
	},
	{
		Name:    "two-unread-reports",
		Breaks:  "The Lead has at most one unread report: later facts take its place.",
		File:    "domain/report.go",
		Old:     `to: LeadID, replaces: lead.unreadReport()}`,
		New:     `to: LeadID}`,
		Package: "./contract/dag", Test: "TestTeamReport/dag-team-report/at most one is unread, and the newest says it all",
	},
	{
		Name:    "reported-twice",
		Breaks:  "What the Lead was told of is not told again: a report that it has read needs progress before the next.",
		File:    "domain/report.go",
		Old:     `s.Progress == s.Reported || `,
		New:     ``,
		Package: "./contract/dag", Test: "TestComplete/dag-ended-without-complete",
	},
}
