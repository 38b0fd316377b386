package eval

import "regexp"

func re(pattern string) *regexp.Regexp { return regexp.MustCompile(pattern) }

// What a result can make up.
var (
	metres   = re(`\b(\d+(?:[.,]\d+)?)\s*(?:m|metres|meters)\b`)
	times    = re(`\b(\d{1,2}:\d\d)\b`)
	days     = re(`\b(\d+)[ -]days?\b`)
	amounts  = re(`\b(\d{3,5})\b`)
	years    = re(`\b(1[5-9]\d\d|20\d\d)\b`)
	money    = re(`(?i)\b(\d[\d.,]*)\s*(?:eur\b|euros?\b|€|marks?\b|crowns?\b|pounds?\b|dollars?\b|million\b)`)
	engineer = re(`[Ee]ngineer,?\s+(?:was\s+|is\s+)?([A-Z]\w+ [A-Z]\w+)`)
	regions  = re(`\b([a-z]{2}-[a-z]+-\d)\b`)
	boats    = re(`\b(\d+)\s+boats?\b`)
	weekdays = re(`(?i)\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b`)
	hours    = re(`\b(\d+)[ -]hours?\b`)
)

// Cases are the seven situations, in the order they are played.
var Cases = []Case{
	{
		Name:  "direct-answer",
		About: "a small question that the words themselves answer",
		Objective: "The log of gauge 7 reads: 06:00 3.1 m, 12:00 3.4 m, 18:00 2.9 m. " +
			"What was its highest level, and at what time? Answer in one sentence.",
		Alone:  true,
		Facts:  []Fact{{Name: "3.4 m", Is: re(`\b3[.,]4\s*m`)}, {Name: "12:00", Is: re(`12:00|\bnoon\b`)}},
		Claims: []*regexp.Regexp{metres, times},
	},
	{
		Name:  "independent-review",
		About: "two files, two scopes, side by side",
		Objective: "Review two files. lease.txt: do its clauses contradict each other on the notice? budget.csv: is its total the sum of its items? " +
			"Answer with what is wrong in each, and quote the figures.",
		Hint: "Work as a team: one reviewer for each file, side by side, each with only its own file; " +
			"you put their findings together into one answer and close the team.",
		Members: 2, Alone: true, Exclusive: true,
		Facts: []Fact{
			{Name: "30 days", Is: re(`\b30\b`)},
			{Name: "60 days", Is: re(`\b60\b`)},
			{Name: "the stated total", Is: re(`\b1480\b`)},
			{Name: "the right total", Is: re(`\b1420\b`)},
		},
		Claims: []*regexp.Regexp{days, amounts}, Derived: []string{"1420", "1220", "1100", "520"},
		evidence: reviewed,
	},
	{
		Name:  "dependency-handoff",
		About: "a writer builds on what research delivered",
		Objective: "archive.txt tells of a bridge. First write its year of opening, its engineer and its longest span into notes.md. " +
			"Then, from those notes and nothing else, write page.md: two sentences for visitors, with all three. Answer with the year and the engineer.",
		Hint: "Work as a team: one member does the research and delivers the notes; another depends on it and writes the page from the delivered notes. " +
			"Close the team when the page is right.",
		Members: 2, Alone: true,
		Facts: []Fact{
			{Name: "1931", Is: re(`\b1931\b`)},
			{Name: "Lindt", Is: re(`\bLindt\b`)},
			{Name: "1931", File: "page.md", Is: re(`\b1931\b`)},
			{Name: "Lindt", File: "page.md", Is: re(`\bLindt\b`)},
			{Name: "214 m", File: "page.md", Is: re(`\b214\b`)},
		},
		Claims:   []*regexp.Regexp{years, metres, engineer, money},
		evidence: handedOver,
	},
	{
		Name:  "missing-decision",
		About: "a region that only the operator knows",
		Objective: "Write deployment.md for the service in request.txt: the service, how many machines of which size, and the region. " +
			"The region is not in the file; I know it. Answer with the region when the plan is complete.",
		Hint:    "Work as a team: one planner writes the plan, and asks for what it lacks. Close the team when the plan is right.",
		Members: 1, Alone: true,
		Facts: []Fact{
			{Name: "eu-north-1", Is: re(`\beu-north-1\b`)},
			{Name: "eu-north-1", File: "deployment.md", Is: re(`\beu-north-1\b`)},
			{Name: "tern", File: "deployment.md", Is: re(`(?i)\btern\b`)},
			{Name: "two machines", File: "deployment.md", Is: re(`(?i)\b(?:2|two)\b`)},
		},
		Claims:   []*regexp.Regexp{regions},
		Steps:    []Step{{Asked: true, About: re(`(?i)\bregion\b`), Say: "The region is eu-north-1."}},
		evidence: asked,
	},
	{
		Name:  "revision",
		About: "corrected evidence after the delivery",
		Objective: "survey.txt counts boats at three quays. Write the total into total.md; then write report.md, one sentence for the harbour board with the total. " +
			"Answer with the total. A correction may still come.",
		Hint:    "Work as a team: a counter delivers total.md; a reporter, who depends on it, delivers report.md. Leave the team open: I may have a correction.",
		Members: 2, Alone: true,
		Facts: []Fact{
			{Name: "14", Is: re(`(?i)\b(?:14|fourteen)\b`)},
			{Name: "14", File: "total.md", Is: re(`(?i)\b(?:14|fourteen)\b`)},
			{Name: "14", File: "report.md", Is: re(`(?i)\b(?:14|fourteen)\b`)},
		},
		Claims: []*regexp.Regexp{boats}, Derived: []string{"12", "14", "2", "9"},
		Steps:    []Step{{Say: "Correction of the survey: the east quay had 5 boats, not 3. Bring total.md and report.md up to date, and answer with the new total."}},
		evidence: revised,
	},
	{
		Name:  "failure-recovery",
		About: "an input that is named and not there",
		Objective: "Write chart.md: what the river bed is made of, by ground.txt, and the level, by gauge.csv. " +
			"If a file cannot be read, keep what is done and take the level from backup.txt. Answer with the bed, the level, and the name of what could not be read.",
		Hint: "Work as a team: one member for the bed, one for the level, and one that depends on both and writes chart.md. " +
			"Who fails is replaced by a member with a new name. Close the team when the chart is right.",
		Members: 5, Alone: true,
		Facts: []Fact{
			{Name: "gravel", Is: re(`(?i)\bgravel`)},
			{Name: "3.2 m", Is: re(`\b3[.,]2\s*m`)},
			{Name: "gauge.csv could not be read", Is: re(`gauge\.csv`)},
			{Name: "gravel", File: "chart.md", Is: re(`(?i)\bgravel`)},
			{Name: "3.2 m", File: "chart.md", Is: re(`\b3[.,]2\s*m`)},
		},
		Claims:   []*regexp.Regexp{metres},
		Removed:  []string{"gauge.csv"},
		evidence: recovered,
	},
	{
		Name:  "restart-while-waiting",
		About: "the node is killed while a member waits for an answer",
		Objective: "Write migration.md by request.txt: what moves, how long it takes, and on which weekday. " +
			"The weekday is not in the file; I know it. Answer with the weekday when the plan is complete.",
		Hint:    "Work as a team: one planner writes the plan; what it lacks it asks me, and waits for my reply. Close the team when the plan is right.",
		Members: 1,
		Facts: []Fact{
			{Name: "Thursday", Is: re(`(?i)\bthursday\b`)},
			{Name: "Thursday", File: "migration.md", Is: re(`(?i)\bthursday\b`)},
			{Name: "3 hours", File: "migration.md", Is: re(`(?i)\b(?:3|three)[ -]hours?\b`)},
		},
		Claims:   []*regexp.Regexp{weekdays, hours},
		Steps:    []Step{{Asked: true, About: re(`(?i)\bweekday\b`), Restart: true, Say: "It will be a Thursday."}},
		evidence: waited,
	},
}
