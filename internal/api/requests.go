package api

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/jsontext"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Write are the fields that every write takes in JSON.
type Write struct {
	// Conversation is an id, a name or a unique prefix.
	Conversation string `json:"conversation,omitempty"`
	// ID is the idempotency key: the same id again does nothing.
	ID string `json:"id,omitempty"`
	// TimeoutMS is how long to wait for the answer.
	TimeoutMS uint32 `json:"timeout_ms,omitempty"`
}

// Budget in JSON; a zero field sets no limit.
type Budget struct {
	Tokens uint64 `json:"tokens,omitempty"`
	// Cost in units of the installation's currency.
	Cost float64 `json:"cost,omitempty"`
	// Steps a run.
	Steps uint32 `json:"steps,omitempty"`
}

func (b *Budget) proto() *rollcallv1.Budget {
	if b == nil {
		return nil
	}
	return &rollcallv1.Budget{Tokens: b.Tokens, CostMicros: Micros(b.Cost), Steps: b.Steps}
}

// Micros turns units of the currency into millionths.
func Micros(units float64) uint64 {
	if !(units > 0) {
		return 0
	}
	return uint64(math.Round(min(units, 1e12) * 1e6))
}

// Units turns millionths of the currency into units.
func Units(micros uint64) float64 { return float64(micros) / 1e6 }

// Agent is an agent type in JSON.
type Agent struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools,omitempty"`
	// Memory is transcript, summary or fresh.
	Memory string  `json:"memory,omitempty"`
	Budget *Budget `json:"budget,omitempty"`
	// Approve names the tools whose calls the operator must approve.
	Approve []string `json:"approve,omitempty"`
}

// NewMember is a member of a prepared team.
type NewMember struct {
	Name      string   `json:"name"`
	AgentType string   `json:"agent_type,omitempty"`
	Brief     string   `json:"brief,omitempty"`
	DependsOn []string `json:"depends_on,omitempty"`
}

// NewFile is a file for the Lead's workspace; its bytes are uploaded before.
type NewFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   uint64 `json:"size"`
}

func decodeOpen(data []byte) (writeRequest, error) {
	var r struct {
		Write
		Name      string          `json:"name"`
		Contract  string          `json:"contract"`
		Agents    []Agent         `json:"agents"`
		Lead      string          `json:"lead"`
		Members   []NewMember     `json:"members"`
		Objective string          `json:"objective"`
		Budget    *Budget         `json:"budget"`
		Files     []NewFile       `json:"files"`
		Approvals *ApprovalPolicy `json:"approvals"`
	}
	if err := decodeTexts(data, &r); err != nil {
		return writeRequest{}, err
	}
	o := &rollcallv1.OpenConversation{
		Conversation: r.Conversation, Name: r.Name, Contract: r.Contract, LeadAgent: r.Lead, Budget: r.Budget.proto(),
	}
	var err error
	if o.Approvals, err = r.Approvals.proto(); err != nil {
		return writeRequest{}, err
	}
	if r.Objective != "" {
		o.Objective = &rollcallv1.Body{Text: r.Objective}
	}
	for _, a := range r.Agents {
		memory, err := ParseMemory(a.Memory)
		if err != nil {
			return writeRequest{}, err
		}
		o.Agents = append(o.Agents, &rollcallv1.AgentDefinition{
			Name: a.Name, Description: a.Description, Prompt: a.Prompt, Model: a.Model,
			Tools: a.Tools, Memory: memory, Budget: a.Budget.proto(), Approve: a.Approve,
		})
	}
	for _, m := range r.Members {
		o.Members = append(o.Members, &rollcallv1.MemberSpec{
			Name: m.Name, AgentType: m.AgentType, Brief: m.Brief, DependsOn: m.DependsOn,
		})
	}
	for _, f := range r.Files {
		o.Files = append(o.Files, &rollcallv1.FileChange{
			Path: f.Path, Blob: &rollcallv1.Blob{Sha256: f.SHA256, Size: f.Size},
		})
	}
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: o}}), nil
}

func decodeSend(data []byte) (writeRequest, error) {
	var r struct {
		Write
		// Member is an id, a display name or a unique prefix; empty: the Lead.
		Member  string `json:"member"`
		Text    string `json:"text"`
		Kind    string `json:"kind"`
		Mode    string `json:"mode"`
		ReplyTo string `json:"reply_to"`
	}
	if err := decodeTexts(data, &r); err != nil {
		return writeRequest{}, err
	}
	p := &rollcallv1.PostMessage{To: r.Member, Body: &rollcallv1.Body{Text: r.Text}, ReplyTo: r.ReplyTo}
	switch r.Kind {
	case "", "user_message":
		p.Kind = rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE
	case "framework_alert":
		p.Kind = rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT
	default:
		return writeRequest{}, badWord("kind", r.Kind, "user_message or framework_alert")
	}
	switch r.Mode {
	case "":
	case "interrupt":
		p.Mode = rollcallv1.MailMode_MAIL_MODE_INTERRUPT
	case "steer":
		p.Mode = rollcallv1.MailMode_MAIL_MODE_STEER
	case "queue":
		p.Mode = rollcallv1.MailMode_MAIL_MODE_QUEUE
	default:
		return writeRequest{}, badWord("mode", r.Mode, "interrupt, steer or queue")
	}
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_PostMessage{PostMessage: p}}), nil
}

