package main

// guardMutants break what keeps a team from running away.
var guardMutants = []Mutant{
	{
		Name:    "reservation-not-counted",
		Breaks:  "A model call starts only where it fits beside what the open calls of others have set aside.",
		File:    "domain/guard_budget.go",
		Old:     `limit == 0, settled+held+need <= limit,`,
		New:     `limit == 0, settled+need <= limit,`,
		Package: "./domain", Test: "TestReservationsParkWhoDoesNotFit",
	},
	{
		Name:    "cut-answer-for-nothing",
		Breaks:  "An answer that broke off is charged by what was set aside for it.",
		File:    "domain/guard_budget.go",
		Old:     `r != nil && code == codeCut {`,
		New:     `r != nil && code == "" {`,
		Package: "./domain", Test: "TestReservationsSettle",
	},
	{
		Name:    "loop-never-quieted",
		Breaks:  "Mail at the end of a chain of wakes without progress wakes nobody.",
		File:    "domain/wake.go",
		Old:     "	if mail.Quiet {\n		return false\n	}\n",
		New:     "",
		Package: "./domain", Test: "TestB36MutualThanks",
	},
	{
		Name:    "progress-does-not-count",
		Breaks:  "A relay of which something comes is never stopped.",
		File:    "domain/guard_loop.go",
		Old:     "	if m := s.Member(member); m != nil {\n		m.Hops = 0",
		New:     "	if m := s.Member(member); m != nil {\n		m.Hops++",
		Package: "./domain", Test: "TestGenuineRelayIsNotStopped",
	},
	{
		Name:    "identical-calls-made",
		Breaks:  "The same call is not made again and again while nothing else changes.",
		File:    "domain/guard_repeat.go",
		Old:     `if r == nil || r.Times < k {`,
		New:     `if r == nil || r.Times < k*k {`,
		Package: "./domain", Test: "TestB39IdenticalCallsStop",
	},
	{
		Name:    "ring-of-dependencies-unseen",
		Breaks:  "A ring of waits through what a task depends on is told when it closes.",
		File:    "domain/guard_ring.go",
		Old:     `			whom = append(whom, owner)`,
		New:     `			return nil, true, true`,
		Package: "./contract/dag", Test: "TestRingsOfEveryLength",
	},
	{
		Name:    "ring-with-a-way-out",
		Breaks:  "A ring in which somebody may still be answered is no deadlock.",
		File:    "domain/guard_ring.go",
		Old:     `next == nil || s.mayAnswer(next, map[string]bool{from.ID: true}) {`,
		New:     `next == nil {`,
		Package: "./contract/dag", Test: "TestNoDeadlock",
	},
}
