package domain

import (
	"errors"
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var errTodo = errors.New("not yet written")

// Rules are what a node brings to decisions: code and settings, no state.
type Rules struct {
	// Contracts by name.
	Contracts map[string]Contract
	// Tools are the external tools of this node.
	Tools        []*rollcallv1.ToolDefinition
	DefaultModel string
	// Prices by model name.
	Prices map[string]Price
	Limits Limits
}

// Price of a model, in millionths of the currency a million tokens.
type Price struct {
	Input, Cached, Output uint64
}

// Limits of the runtime; a zero field means the default.
type Limits struct {
	// Members alive in a conversation at once, the Lead included; default 64.
	Members int
	// Tasks a conversation; default 2000.
	Tasks int
	// Steps a run where neither conversation nor agent type says otherwise; default 50.
	Steps int
	// Attempts a step before the run fails; default 6.
	Attempts int
	// Resumes a run after lost nodes before it fails; default 10.
	Resumes int
	// Reports to the Lead without a word of the operator; default 20.
	Reports int
}

// Contract is a set of coordination tools.
type Contract interface {
	Name() string
	Tools(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition
	Instructions(role rollcallv1.MemberRole) string
	// CheckTeam refuses a prepared team that the contract cannot work with.
	CheckTeam(members []*rollcallv1.MemberSpec) *Refusal
	// Call executes one call of a coordination tool. A refusal is shown to the
	// model as the call's error, and then nothing changed.
	Call(d *Decision, call *rollcallv1.ToolCall) (output string, refusal *Refusal)
}

// Stamp is what a commit carries from outside: the decision itself knows no clock.
type Stamp struct {
	Time     time.Time
	Node     string
	Epoch    uint64
	CommitID string
}

// Batch collects the events of one commit.
type Batch struct{}

// Decision is one command, or one tool call of it, being decided.
type Decision struct{}

// Result is what an accepted command came to.
type Result struct {
	// Version of the commit that holds the effect. When the command had none,
	// the version of the state.
	Version uint64
	// Subject is the message, task or member the command made, if any.
	Subject string
	// Duplicate: the same command id had its effect before.
	Duplicate bool
}

// Begin starts a batch. It refuses an epoch lower than the state's.
func (s *State) Begin(r *Rules, st Stamp) (*Batch, error) { return nil, errTodo }

// Decide decides one command. Each event changes the state at once, so later
// commands of the batch see it. The error is a *Refusal, and then nothing changed.
func (b *Batch) Decide(cmd *rollcallv1.Command) (Result, error) { return Result{}, errTodo }

// Commit is the batch as a commit, not yet sealed; nil when there is no event.
func (b *Batch) Commit() *rollcallv1.Commit { return nil }

// Size is about how many bytes the commit takes so far.
func (b *Batch) Size() int { return 0 }

// Committed notes the hash of a sealed and stored commit of this state's own batch.
func (s *State) Committed(c *rollcallv1.Commit) { s.LastHash = c.GetHash() }

// Evolve folds one commit into the state. It never fails; unknown events are ignored.
func (s *State) Evolve(c *rollcallv1.Commit) {}

// Marshal writes a snapshot.
func (s *State) Marshal() ([]byte, error) { return nil, errTodo }

// Unmarshal reads a snapshot.
func Unmarshal(data []byte) (*State, error) { return nil, errTodo }

// Hash is equal for equal states, however they came about.
func (s *State) Hash() string { return "" }

// Due lists the work owed: calls that are started and have no outcome. It is
// empty exactly when the conversation is quiescent.
func Due(s *State) []Work { return nil }

// ArmedTimers lists the timers to arm in the store, after a load and after a
// commit; arming again is harmless. Waiting for a timer is quiescent, so they
// are not in Due.
func ArmedTimers(s *State) []Work { return nil }

// OpenRuns lists the runs that a node which just loaded the state must take up
// with ResumeRun.
func OpenRuns(s *State) []Work { return nil }

// StepPlan is what the open model call of a member depends on; false when
// there is none. Take it at the version that started the call.
func (s *State) StepPlan(member string) (StepPlan, bool) { return StepPlan{}, false }

// ToolPlan is what the open tool call of a member depends on; false when there
// is none.
func (s *State) ToolPlan(member string) (ToolPlan, bool) { return ToolPlan{}, false }

// Status of the conversation: working, idle, waiting or paused.
func (s *State) Status() string { return "idle" }

// Verdict is how a conversation stands when nothing is due.
type Verdict struct {
	// Status is done, failed, waiting or budget; Exit is 0, 7, 6 or 8.
	Status        string
	Exit          int
	Why           string
	NeedsOperator []Need
}

// Need is one thing that only the operator can do.
type Need struct {
	// Kind is task, question or approval.
	Kind string
	ID   string
}

// Verdict judges the conversation; it is meaningful when Due is empty.
func (s *State) Verdict() Verdict { return Verdict{} }
