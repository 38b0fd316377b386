package main

// engineMutants break what the actors do around a decision: what is durable
// before what, and what a restart takes up.
var engineMutants = []Mutant{
	{
		Name:    "inbox-acknowledged-early",
		Breaks:  "A message leaves the inbox only after the commit that covers it is durable.",
		File:    "actors/conversation.go",
		Old:     `	c.box.queue = append(c.box.queue, it)`,
		New:     "	c.box.queue = append(c.box.queue, it)\n	if it.delivery != nil {\n		c.acknowledge([]eventstore.Delivery{it.delivery})\n	}",
		Package: "./actors", Test: "TestNothingHappensBeforeDurability",
	},
	{
		Name:    "anchor-released",
		Breaks:  "While work is due the newest message of a conversation stays in the inbox.",
		File:    "actors/box.go",
		Old:     `	if !due {`,
		New:     `	if !due || len(b.held) > 0 {`,
		Package: "./actors", Test: "TestTheNewestMessageIsTheAnchor",
	},
	{
		Name:    "oldest-message-is-the-anchor",
		Breaks:  "The anchor is the newest message: those before it are acknowledged.",
		File:    "actors/box.go",
		Old:     `if d.Seq() > b.held[newest].Seq() {`,
		New:     `if d.Seq() < b.held[newest].Seq() {`,
		Package: "./actors", Test: "TestTheNewestMessageIsTheAnchor",
	},
	{
		Name:    "anchor-released-before-the-timer",
		Breaks:  "The message that set a timer stays in the inbox until the store has the timer.",
		File:    "actors/effects.go",
		Old:     `		if !c.armed[t.Timer].Equal(t.Due) {`,
		New:     `		if c.armed == nil && t.Due.IsZero() {`,
		Package: "./actors", Test: "TestAnchorStaysUntilTheTimerIsArmed",
	},
	{
		Name:   "answer-before-durable",
		Breaks: "A command is answered only when its commit is durable.",
		File:   "actors/commit.go",
		Old: `	c.flight = f
	ctx, key`,
		New: `	c.flight = f
	for _, d := range f.decided {
		if d.err == nil && d.item.reply != "" {
			c.Answer(d.item.reply, &rollcallv1.Answer{Conversation: c.box.key.Conversation, Version: d.result.Version, Subject: d.result.Subject, Command: d.item.command.GetId()})
		}
	}
	ctx, key`,
		Package: "./actors", Test: "TestNothingHappensBeforeDurability",
	},
	{
		Name:    "effects-before-durable",
		Breaks:  "A model call begins only when the commit that started it is durable.",
		File:    "actors/commit.go",
		Old:     "	c.flight = f\n	ctx, key",
		New:     "	c.flight = f\n	c.act(a)\n	ctx, key",
		Package: "./actors", Test: "TestNothingHappensBeforeDurability",
	},
	{
		Name:   "outcome-and-effect-in-two-commits",
		Breaks: "What a coordination tool did and the outcome of its call are one commit.",
		File:   "actors/commit.go",
		Old: `		rec, err := c.Store.Append(ctx, key, at, commit)
`,
		New: `		if i := slices.IndexFunc(commit.GetEvents(), func(e *rollcallv1.Event) bool { return e.GetToolCallFinished() != nil }); i > 0 {
			half := func(id string, version uint64, events []*rollcallv1.Event) *rollcallv1.Commit {
				return &rollcallv1.Commit{Id: commit.GetId() + id, Version: version, Time: commit.GetTime(), Node: commit.GetNode(), Epoch: commit.GetEpoch(), EvolveVersion: commit.GetEvolveVersion(), Events: events}
			}
			first, err := c.Store.Append(ctx, key, at, half("-a", at.Version+1, commit.GetEvents()[:i]))
			if err == nil {
				_, err = c.Store.Append(ctx, key, first.Position(), half("-b", at.Version+2, commit.GetEvents()[i:]))
			}
			return &appended{err: errors.Join(eventstore.ErrConflict, err)}
		}
		rec, err := c.Store.Append(ctx, key, at, commit)
`,
		Package: "./actors", Test: "TestCoordinationIsOneCommit",
	},
	{
		Name:   "restart-wakes-the-idle",
		Breaks: "A restarted node calls no model for members that had nothing to do.",
		File:   "actors/roll.go",
		Old: `	for _, m := range c.roster() {
		if c.members[m.ID] != nil ||`,
		New: `	for _, m := range c.roster() {
		if m.Run == nil && m.LastReason != 0 {
			c.box.queue = append(c.box.queue, &item{command: &rollcallv1.Command{Actor: domain.Framework, Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{
				To: m.ID, Kind: rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, Body: &rollcallv1.Body{Text: "The node was restarted."},
			}}}})
		}
		if c.members[m.ID] != nil ||`,
		Package: "./actors", Test: "TestRestartRollNoCall",
	},
	{
		Name:    "restart-forgets-open-runs",
		Breaks:  "A restarted node takes up every open run whose step was lost.",
		File:    "actors/conversation.go",
		Old:     `	c.box.front(resume...)`,
		New:     `	c.box.front(resume[:0]...)`,
		Package: "./actors", Test: "TestDrainSuspendsAndTheNextStartGoesOn",
	},
	{
		Name:    "step-under-way-taken-up",
		Breaks:  "A load in a living node does not take up a step that is still under way.",
		File:    "actors/conversation.go",
		Old:     `crew != nil && crew.step == stepKey(w) || taken[w.Run] {`,
		New:     `crew != nil && crew.step == "" && taken[w.Run] {`,
		Package: "./actors", Test: "TestTooLargeCommitDisturbsNobody",
	},
	{
		Name:    "higher-epoch-ignored",
		Breaks:  "A node that meets a higher epoch in the log drops the partition.",
		File:    "actors/commit.go",
		Old:     `		c.lost(fmt.Errorf("%w: %w", eventstore.ErrPartitionLost, err))`,
		New:     `		_ = fmt.Errorf("%w: %w", eventstore.ErrPartitionLost, err)`,
		Package: "./actors", Test: "TestAHigherEpochInTheLogDropsThePartition",
	},
	{
		Name:    "lost-lease-ignored",
		Breaks:  "A node whose lease is lost, or cannot be renewed in time, ends its runs.",
		File:    "actors/owner.go",
		Old:     "			end(eventstore.ErrPartitionLost)\n			return",
		New:     "			return",
		Package: "./actors", Test: "TestRunsEndBeforeTheLeaseLapses",
	},
	{
		Name:    "lease-counted-from-the-answer",
		Breaks:  "A lease runs from before it was asked for, not from when the answer came.",
		File:    "actors/owner.go",
		Old:     `			last = asked`,
		New:     `			last = asked.Add(time.Since(asked))`,
		Package: "./actors", Test: "TestALeaseRunsFromBeforeItWasAskedFor",
	},
	{
		Name:    "refusal-answered-first",
		Breaks:  "What was refused never comes again and is done: its message is gone before the answer is given.",
		File:    "actors/owner.go",
		Old:     `	if err == nil && it.reply != "" {`,
		New:     `	if it.reply != "" {`,
		Package: "./actors", Test: "TestRefusedMessageIsNeverDone",
	},
	{
		Name:    "unsafe-tool-tried-again",
		Breaks:  "A tool that is not idempotent and fails is not called a second time.",
		File:    "actors/toolcall.go",
		Old:     `case attempt == maxToolAttempts || !t.Definition().GetIdempotent():`,
		New:     `case attempt == maxToolAttempts:`,
		Package: "./actors", Test: "TestAToolThatIsNotIdempotentIsCalledOnce",
	},
	{
		Name:    "damage-is-tried-again",
		Breaks:  "A log with a gap or a broken hash sets its conversation aside; it is not read again and again.",
		File:    "actors/conversation.go",
		Old:     `errors.Is(err, domain.ErrGap) || errors.Is(err, domain.ErrHash) ||`,
		New:     `errors.Is(err, domain.ErrGap) ||`,
		Package: "./actors", Test: "TestQuarantine",
	},
	{
		Name:   "body-over-the-wire-unchecked",
		Breaks: "A message that names a body which is not stored is refused.",
		File:   "actors/bodies.go",
		Old: `case errors.Is(err, eventstore.ErrMissingBlob), errors.Is(err, domain.ErrHash):
		return domain.Refuse`,
		New: `case errors.Is(err, eventstore.ErrMissingBlob), errors.Is(err, domain.ErrHash):
		return nil
	case err == nil && body == nil:
		return domain.Refuse`,
		Package: "./actors", Test: "TestBodyThatCannotBeShownIsRefused",
	},
}
