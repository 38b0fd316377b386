package main

// versionMutants let old nodes misread what newer ones wrote, and leave NATS servers
// as somebody else set them.
var versionMutants = []Mutant{
	{
		Name:    "newer-commit-decided-on",
		Breaks:  "Nothing is decided on a state that a newer program wrote to.",
		File:    "domain/evolve.go",
		Old:     `	if s.Newer == 0 {`,
		New:     `	if s.Newer < 1<<31 {`,
		Package: "./domain", Test: "TestNewerCommitIsNotDecidedOn",
	},
	{
		Name:    "unknown-event-passed-over",
		Breaks:  "An event of an unknown kind says that a newer program wrote, whatever version its commit names.",
		File:    "domain/evolve.go",
		Old:     `	if e.GetKind() == nil {`,
		New:     `	if e.GetKind() == nil && s.Version == 0 {`,
		Package: "./domain", Test: "TestNewerCommitIsNotDecidedOn",
	},
	{
		Name:    "newer-commit-not-told",
		Breaks:  "A node that meets a newer commit tells the others in which partition.",
		File:    "actors/newer.go",
		Old:     `	p.self.Newer, p.news = newer, true`,
		New:     `	p.news = len(newer) > 0`,
		Package: "./actors", Test: "TestNewerCommitIsLeftAlone",
	},
	{
		Name:    "stuck-consumer-unnoticed",
		Breaks:  "A consumer that does not know of messages that are in the stream is replaced.",
		File:    "eventstore/receiver_check.go",
		Old:     `	if now.waiting == 0 && held <= now.unacknowledged {`,
		New:     `	if now.waiting == 0 {`,
		Package: "./eventstore", Test: "TestConsumerStuck",
	},
	{
		Name:    "changed-settings-kept",
		Breaks:  "Provisioning sets back what somebody changed of a stream.",
		File:    "eventstore/provision.go",
		Old:     `	if versionOf(have) > provision || `,
		New:     `	if versionOf(have) >= provision || `,
		Package: "./eventstore", Test: "TestPlan",
	},
	{
		Name:    "foreign-stream-answers",
		Breaks:  "A stream of another program that would answer requests to nodes is refused.",
		File:    "eventstore/plan.go",
		Old:     `	subjects := slices.Clone(answered)`,
		New:     `	subjects := slices.Clone(answered[:0])`,
		Package: "./eventstore", Test: "TestProvisionRefuses",
	},
}