func decodeTask(data []byte) (writeRequest, error) {
	var r struct {
		Write
		Operation    string   `json:"operation"`
		Task         string   `json:"task"`
		Title        string   `json:"title"`
		Description  string   `json:"description"`
		Owner        string   `json:"owner"`
		Dependencies []string `json:"dependencies"`
		Text         string   `json:"text"`
		Paths        []string `json:"paths"`
	}
	if err := decodeTexts(data, &r); err != nil {
		return writeRequest{}, err
	}
	op, ok := map[string]rollcallv1.ChangeTask_Operation{
		"add":    rollcallv1.ChangeTask_OPERATION_ADD,
		"assign": rollcallv1.ChangeTask_OPERATION_ASSIGN,
		"done":   rollcallv1.ChangeTask_OPERATION_DONE,
		"fail":   rollcallv1.ChangeTask_OPERATION_FAIL,
		"cancel": rollcallv1.ChangeTask_OPERATION_CANCEL,
	}[r.Operation]
	if !ok {
		return writeRequest{}, badWord("operation", r.Operation, "add, assign, done, fail or cancel")
	}
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{
		Operation: op, Task: r.Task, Title: r.Title, Description: r.Description, Owner: r.Owner,
		Dependencies: r.Dependencies, Text: r.Text, Paths: r.Paths,
	}}}), nil
}

func decodeInterrupt(data []byte) (writeRequest, error) {
	var r memberWrite
	err := decodeTexts(data, &r)
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_InterruptMember{
		InterruptMember: &rollcallv1.InterruptMember{Member: r.Member},
	}}), err
}

func decodeRetry(data []byte) (writeRequest, error) {
	var r memberWrite
	err := decodeTexts(data, &r)
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{
		RetryMember: &rollcallv1.RetryMember{Member: r.Member},
	}}), err
}

func decodePause(data []byte) (writeRequest, error) {
	var r Write
	err := decodeTexts(data, &r)
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{
		PauseConversation: &rollcallv1.PauseConversation{},
	}}), err
}

func decodeResume(data []byte) (writeRequest, error) {
	var r Write
	err := decodeTexts(data, &r)
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeConversation{
		ResumeConversation: &rollcallv1.ResumeConversation{},
	}}), err
}

func decodeDissolve(data []byte) (writeRequest, error) {
	var r Write
	err := decodeTexts(data, &r)
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{
		DissolveTeam: &rollcallv1.DissolveTeam{},
	}}), err
}

func decodeBudget(data []byte) (writeRequest, error) {
	var r struct {
		Write
		Budget *Budget `json:"budget"`
	}
	err := decodeTexts(data, &r)
	return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_RaiseBudget{
		RaiseBudget: &rollcallv1.RaiseBudget{Budget: r.Budget.proto()},
	}}), err
}

// memberWrite is a write that may name a member.
type memberWrite struct {
	Write
	Member string `json:"member"`
}

func (w Write) with(c *rollcallv1.Command) writeRequest {
	c.Id = w.ID
	return writeRequest{
		conversation: w.Conversation, command: c, patience: time.Duration(w.TimeoutMS) * time.Millisecond,
	}
}

// decodeTexts is decodeJSON for requests that carry texts: encoding/json would
// replace invalid UTF-8, and halves of characters, silently.
func decodeTexts(data []byte, into any) error {
	if !utf8.Valid(data) {
		return domain.Refuse("text-invalid", "the request is not valid UTF-8", "JSON is UTF-8", "convert it to UTF-8")
	}
	if half := jsontext.HalfCharacter(data); half != "" {
		return domain.Refuse("text-invalid", "the request has half of a character", "a lone "+half+" stands in it",
			`write both halves, such as \ud83d\ude00, or the character itself`)
	}
	return decodeJSON(data, into)
}

func badWord(field, got, want string) error {
	return domain.Refuse("request-invalid", "unknown "+field, "got "+quote(got), "use "+want)
}

// ParseMemory reads a memory policy; empty is the contract's default.
func ParseMemory(word string) (rollcallv1.MemoryPolicy, error) {
	switch word {
	case "":
		return rollcallv1.MemoryPolicy_MEMORY_POLICY_UNSPECIFIED, nil
	case "transcript":
		return rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT, nil
	case "summary":
		return rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY, nil
	case "fresh":
		return rollcallv1.MemoryPolicy_MEMORY_POLICY_FRESH, nil
	}
	return 0, badWord("memory policy", word, "transcript, summary or fresh")
}
