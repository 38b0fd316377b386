package projections

import "time"

// The types below are what queries answer and, field by field, what `--json`
// prints; docs/json.md lists them and a golden test holds them. Fields are only
// ever added. Times are RFC 3339 in UTC; a time or text that is not there is
// left out unless a field's comment says otherwise.

// List is `ls --json`.
type List struct {
	Conversations []Conversation `json:"conversations"`
}

// Conversation is a conversation at a glance.
type Conversation struct {
	// ID is a lower-case ULID.
	ID string `json:"id"`
	// Name is for people; any Unicode.
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
	// Contract is dag, mailbox or none.
	Contract string `json:"contract"`
	// Status is working, idle, waiting, paused or quarantined.
	Status string `json:"status"`
	// Version of the log that this shows.
	Version uint64 `json:"version"`
	// Members in the order they joined, the Lead first.
	Members []Member   `json:"members"`
	Tasks   TaskCounts `json:"tasks"`
	// NeedsOperator lists what waits for the operator.
	NeedsOperator []Need `json:"needs_operator"`
	// Opened and Updated are the times of the first and the newest commit.
	Opened  time.Time `json:"opened,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	// Fault is set when the conversation is quarantined.
	Fault *Fault `json:"fault,omitempty"`
}

// Member is a member at a glance.
type Member struct {
	// ID is short and never reused: lead, m1, m2.
	ID string `json:"id"`
	// Name is what the others call it.
	Name string `json:"name"`
	// Status is spawning, working, idle, waiting or shutdown.
	Status string `json:"status"`
	// Unread counts the messages that it has not read.
	Unread int `json:"unread"`
}

// TaskCounts sums up a board. Open tasks are all that are neither completed,
// failed nor cancelled.
type TaskCounts struct {
	Open int `json:"open"`
	// Failed tasks that were not cancelled since.
	Failed int `json:"failed"`
}

// Need is one thing that only the operator can do.
type Need struct {
	// Kind is approval, question or task.
	Kind string `json:"kind"`
	// ID of the task, message or approval.
	ID string `json:"id"`
}

// Fault says why a conversation is set aside; docs/errors.md lists the codes.
type Fault struct {
	// Code of the damage.
	Code string `json:"code"`
	// Why in words.
	Why string `json:"why"`
}

// Detail is `show --json`: a Conversation with everything in full.
type Detail struct {
	Conversation
	Members []MemberDetail `json:"members"`
	Tasks   Board          `json:"tasks"`
	Mail    MailCounts     `json:"mail"`
	Runs    []Run          `json:"runs"`
	Usage   Usage          `json:"usage"`
	// Answer is the Lead's last word to the operator.
	Answer *Answer `json:"answer,omitempty"`
}

// MemberDetail is a member in full.
type MemberDetail struct {
	Member
	// Role is lead, member or subagent.
	Role string `json:"role"`
	// AgentType is the named definition it works by.
	AgentType string `json:"agent_type"`
	// Team it belongs to.
	Team string `json:"team,omitempty"`
	// Since is when its status last changed.
	Since time.Time `json:"since,omitzero"`
	// Held is true while its unread mail starts no run: retry, or new mail.
	Held bool `json:"held"`
	// Run is its open run.
	Run string `json:"run,omitempty"`
	// How its last run ended, with the code and words of a failure.
	LastReason string `json:"last_reason,omitempty"`
	LastCode   string `json:"last_code,omitempty"`
	LastDetail string `json:"last_detail,omitempty"`
	// Mail to this member.
	Mail MailCounts `json:"mail"`
}

// Board is the tasks, counted and in full, in the order they were made.
type Board struct {
	TaskCounts
	List []Task `json:"list"`
}

// Task is a unit of work.
type Task struct {
	// ID is short and never reused: t1, t2.
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Status is pending, claimable, in_progress, completed, failed, blocked or
	// cancelled.
	Status string `json:"status"`
	// Owner is a name, any string; user is the operator.
	Owner string `json:"owner,omitempty"`
	// Dependencies are the ids of tasks to be completed first.
	Dependencies []string `json:"dependencies"`
	// Creator is a member id, operator or framework.
	Creator string `json:"creator"`
	// Team it was made in; empty outside any.
	Team string `json:"team,omitempty"`
	// Reason says what blocks it, or why it failed or was cancelled.
	Reason string `json:"reason,omitempty"`
	// Failure is what made a task fail that was cancelled or tried again since.
	Failure string `json:"failure,omitempty"`
	// Result and Paths are the delivery of a completed task.
	Result string   `json:"result,omitempty"`
	Paths  []string `json:"paths"`
	// CompletedBy is a member id or operator.
	CompletedBy string `json:"completed_by,omitempty"`
	// Revision counts its reopenings.
	Revision int `json:"revision"`
	// Stale: something it was built on was reopened.
	Stale bool `json:"stale"`
	// StaleReason names that.
	StaleReason string `json:"stale_reason,omitempty"`
	// Created and Updated are times of commits.
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
}

// MailCounts counts messages. What is neither consumed nor unread went to the
// operator, acted at once, or met a member that was shut down.
type MailCounts struct {
	// Delivered in all.
	Delivered int `json:"delivered"`
	// Consumed by a run.
	Consumed int `json:"consumed"`
	// Unread and still to be consumed.
	Unread int `json:"unread"`
}

// Message is a delivered message.
type Message struct {
	// ID is unique in the conversation.
	ID string `json:"id"`
	// Kind is brief, text, user_message, task_ready, task_notification,
	// team_report, framework_alert or control.
	Kind string `json:"kind"`
	// From and To are display names, or operator, framework, user; the ids are
	// member ids, or the same words.
	From   string `json:"from"`
	FromID string `json:"from_id"`
	To     string `json:"to"`
	ToID   string `json:"to_id"`
	// Time of delivery.
	Time time.Time `json:"time,omitzero"`
	// Version of the commit that delivered it.
	Version uint64 `json:"version"`
	Text
	// ReplyTo is the message that this one answers.
	ReplyTo string `json:"reply_to,omitempty"`
	// WaitForReply: the sender sleeps until it is answered.
	WaitForReply bool `json:"wait_for_reply,omitempty"`
	// Mode is interrupt, steer or queue, when the operator chose.
	Mode string `json:"mode,omitempty"`
	// Topic of a notification, such as task.completed.
	Topic string `json:"topic,omitempty"`
	// Task it concerns.
	Task string `json:"task,omitempty"`
	// About is an earlier message that the framework speaks of.
	About string `json:"about,omitempty"`
	// State is unread, consumed, or sent for what no run will consume: mail to
	// the operator, control mail, and mail of a member that was shut down.
	State string `json:"state"`
	// The run that consumed it, and the version and time of that.
	Run        string    `json:"run,omitempty"`
	ConsumedAt uint64    `json:"consumed_at,omitempty"`
	Consumed   time.Time `json:"consumed,omitzero"`
	// Returned counts how often it was consumed without an answer.
	Returned int `json:"returned,omitempty"`
}

// Text is a text, or where it lies when it is too long for the log.
type Text struct {
	// Text itself, when it is short enough for the log.
	Text string `json:"text,omitempty"`
	// Blob is where a longer text lies.
	Blob *BlobRef `json:"blob,omitempty"`
}

// BlobRef is the address of bytes in the object store.
type BlobRef struct {
	// SHA256 in lower-case hexadecimal.
	SHA256 string `json:"sha256"`
	// Size in bytes.
	Size uint64 `json:"size"`
}

// Answer is the Lead's word to the operator, and the version that holds it.
type Answer struct {
	// Version of the commit that holds it.
	Version uint64 `json:"version"`
	Text
}

// Run is one turn of a member.
type Run struct {
	// ID is unique in the conversation.
	ID string `json:"id"`
	// Member is the display name.
	Member string `json:"member"`
	// MemberID is the short id.
	MemberID string `json:"member_id"`
	// Status is open, suspended or finished.
	Status string `json:"status"`
	// From and To are the versions of its first and last event.
	From uint64 `json:"from"`
	To   uint64 `json:"to,omitempty"`
	// Started and Finished are times of commits.
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	// Consumed are the messages that started it.
	Consumed []string `json:"consumed"`
	// AgentHash is what it is pinned to.
	AgentHash string `json:"agent_hash"`
	// Steps begun: a model call and the tool calls it asked for.
	Steps int `json:"steps"`
	// Calls counts model calls begun, FailedCalls those without a reply.
	Calls       int `json:"calls"`
	FailedCalls int `json:"failed_calls"`
	// Tools counts finished tool calls, ToolErrors those that told of an error
	// or whose outcome is unknown.
	Tools      int `json:"tools"`
	ToolErrors int `json:"tool_errors"`
	// Resumed counts how often a lost node's work was taken up.
	Resumed int `json:"resumed"`
	// Reason is open, completed, idle, waiting, interrupted, cancelled, failed
	// or out_of_budget.
	Reason string `json:"reason"`
	// Code of a failure; docs/errors.md lists the codes.
	Code string `json:"code,omitempty"`
	// Detail of a failure, or what a suspended run waits for.
	Detail string `json:"detail,omitempty"`
	// Undelivered tasks were in progress when it ended.
	Undelivered []string `json:"undelivered"`
	// Usage of its model calls.
	Usage Usage `json:"usage"`
}

// Usage is a sum over model calls that were answered.
type Usage struct {
	// Calls that were answered.
	Calls uint64 `json:"calls"`
	// InputTokens, those served from a cache among them.
	InputTokens uint64 `json:"input_tokens"`
	// OutputTokens, reasoning among them.
	OutputTokens uint64 `json:"output_tokens"`
	// CachedTokens are the part of the input that a cache served.
	CachedTokens uint64 `json:"cached_tokens"`
	// EstimatedCalls had no figures from the server.
	EstimatedCalls uint64 `json:"estimated_calls"`
	// Cost by the installation's prices; 0 where no price is known.
	Cost Money `json:"cost"`
}

// UsageReport is a conversation's usage: the total and its parts.
type UsageReport struct {
	Usage
	// Members that used anything, by id.
	Members []MemberUsage `json:"members"`
	// Models by name, as the servers gave it.
	Models []ModelUsage `json:"models"`
}

// MemberUsage is what a member used.
type MemberUsage struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Usage
}

// ModelUsage is what a model was used for.
type ModelUsage struct {
	Model string `json:"model"`
	Usage
}

// File is a file of a member's workspace as it stands.
type File struct {
	// Member is the display name.
	Member string `json:"member"`
	// MemberID is the short id.
	MemberID string `json:"member_id"`
	// Path within the member's workspace.
	Path string `json:"path"`
	BlobRef
	// Version and time of the commit that wrote it.
	Version uint64    `json:"version"`
	Time    time.Time `json:"time,omitzero"`
}
