package domain

import (
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Member is a long-lived addressable actor of the conversation.
type Member struct {
	ID        string
	Name      string
	Role      rollcallv1.MemberRole
	AgentType string
	Team      string `json:",omitempty"`
	// Task is the member's whole assignment, where it has one: its runs work on
	// it, and delivering it ends them.
	Task   string `json:",omitempty"`
	Status rollcallv1.MemberStatus
	// Parent made a subagent, by a call of its open run; Depth is how many stand
	// above it.
	Parent string `json:",omitempty"`
	Depth  int    `json:",omitempty"`
	// Since is when Status last changed.
	Since time.Time
	// Held is true while unread mail starts no run: the last run failed, ran out
	// of budget or was interrupted by hand. New waking mail ends it.
	Held bool `json:",omitempty"`
	// LastReason, LastCode and LastDetail say how the last run ended.
	LastReason rollcallv1.FinishReason `json:",omitempty"`
	LastCode   string                  `json:",omitempty"`
	LastDetail string                  `json:",omitempty"`
	// Told is the report by which the Lead learnt how the last run ended, where
	// that left work undone; empty when it does not know.
	Told string `json:",omitempty"`

	// Unread mail in the order of delivery.
	Unread []*Mail `json:",omitempty"`
	// Run is the open run, nil when there is none.
	Run *Run `json:",omitempty"`
	// Waits are the questions this member sleeps on.
	Waits []*Wait `json:",omitempty"`
	// Purpose is the mail that says what the member is for, oldest first: its briefs,
	// or the operator's words to the Lead. It is shown also when its turns are not.
	Purpose []MailPlace `json:",omitempty"`
	// Turns is the transcript, oldest first; the last one is the open run's.
	Turns []*Turn `json:",omitempty"`
	// Omitted counts transcript entries that were let go.
	Omitted int `json:",omitempty"`
	// Used by all its runs. Runs counts those it began since the operator's last
	// word, Hops is how far down a chain of wakes without progress its newest is.
	Used Usage
	Runs int    `json:",omitempty"`
	Hops uint32 `json:",omitempty"`
	// Files of the member's workspace by path.
	Files map[string]Blob `json:",omitempty"`
}

// Blob is the address of a file's contents in the object store.
type Blob struct {
	SHA256 string
	Size   uint64 `json:",omitempty"`
}

// Mail is a delivered message; its body stands at Place.
type Mail struct {
	ID    string
	Kind  rollcallv1.MailKind
	From  string
	Mode  rollcallv1.MailMode `json:",omitempty"`
	Topic string              `json:",omitempty"`
	Task  string              `json:",omitempty"`
	// ReplyTo is the message this one answers.
	ReplyTo string `json:",omitempty"`
	// After is the sender's run: the message wakes nobody while it goes on.
	After string `json:",omitempty"`
	// Hops is how far down a chain of wakes without progress it stands; quiet
	// mail is too far down to start a run.
	Hops  uint32 `json:",omitempty"`
	Quiet bool   `json:",omitempty"`
	Place Place
	Time  time.Time
}

// Wait is a question a member sleeps on until a reply names it.
type Wait struct {
	// Message is the question's id, Awaited the member asked, or "user".
	Message string
	Awaited string
	Since   time.Time
	// Read is true once the member asked has consumed the question.
	Read bool `json:",omitempty"`
	// Told is true once the Lead was told that no answer is in sight, Heard once
	// the one who asked was.
	Told  bool `json:",omitempty"`
	Heard bool `json:",omitempty"`
	// Ring is true once the Lead was told of a ring of waits that it is in.
	Ring bool `json:",omitempty"`
}

// Phase says what an open run is doing.
type Phase string

const (
	// Calling: a model call is started and has no outcome.
	Calling Phase = "calling"
	// InTool: an external tool call is started and has no outcome.
	InTool Phase = "tool"
	// Asking: a call waits until its approval is decided.
	Asking Phase = "asking"
	// Delegating: calls wait for their subagents.
	Delegating Phase = "delegating"
	// Parked: at a step boundary while the conversation is paused.
	Parked Phase = "parked"
	// Reserving: at a step boundary until other calls settle what they set aside.
	Reserving Phase = "reserving"
	// Deciding: between two events of one commit; no commit ends in it.
	Deciding Phase = "deciding"
)

// Run is an open run.
type Run struct {
	ID string
	// Agent is the hash of the binding the run is pinned to.
	Agent string
	Phase Phase
	// Step and Attempt of the newest model call, from 1.
	Step    uint32 `json:",omitempty"`
	Attempt uint32 `json:",omitempty"`
	// CallVersion is the version of the commit that started it: the one whose
	// state a StepPlan is taken from.
	CallVersion uint64 `json:",omitempty"`
	// Answered is true once the step has a reply.
	Answered bool `json:",omitempty"`
	// Failures counts the step's transient failures, Resumes how often it was
	// lost and taken up since the last reply.
	Failures uint32 `json:",omitempty"`
	Resumes  uint32 `json:",omitempty"`
	// Suspended is true after its node let go in good order, and while it waits
	// for its turn to call the model, for an approval or for its subagents.
	Suspended bool `json:",omitempty"`
	Started   time.Time
	// Unanswered is mail the run consumed that no reply has followed.
	Unanswered []*Mail `json:",omitempty"`
	// Calls are the step's tool calls that have no outcome, in order.
	Calls []Call `json:",omitempty"`
	// CallIDs are the ids of all calls of the run; those of the step begin at
	// StepCalls.
	CallIDs   []string `json:",omitempty"`
	StepCalls int      `json:",omitempty"`
	// Asked are the questions of this step that nobody answered yet; they
	// become waits when the step's calls are done.
	Asked []*Wait `json:",omitempty"`
	// Delivered is true once the run completed a task.
	Delivered bool `json:",omitempty"`
	// Once are the tools called that a run may call only once.
	Once []string `json:",omitempty"`
	// Result is what a subagent has delivered, as its caller will read it.
	Result string `json:",omitempty"`
	// Cut and Empty count replies in a row that were cut or empty.
	Cut   uint32 `json:",omitempty"`
	Empty uint32 `json:",omitempty"`
	Used  Usage
	// Reserved is what the open model call has set aside; nil when nothing is.
	Reserved *Reservation `json:",omitempty"`
	// Shown is what the newest reply and its request took in tokens; the turn had
	// ShownEntries entries then.
	Shown        uint64 `json:",omitempty"`
	ShownEntries int    `json:",omitempty"`
	// Repeats are the run's calls, by a mark of tool and arguments.
	Repeats map[string]*Repeat `json:",omitempty"`
}

// Call is a tool call without an outcome.
type Call struct {
	ID        string
	Name      string
	Arguments string `json:",omitempty"`
	Blob      *Blob  `json:",omitempty"`
	// Subagent works for this call.
	Subagent string `json:",omitempty"`
	// Approved is true once the operator, or the time, let it be made.
	Approved bool `json:",omitempty"`
}

// held reports whether the run waits for something outside of it: an approval,
// or its subagents.
func (r *Run) held() bool { return r.Phase == Asking || r.Phase == Delegating }

// Alive reports whether the member can still be addressed.
func (m *Member) Alive() bool {
	return m.Status != rollcallv1.MemberStatus_MEMBER_STATUS_SHUTDOWN
}

// IsLead reports whether the member is the Lead.
func (m *Member) IsLead() bool { return m.Role == rollcallv1.MemberRole_MEMBER_ROLE_LEAD }

func (m *Member) view() MemberView { return MemberView{ID: m.ID, Name: m.Name, Role: m.Role} }

func (m *Member) setStatus(status rollcallv1.MemberStatus, at time.Time) {
	if m.Status != status {
		m.Status, m.Since = status, at
	}
}

// failed reports whether a failure of its last run holds the member.
func (m *Member) failed() bool {
	return m.Held && m.LastReason == rollcallv1.FinishReason_FINISH_REASON_FAILED
}
