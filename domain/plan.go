package domain

import (
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Work is one thing a state owes: the effects layer does it, and doing it
// twice is harmless.
type Work struct {
	Kind   WorkKind
	Member string
	Run    string
	// Step and Attempt of a model call.
	Step, Attempt uint32
	// Call is the id of a tool call.
	Call string
	// Timer to arm and when it is due, for ArmTimer.
	Timer string
	Due   time.Time
}

// WorkKind names the kinds of work.
type WorkKind int

const (
	// CallModel: the run's model call is started and has no outcome.
	CallModel WorkKind = iota + 1
	// CallTool: an external tool call of the run is started and has no outcome.
	CallTool
	// ArmTimer: a timer is armed in the log and must be armed in the store.
	ArmTimer
)

// StepPlan is all that a request depends on, taken from the state at the
// version that started the model call. With the events it refers to, the
// request can be built again byte for byte.
type StepPlan struct {
	Key     Key
	Version uint64
	Member  MemberView
	Run     string
	Step    uint32
	Attempt uint32
	// Agent is the AgentBound event the run is pinned to.
	Agent *rollcallv1.Ref
	// Situation is the roster and board summary, ready to be shown.
	Situation string
	// Names are the display names of all members by id, those shut down too:
	// the senders of the mail in Context.
	Names map[string]string
	// Purpose are the messages that say what the member is for, oldest first, as
	// far as Context does not hold them.
	Purpose []*rollcallv1.MessageRef
	// Context is the transcript, oldest first: RunStarted, MessagesConsumed,
	// ModelReplied, ToolCallFinished and RunFinished events of the member, each
	// entry with the places of the mail it consumed. For a Lead that remembers a
	// summary the LeadReplied event of its last answer comes first.
	Context []ContextEntry
	// Omitted counts earlier entries that did not fit.
	Omitted int
}

// ContextEntry is one event of a member's transcript.
type ContextEntry struct {
	Ref *rollcallv1.Ref
	// Mail consumed by the event, in order, for RunStarted and MessagesConsumed.
	Mail []*rollcallv1.MessageRef
}

// ToolPlan is all that an external tool call depends on.
type ToolPlan struct {
	Key    Key
	Member MemberView
	Run    string
	Step   uint32
	Call   *rollcallv1.ToolCall
	// Home is the name of the member in whose workspace the call works: the
	// member's own, unless it works for another's call.
	Home string
	// Files the member may read: its own by path, others' as "<Name>/<path>".
	Files map[string]*rollcallv1.Blob
	// Others are the display names of the other members: a path that begins
	// with one of them is theirs.
	Others []string
	// Mail that the member consumed and can read again, oldest first: what
	// it is for and the mail of its transcript.
	Mail []*rollcallv1.MessageRef
	// Names are the display names of all members by id.
	Names map[string]string
}

// MemberView is what others see of a member.
type MemberView struct {
	ID   string
	Name string
	Role rollcallv1.MemberRole
}
