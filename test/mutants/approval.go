package main

// approvalMutants break what holds of calls that wait for the operator.
var approvalMutants = []Mutant{
	{
		Name:    "approval-outlives-its-run",
		Breaks:  "An approval whose run is gone is void, and an answer to it is refused.",
		File:    "domain/run.go",
		Old:     `	d.voidApprovals(m, e)`,
		New:     ``,
		Package: "./domain", Test: "TestApprovalIsVoidWithoutItsRun",
	},
	{
		Name:    "last-answer-wins",
		Breaks:  "The first answer to an approval counts; a later one is refused.",
		File:    "domain/approval.go",
		Old:     `	if refusal := d.ended(a); refusal != nil {`,
		New:     `	if refusal := d.ended(a); refusal != nil && a.Outcome == Void {`,
		Package: "./domain", Test: "TestFirstAnswerWins",
	},
	{
		Name:   "denied-call-made",
		Breaks: "A call that was denied is not made: its result is the reason.",
		File:   "domain/approval.go",
		Old: `	if !approve {
		d.emit(`,
		New: `	if m.Run.Calls[0].Approved = true; false {
		d.emit(`,
		Package: "./domain", Test: "TestB43DenyOneOfTwoCalls",
	},
	{
		Name:    "approval-taken-for-lost",
		Breaks:  "A run that waits for an approval was not lost with its node: no model is asked for it.",
		File:    "domain/run_resume.go",
		Old:     `	case Parked, Reserving, Asking, Delegating:`,
		New:     `	case Parked, Reserving, Delegating:`,
		Package: "./domain", Test: "TestApprovalOutlivesNodes",
	},
}
