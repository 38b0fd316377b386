package api

// Meaning is what a refusal's code stands for.
type Meaning struct {
	Exit int
	// Text says in general what is wrong and what helps.
	Text string
}

var catalogue = map[string]Meaning{
	"internal": {ExitFailed, "Something failed inside Rollcall. Nothing that was acknowledged is lost; rollcall doctor and the node's log say more."},
}
